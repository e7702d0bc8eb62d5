#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm_metrics::inline v0::http {

class BodyPool;

// The text of one answer, lent to it until the last byte is sent: the writer
// of the page goes on to the next one meanwhile.
struct Body {
  BodyPool* pool;
  std::string text = {};
  std::string content_type = {};  // of an extra page
};

// Keeps the bodies of the last answers, so that the next ones find memory of
// the right size. Thread-safety: one thread.
class BodyPool {
 public:
  BodyPool() { idle_.reserve(kKept); }

  // With the text of an earlier answer in it.
  std::unique_ptr<Body> take() {
    auto body = idle_.empty() ? std::make_unique<Body>(Body{this, {}})
                              : std::move(idle_.back());
    if (!idle_.empty()) idle_.pop_back();
    return body;
  }

  // The form MHD calls when an answer is sent or given up.
  static void give_back(void* lent) noexcept {
    std::unique_ptr<Body> body(static_cast<Body*>(lent));
    auto& idle = body->pool->idle_;
    if (idle.size() < kKept) idle.push_back(std::move(body));
  }

 private:
  // A pair of Prometheus servers scrapes at the same time; more are a peak
  // whose memory is not kept.
  static constexpr std::size_t kKept = 2;

  std::vector<std::unique_ptr<Body>> idle_;
};

}  // namespace vllm_metrics::inline v0::http
