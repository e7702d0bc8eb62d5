#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0::otlp {

// One export request, as it goes over the wire.
struct Request {
  std::string_view url = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string_view body = {};
  double timeout = 10.0;  // seconds, for all of it
};

// What came back.
struct Response {
  int status = 0;         // of HTTP; 0: no whole answer
  std::string body = {};  // its first 64 KiB
  // Seconds, by its `Retry-After`.
  std::optional<double> retry_after = {};
  // Without an answer: whether the server may have taken the request.
  bool may_have_arrived = false;
  std::string error = {};  // without an answer: why
  // Of the body. What is said to be no protobuf is not looked at.
  std::string content_type = {};
};

// How requests travel. The exporters use libcurl; derive from it to send them
// another way, or nowhere in a test.
//
// Thread-safety: send() is called from one exporter's thread at a time,
// cancel() from any. Errors: should not throw; an exception counts as no
// answer.
class VLLM_METRICS_EXPORT Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport();

  // Returns when there is an answer or there will be none, `timeout` seconds
  // later at most.
  virtual Response send(const Request& request) = 0;

  // Makes send() return soon, this one and all to come.
  virtual void cancel() noexcept {}
};

}  // namespace vllm_metrics::inline v0::otlp
