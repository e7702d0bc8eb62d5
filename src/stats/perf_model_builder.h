#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "vllm_metrics/stats/perf_model.h"

namespace vllm_metrics::inline v0 {

// Multiplies out what PerfModel needs of a shape. The letters are those of the
// formulas: H hidden, L layers, q and k heads and d their size, w weight bytes,
// a activation bytes, b cache bytes.
class PerfModel::Builder {
 public:
  // Why a shape cannot be built from; empty: it can.
  static std::string refusal_of(const ModelShape& shape);

  // `shape` must have no refusal.
  Builder(const ModelShape& shape, PerfModel& model);

  void build();

  // Whether no product came near the end of the integers.
  static bool fits(const PerfModel& model) noexcept;

 private:
  using Product = std::initializer_list<std::uint64_t>;
  struct Term {
    Quantity quantity;
    Product factors;
  };

  void add_attention();
  void add_mla();
  void add_mla_query();
  void add_dense();
  void add_routed();
  void add_shared();
  void add_unembedding();

  static void add(Sum& sum, std::string_view name,
                  std::initializer_list<Term> terms);
  // A step's read of weights: bytes are cut to an integer after multiplying.
  static void add_weights(Sum& sum, std::string_view name, Product weights);
  static void add_part(Sum& sum, const Part& part);

  const ModelShape& shape_;
  PerfModel& model_;
  std::uint64_t model_half_bytes_ = 0;  // of one weight, not quantised
  std::uint64_t half_bytes_ = 0;        // of one weight, quantised
  std::uint64_t b_ = 0;
  std::uint64_t H_ = 0;
  std::uint64_t L_ = 0;
  std::uint64_t q_ = 0;
  std::uint64_t k_ = 0;
  std::uint64_t dense_layers_ = 0;
  std::uint64_t moe_layers_ = 0;
  std::uint64_t dense_width_ = 0;
  std::uint64_t expert_width_ = 0;
};

}  // namespace vllm_metrics::inline v0
