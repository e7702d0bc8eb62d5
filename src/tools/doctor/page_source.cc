#include "src/tools/doctor/page_source.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

namespace vllm_metrics::doctor {
namespace {

constexpr std::size_t kMaxPage = std::size_t{256} << 20;

struct Cleanup {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const noexcept {
    curl_slist_free_all(list);
  }
};

// What curl calls with a piece of the body. Less than all of it ends the
// transfer.
std::size_t append(const char* data, std::size_t size, std::size_t count,
                   void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + size * count > kMaxPage) return 0;
  text.append(data, size * count);
  return size * count;
}

absl::Status unavailable(const std::string& url, const std::string& reason) {
  return absl::UnavailableError(fmt::format("{}: {}", url, reason));
}

}  // namespace

absl::StatusOr<std::string> fetch(const std::string& url) {
  const std::unique_ptr<CURL, Cleanup> handle(curl_easy_init());
  if (handle == nullptr) return unavailable(url, "curl cannot be set up");
  const std::unique_ptr<curl_slist, Cleanup> headers(
      curl_slist_append(nullptr, "Accept: text/plain;version=0.0.4"));
  std::string body;
  char reason[CURL_ERROR_SIZE] = "";
  CURL* const curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_WRITE_ERROR)
    return unavailable(url, "the page is larger than 256 MiB");
  if (code != CURLE_OK) {
    return unavailable(url,
                       *reason != '\0' ? reason : curl_easy_strerror(code));
  }
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200)
    return unavailable(url, fmt::format("status {}; allowed: 200", status));
  return body;
}

absl::StatusOr<std::string> read_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      return absl::NotFoundError(
          fmt::format("{}: {}", path, std::strerror(errno)));
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (in.bad())
    return absl::NotFoundError(
        fmt::format("{}: {}", path, std::strerror(errno)));
  return text;
}

}  // namespace vllm_metrics::doctor
