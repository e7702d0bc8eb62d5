#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "src/otlp/settings.h"
#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::inline v0::otlp {

enum class Outcome {
  kAccepted,
  kRefused,  // certainly not taken; the same bytes may be refused again
  kUnknown,  // an attempt had no whole answer: the server may have taken it
};

// What a collector has to say of a request that it took.
struct PartialSuccess {
  std::uint64_t rejected = 0;  // items
  // Why, or a warning; 256 bytes of it at most, without control characters.
  std::string message = {};
};

struct Delivered {
  Outcome outcome = Outcome::kRefused;
  PartialSuccess partial = {};  // of an accepted request
  // Refused for what it is: sent again, it would be again. If the outcome is
  // unknown, nobody will ever know it.
  bool final = false;
  std::string error = {};  // why it was not accepted
};

// Reads bytes of anyone; nothing from what is no such answer.
PartialSuccess read_partial_success(const Response& response) noexcept;

// `text` in the gzip format; empty when there is no memory for it.
std::string gzip(std::string_view text);

// Sends one request, again and again while there is hope and time.
//
// Thread-safety: none but cancel().
class Delivery {
 public:
  // Waits that many seconds; false: it is over, send nothing more.
  using Wait = std::function<bool(double seconds)>;

  Delivery(const Settings& settings, std::shared_ptr<Transport> transport,
           std::shared_ptr<const Clock> clock, Wait wait);

  // Within `seconds`; `items` are in it. Between two calls a server's
  // Retry-After goes on.
  Delivered send(std::string_view body, std::uint64_t items, double seconds);

  // Whether a server's Retry-After lets anything be sent before that time.
  bool is_open(double deadline) const { return not_before_ < deadline; }

  double now() const { return clock_->monotonic(); }

 private:
  Response send_once(std::string_view body, double seconds);

  std::string url_;
  Pairs headers_;
  bool gzip_;
  double timeout_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<const Clock> clock_;
  Wait wait_;
  std::minstd_rand random_;
  double not_before_ = 0.0;  // clock_->monotonic()
};

}  // namespace vllm_metrics::inline v0::otlp
