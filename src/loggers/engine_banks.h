#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "vllm_metrics/primitives/bank.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0 {

// The memory of some equal banks, one for each engine, and the way a scrape
// reads them: bank after bank.
class EngineBanks final : public SnapshotSource {
 public:
  EngineBanks(std::size_t engines, std::size_t cell_count)
      : cell_count_(cell_count) {
    for (std::size_t i = 0; i < engines; ++i) {
      memory_.emplace_back(
          ::operator new(Bank::size_bytes(cell_count), kAlignment));
      banks_.push_back(Bank::create(memory_.back().get(), cell_count));
    }
  }

  Bank bank(std::size_t engine) const noexcept { return banks_[engine]; }

  void read(std::span<std::uint64_t> words) const noexcept override {
    for (std::size_t i = 0; i < banks_.size(); ++i)
      banks_[i].copy_to(words.subspan(i * cell_count_, cell_count_));
  }

 private:
  static constexpr std::align_val_t kAlignment{alignof(BankHeader)};
  struct Free {
    void operator()(void* memory) const noexcept {
      ::operator delete(memory, kAlignment);
    }
  };

  std::size_t cell_count_;
  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<Bank> banks_;
};

}  // namespace vllm_metrics::inline v0
