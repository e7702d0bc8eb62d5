#pragma once

#include <atomic>
#include <cstddef>

namespace vllm_metrics {

// What allocation_count.h counts.
inline std::atomic<std::size_t> allocations{0};
inline std::atomic<std::ptrdiff_t> live_bytes{0};  // allocated and not freed

// How many allocations `work()` makes, those of other threads included.
template <class Work>
std::size_t allocations_of(Work&& work) {
  const std::size_t before = allocations.load();
  work();
  return allocations.load() - before;
}

// By how many bytes the memory in use grows through `work()`.
template <class Work>
std::ptrdiff_t growth_of(Work&& work) {
  const std::ptrdiff_t before = live_bytes.load();
  work();
  return live_bytes.load() - before;
}

}  // namespace vllm_metrics
