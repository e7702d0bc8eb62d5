#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

namespace vllm_metrics::bench {

// A thread that scrapes again and again while it lives.
class Scraper {
 public:
  explicit Scraper(std::function<void()> scrape)
      : scrape_(std::move(scrape)), thread_([this] { run(); }) {
    while (scrapes_.load() < 200) std::this_thread::yield();
  }
  ~Scraper() { stop(); }

  double scrapes_per_second() {
    stop();
    return static_cast<double>(scrapes_.load()) / seconds_;
  }

 private:
  void run() {
    const auto start = std::chrono::steady_clock::now();
    while (!stop_.load(std::memory_order_relaxed)) {
      scrape_();
      scrapes_.fetch_add(1, std::memory_order_relaxed);
    }
    seconds_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::function<void()> scrape_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> scrapes_{0};
  double seconds_ = 1.0;
  std::thread thread_;
};

}  // namespace vllm_metrics::bench
