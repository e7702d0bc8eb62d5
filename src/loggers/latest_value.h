#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace vllm_metrics::inline v0 {

// Hands the newest of a stream of values from one thread to another, neither
// waiting for the other: three slots, of which the writer fills one, the reader
// holds one, and the third lies between them.
//
// Thread-safety: one writer, one reader (each its own caller's lock).
// Wait-free.
template <class T>
class LatestValue {
 public:
  // The writer's slot; what is in it is some older value.
  T& back() noexcept { return slots_[back_]; }

  // Makes back() the newest. Release: the reader that takes the slot sees what
  // was written; acquire: what comes back was last read before it was left.
  void publish() noexcept {
    back_ = middle_.exchange(back_ | kNew, std::memory_order_acq_rel) & kSlot;
  }

  // The newest value; stays until the next call.
  const T& read() noexcept {
    if ((middle_.load(std::memory_order_relaxed) & kNew) != 0) {
      front_ = middle_.exchange(front_, std::memory_order_acq_rel) & kSlot;
    }
    return slots_[front_];
  }

 private:
  static constexpr std::uint8_t kSlot = 3;
  static constexpr std::uint8_t kNew = 4;

  std::array<T, 3> slots_{};
  std::uint8_t back_ = 0;
  std::atomic<std::uint8_t> middle_{1};
  std::uint8_t front_ = 2;
};

}  // namespace vllm_metrics::inline v0
