#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/kv_connector_stats.h"

namespace vllm_metrics::inline v0 {

// What a call of the Mooncake store did, label `operation`.
enum class MooncakeOperation : std::uint8_t {
  kLookupExists,  // the scheduler asked which prefix is there
  kSaveExists,    // a worker asked which keys need not be saved
  kSavePut,
  kLoadGet,
};
inline constexpr std::size_t kMooncakeOperations = 4;

// How it ended, label `status`.
enum class MooncakeStatus : std::uint8_t {
  kOk,
  kPartialFailure,  // some of the keys failed
  kError,           // the call itself failed
};
inline constexpr std::size_t kMooncakeStatuses = 3;

// Calls of a Mooncake store in one step. Each worker fills its own;
// aggregate() makes one of them.
//
// Definition: vLLM MooncakeStoreConnectorStats.
class VLLM_METRICS_EXPORT MooncakeStoreStats final : public KvConnectorStats {
 public:
  struct Call {
    MooncakeOperation operation = MooncakeOperation::kLookupExists;
    MooncakeStatus status = MooncakeStatus::kOk;
    double seconds = 0.0;
    std::int64_t num_keys = 0;
    std::int64_t num_bytes = 0;  // moved; 0 for a lookup
    std::int64_t num_failed_keys = 0;
  };
  std::vector<Call> calls = {};

  void record(const Call& call) { calls.push_back(call); }

  // Appends what another worker did.
  void aggregate(const MooncakeStoreStats& other) {
    calls.insert(calls.end(), other.calls.begin(), other.calls.end());
  }

  // Ready for the next step; keeps its storage.
  void reset() noexcept { calls.clear(); }

  std::string_view connector() const noexcept override {
    return "mooncake_store";
  }
  bool empty() const noexcept override { return calls.empty(); }
};

}  // namespace vllm_metrics::inline v0
