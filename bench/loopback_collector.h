#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace vllm_metrics::bench {

// Listens on a port of its own and answers every POST with 200, or takes what
// comes and never answers.
class LoopbackCollector {
 public:
  enum class Manner { kAnswers, kSilent };

  // Ends the program when there is no port.
  explicit LoopbackCollector(Manner manner);
  ~LoopbackCollector();
  LoopbackCollector(const LoopbackCollector&) = delete;
  LoopbackCollector& operator=(const LoopbackCollector&) = delete;

  const std::string& url() const { return url_; }
  std::size_t answers() const { return answers_.load(); }

 private:
  void serve();

  int listener_;
  std::string url_;
  std::atomic<std::size_t> answers_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;  // none, when silent
};

}  // namespace vllm_metrics::bench
