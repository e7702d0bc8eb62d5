#pragma once

#include <atomic>
#include <thread>

namespace vllm_metrics::bench {

// A thread that sleeps while this lives. In a process with one thread glibc
// locks a mutex without an atomic instruction; an engine has many threads, so
// whoever takes a lock (record() once, prometheus-cpp for each observation)
// pays for it here as it would there.
class SecondThread {
 public:
  SecondThread() : thread_([this] { stop_.wait(false); }) {}
  ~SecondThread() {
    stop_ = true;
    stop_.notify_one();
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace vllm_metrics::bench
