#include "src/otlp/curl_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "src/otlp/answer_reader.h"
#include "vllm_metrics/loggers/clock.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

struct EasyDeleter {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const noexcept {
    curl_slist_free_all(list);
  }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using List = std::unique_ptr<curl_slist, ListDeleter>;

// Called by C, which nothing may be thrown through.
std::size_t take_head(char* data, std::size_t, std::size_t size,
                      void* reader) noexcept {
  try {
    if (static_cast<AnswerReader*>(reader)->take_head({data, size}))
      return size;
  } catch (...) {  // no memory for it
  }
  return 0;
}

// The rest of an answer that is too long is not waited for.
std::size_t take_body(char* data, std::size_t, std::size_t size,
                      void* reader) noexcept {
  try {
    if (static_cast<AnswerReader*>(reader)->take_body({data, size}))
      return size;
  } catch (...) {
  }
  return 0;
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

List make_headers(const Request& request) {
  List headers;
  const auto add = [&](const std::string& line) {
    if (auto* const longer = curl_slist_append(headers.get(), line.c_str())) {
      static_cast<void>(headers.release());
      headers.reset(longer);
    }
  };
  for (const auto& [name, value] : request.headers)
    add(value.empty() ? name + ";" : name + ": " + value);
  add("expect:");  // no 100-continue: it costs a second where it is not known
  return headers;
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(Multi multi, Easy easy, const Settings& settings)
      : multi_(std::move(multi)),
        easy_(std::move(easy)),
        ca_certificate_(settings.ca_certificate),
        client_key_(settings.client_key),
        client_certificate_(settings.client_certificate) {}

  Response send(const Request& request) override;
  void cancel() noexcept override {
    cancelled_ = true;
    curl_multi_wakeup(multi_.get());
  }

 private:
  void set_files();
  CURLcode perform();

  Multi multi_;  // keeps the connections
  Easy easy_;
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

// As curl_easy_perform() does it, which looks for a cancel once a second only.
CURLcode CurlTransport::perform() {
  constexpr int kLookUpMilliseconds = 1000;
  CURLM* const multi = multi_.get();
  CURLcode result = CURLE_ABORTED_BY_CALLBACK;
  if (curl_multi_add_handle(multi, easy_.get()) != CURLM_OK)
    return CURLE_OUT_OF_MEMORY;
  int running = 1;
  while (!cancelled_ && curl_multi_perform(multi, &running) == CURLM_OK &&
         running > 0) {
    if (curl_multi_poll(multi, nullptr, 0, kLookUpMilliseconds, nullptr) !=
        CURLM_OK)
      break;
  }
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi, &left)) {
    if (message->msg == CURLMSG_DONE) result = message->data.result;
  }
  curl_multi_remove_handle(multi, easy_.get());
  return result;
}

Response CurlTransport::send(const Request& request) {
  AnswerReader reader(Clock::system()->wall());
  CURL* const easy = easy_.get();
  const List headers = make_headers(request);
  const std::string url(request.url);
  const auto milliseconds =
      static_cast<long>(std::clamp(std::ceil(request.timeout * 1e3), 1.0, 1e9));
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  // A name server that is slow to answer keeps no one waiting.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_head);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &reader);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reader);
  set_files();

  const CURLcode code = perform();
  // The head decides, once it is there: a body that is too long, too slow or
  // cut changes nothing.
  Response response = reader.take();
  if (response.status == 0) {
    response.may_have_arrived = !never_arrived(code, easy);
    response.error = cancelled_         ? "ended by a shutdown"
                     : code == CURLE_OK ? "no answer of HTTP"
                                        : curl_easy_strerror(code);
  }
  return response;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Transport>> make_curl_transport(
    const Settings& settings) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  Easy easy(initialised == CURLE_OK ? curl_easy_init() : nullptr);
  Multi multi(initialised == CURLE_OK ? curl_multi_init() : nullptr);
  if (easy == nullptr || multi == nullptr)
    return absl::UnavailableError("libcurl could not be initialised");
  return std::make_shared<CurlTransport>(std::move(multi), std::move(easy),
                                         settings);
}

}  // namespace vllm_metrics::inline v0::otlp
