#include "vllm_metrics/registry/banks.h"

#include <cstddef>
#include <new>
#include <utility>

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::align_val_t kAlignment{alignof(BankHeader)};

std::shared_ptr<void> private_memory(std::size_t bytes) {
  return {::operator new(bytes, kAlignment),
          [](void* memory) { ::operator delete(memory, kAlignment); }};
}

}  // namespace

SeriesStore::~SeriesStore() = default;

Banks::Banks(std::size_t count, std::size_t cell_count)
    : Banks({.memory = private_memory(count * stride(cell_count))}, count,
            cell_count) {
  is_stored_ = false;
}

Banks::Banks(SeriesStore::Place place, std::size_t count,
             std::size_t cell_count)
    : cell_count_(cell_count),
      is_stored_(true),
      is_new_(place.is_new),
      memory_(std::move(place.memory)) {
  auto* next = static_cast<std::byte*>(memory_.get());
  for (std::size_t i = 0; i < count; ++i, next += stride(cell_count)) {
    banks_.push_back(place.is_new ? Bank::create(next, cell_count)
                                  : Bank::attach(next));
  }
}

void Banks::read(std::span<std::uint64_t> words) const noexcept {
  for (std::size_t i = 0; i < banks_.size(); ++i)
    banks_[i].copy_to(words.subspan(i * cell_count_, cell_count_));
}

}  // namespace vllm_metrics::inline v0
