#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace vllm_metrics::inline v0 {

// From an engine index to its place in the list of declared ones. Nearly
// always they are 0, 1, 2, ..., which needs no search.
class EngineIndexMap {
 public:
  explicit EngineIndexMap(const std::vector<int>& indexes)
      : size_(indexes.size()) {
    for (std::size_t place = 0; place < size_; ++place) {
      sorted_.emplace_back(indexes[place], place);
      in_order_ = in_order_ && indexes[place] == static_cast<int>(place);
    }
    std::ranges::sort(sorted_);
  }

  std::optional<std::size_t> find(int engine_index) const noexcept {
    if (in_order_) {
      const auto place = static_cast<std::size_t>(
          engine_index);  // a negative one becomes huge
      return place < size_ ? std::optional(place) : std::nullopt;
    }
    const auto it = std::ranges::lower_bound(
        sorted_, engine_index, {}, &std::pair<int, std::size_t>::first);
    return it != sorted_.end() && it->first == engine_index
               ? std::optional(it->second)
               : std::nullopt;
  }

 private:
  std::size_t size_;
  std::vector<std::pair<int, std::size_t>> sorted_;
  bool in_order_ = true;
};

}  // namespace vllm_metrics::inline v0
