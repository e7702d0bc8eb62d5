#pragma once

#include <cstddef>
#include <string_view>

#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::inline v0::otlp {

// Takes an answer of HTTP as it comes from anyone, its head line by line and
// its body piece by piece, and keeps what a Response has of it: 64 KiB of
// either at most.
//
// Thread-safety: none. No real clock: `now` is when the answer came, seconds
// since 1970, for a Retry-After that is a date.
class AnswerReader {
 public:
  explicit AnswerReader(double now) : now_(now) {}

  // One line with its end. False: the head is too long, read no more.
  bool take_head(std::string_view line);

  // False: there is enough of it, read no more.
  bool take_body(std::string_view bytes);

  // Whether the head of a last answer, not of a 1xx, has come to its end.
  bool has_head() const { return state_ == State::kHasHead; }

  // With the status 0 unless has_head().
  Response take();

 private:
  enum class State { kNothing, kInHead, kHasHead };
  void read_field(std::string_view name, std::string_view value);

  double now_;
  State state_ = State::kNothing;
  std::size_t head_size_ = 0;
  Response response_ = {};
};

}  // namespace vllm_metrics::inline v0::otlp
