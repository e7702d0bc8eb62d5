#include "src/otlp/curl_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

constexpr std::size_t kMostBody = 64 * 1024;

struct EasyDeleter {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const noexcept {
    curl_slist_free_all(list);
  }
};

// The rest of an answer that is too long is not waited for.
std::size_t take_body(char* data, std::size_t, std::size_t size, void* out) {
  auto& body = *static_cast<std::string*>(out);
  const std::size_t taken = std::min(size, kMostBody - body.size());
  body.append(data, taken);
  return taken;
}

int is_cancelled(void* flag, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<std::atomic<bool>*>(flag)->load() ? 1 : 0;
}

// Failures before a byte of the request was sent.
bool never_arrived(CURLcode code, CURL* easy) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      return true;
    default:
      break;
  }
  curl_off_t sent = 0;
  curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &sent);
  long request = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request);
  return sent == 0 && request == 0;
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(std::unique_ptr<CURL, EasyDeleter> easy,
                const Settings& settings)
      : easy_(std::move(easy)),
        ca_certificate_(settings.ca_certificate),
        client_key_(settings.client_key),
        client_certificate_(settings.client_certificate) {}

  Response send(const Request& request) override;
  void cancel() noexcept override { cancelled_ = true; }

 private:
  void set_files();

  std::unique_ptr<CURL, EasyDeleter> easy_;
  std::string ca_certificate_;
  std::string client_key_;
  std::string client_certificate_;
  std::atomic<bool> cancelled_{false};
};

void CurlTransport::set_files() {
  CURL* const easy = easy_.get();
  if (!ca_certificate_.empty())
    curl_easy_setopt(easy, CURLOPT_CAINFO, ca_certificate_.c_str());
  if (!client_key_.empty())
    curl_easy_setopt(easy, CURLOPT_SSLKEY, client_key_.c_str());
  if (!client_certificate_.empty())
    curl_easy_setopt(easy, CURLOPT_SSLCERT, client_certificate_.c_str());
}

Response CurlTransport::send(const Request& request) {
  Response response;
  CURL* const easy = easy_.get();
  std::unique_ptr<curl_slist, ListDeleter> headers;
  const auto add = [&](const std::string& line) {
    if (auto* const longer = curl_slist_append(headers.get(), line.c_str())) {
      static_cast<void>(headers.release());
      headers.reset(longer);
    }
  };
  for (const auto& [name, value] : request.headers)
    add(value.empty() ? name + ";" : name + ": " + value);
  add("expect:");  // no 100-continue: it costs a second where it is not known

  curl_easy_reset(easy);  // keeps the connection
  const std::string url(request.url);
  const auto milliseconds =
      static_cast<long>(std::clamp(std::ceil(request.timeout * 1e3), 1.0, 1e9));
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &response.body);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, is_cancelled);
  curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &cancelled_);
  set_files();

  const CURLcode code = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_off_t retry_after = 0;
  curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
  if (retry_after > 0) response.retry_after = static_cast<double>(retry_after);
  // The status decides, once it is there: a body that is too long, too slow or
  // cut changes nothing.
  if (code == CURLE_OK || status >= 200) {
    response.status = static_cast<int>(status);
  } else {
    response.may_have_arrived = !never_arrived(code, easy);
    response.error = curl_easy_strerror(code);
  }
  return response;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Transport>> make_curl_transport(
    const Settings& settings) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  std::unique_ptr<CURL, EasyDeleter> easy(
      initialised == CURLE_OK ? curl_easy_init() : nullptr);
  if (easy == nullptr)
    return absl::UnavailableError("libcurl could not be initialised");
  return std::make_shared<CurlTransport>(std::move(easy), settings);
}

}  // namespace vllm_metrics::inline v0::otlp
