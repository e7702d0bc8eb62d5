#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace vllm_metrics {

// Memory for a bank: aligned to a cache line, as a bank asks for.
class BankMemory {
 public:
  explicit BankMemory(std::size_t bytes) : lines_((bytes + 63) / 64) {}
  void* data() { return lines_.data(); }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  std::vector<Line> lines_;
};

}  // namespace vllm_metrics
