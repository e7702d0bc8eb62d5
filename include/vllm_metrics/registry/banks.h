#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/primitives/bank.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/registry/series_store.h"

namespace vllm_metrics::inline v0 {

// Some equal banks, one for each engine, and the way a scrape reads them: bank
// after bank. Registry::make_banks() makes them where its series lie.
//
// Thread-safety: as Bank.
class VLLM_METRICS_EXPORT Banks final : public SnapshotSource {
 public:
  // In private memory.
  Banks(std::size_t count, std::size_t cell_count);
  // In a store's.
  Banks(SeriesStore::Place place, std::size_t count, std::size_t cell_count);

  Bank bank(std::size_t index) const noexcept { return banks_[index]; }
  std::size_t word_count() const noexcept {
    return banks_.size() * cell_count_;
  }
  bool is_stored() const noexcept { return is_stored_; }
  // False: the cells go on as others left them.
  bool is_new() const noexcept { return is_new_; }

  void read(std::span<std::uint64_t> words) const noexcept override;

  // From one bank to the next, bytes.
  static constexpr std::size_t stride(std::size_t cell_count) noexcept {
    constexpr std::size_t kLine = alignof(BankHeader);
    return (Bank::size_bytes(cell_count) + kLine - 1) / kLine * kLine;
  }

 private:
  std::size_t cell_count_;
  bool is_stored_;
  bool is_new_;
  std::shared_ptr<void> memory_;
  std::vector<Bank> banks_;
};

}  // namespace vllm_metrics::inline v0
