#pragma once

// Counts the allocations of a whole test program. Include it in one file of the
// program: it replaces the global operator new. Other files include
// allocation_counter.h.

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/allocation_counter.h"

namespace vllm_metrics {

inline void* counted_allocation(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  live_bytes.fetch_add(static_cast<std::ptrdiff_t>(malloc_usable_size(memory)),
                       std::memory_order_relaxed);
  return memory;
}

inline void counted_free(void* memory) {
  live_bytes.fetch_sub(static_cast<std::ptrdiff_t>(malloc_usable_size(memory)),
                       std::memory_order_relaxed);
  std::free(memory);
}

inline void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace vllm_metrics

// The array forms come back to these; those that do not throw would, too, but
// not under AddressSanitizer.
void* operator new(std::size_t size) {
  return vllm_metrics::or_throw(
      vllm_metrics::counted_allocation(size, alignof(std::max_align_t)));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return vllm_metrics::or_throw(vllm_metrics::counted_allocation(
      size, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return vllm_metrics::counted_allocation(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment,
                   const std::nothrow_t&) noexcept {
  return vllm_metrics::counted_allocation(size,
                                          static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  vllm_metrics::counted_free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  vllm_metrics::counted_free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  vllm_metrics::counted_free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  vllm_metrics::counted_free(memory);
}
