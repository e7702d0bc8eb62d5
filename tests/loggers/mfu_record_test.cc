#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/stats/perf_breakdown.h"
#include "vllm_metrics/stats/perf_model.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;
using Lines = std::vector<std::string>;

struct MfuSetup {
  bool enabled = true;
  bool debug = false;
  bool aggregated = false;
};

// An engine that estimates its work.
class EstimatingEngine : public Surroundings {
 public:
  explicit EstimatingEngine(const MfuSetup& setup = {}) {
    StatLoggerOptions given = options();
    given.enable_mfu_metrics = setup.enabled;
    given.debug_mfu_metrics = setup.debug;
    given.aggregate_engine_logging = setup.aggregated;
    manager_ = *StatLoggerManager::create(std::move(given));
  }

  void record(const PerfStats& stats) {
    SchedulerStats scheduler;
    scheduler.perf_stats = stats;
    IterationStats iteration;
    iteration.num_generation_tokens = 1;  // the main record is at INFO
    manager_->record(&scheduler, &iteration);
  }
  // The records behind the main one.
  Lines logged_after(double seconds) {
    clock->advance(seconds);
    log->lines.clear();
    manager_->log();
    REQUIRE_FALSE(log->lines.empty());
    log->lines.erase(log->lines.begin());
    return log->lines;
  }

 private:
  std::unique_ptr<StatLoggerManager> manager_;
};

TEST_CASE("MFU record: work per second since the one before", "[loggers]") {
  EstimatingEngine engine;
  engine.record({30e12, 4e9, 1e9});
  engine.record({10e12, 2e9, 1e9});
  CHECK(engine.logged_after(10) ==
        Lines{"INFO Engine 000: MFU: 4.0 TF/s/GPU 0.8 GB/s/GPU"});
  CHECK(engine.logged_after(10).empty());
  engine.record({0, 0, 0});
  CHECK(engine.logged_after(10).empty());
  // Its clock went on while there was nothing to say.
  engine.record({30e12, 3e9, 0});
  CHECK(engine.logged_after(10) ==
        Lines{"INFO Engine 000: MFU: 1.0 TF/s/GPU 0.1 GB/s/GPU"});
}

TEST_CASE("MFU record: any of the three sums is enough", "[loggers]") {
  EstimatingEngine engine;
  engine.record({0, 0, 5e9});
  CHECK(engine.logged_after(1) ==
        Lines{"INFO Engine 000: MFU: 0.0 TF/s/GPU 5.0 GB/s/GPU"});
}

TEST_CASE("MFU record: no time has passed, so zeros", "[loggers]") {
  EstimatingEngine engine;
  engine.record({1e12, 1e9, 1e9});
  const Lines lines = engine.logged_after(0);
  // At the level of an idle engine, which no time makes of it.
  CHECK(lines == Lines{"DEBUG Engine 000: MFU: 0.0 TF/s/GPU 0.0 GB/s/GPU"});
}

TEST_CASE("MFU record: not without the switch, not in the aggregated log",
          "[loggers]") {
  const bool aggregated = GENERATE(false, true);
  EstimatingEngine engine({.enabled = aggregated, .aggregated = aggregated});
  engine.record({1e12, 1e9, 1e9});
  CHECK(engine.logged_after(1).empty());
  // The counters count all the same.
  CHECK(of_engine0(engine.page(), "vllm:estimated_flops_per_gpu_total") ==
        "1e+12");
}

// The model of the worked numbers: a dense one of 8 billion weights on two
// GPUs.
PerfModel model() {
  ModelShape shape;
  shape.num_hidden_layers = 32;
  shape.hidden_size = 4096;
  shape.num_attention_heads = 32;
  shape.num_kv_heads = 8;
  shape.head_dim = 128;
  shape.vocab_size = 32000;
  shape.intermediate_size = 14336;
  shape.tensor_parallel_size = 2;
  return *PerfModel::create(shape);
}

// Parts of the two worked steps by hand, in units of 1e12 and 1e9: for
// example qkv is 2 * 512 * 4096 * (16 + 2 * 4) * 128 * 32 = 0.412e12.
const char* const kDetails =
    R"(DEBUG Engine 000: MFU details: {
  "prefill_reqs": 1,
  "decode_reqs": 1,
  "num_batches": 2,
  "context_breakdown": {
    "num_prefill_requests": 1,
    "prefill_num_tokens": 512,
    "prefill_context_len": 512,
    "prefill_token_context_product": 262144,
    "num_decode_requests": 1,
    "decode_num_tokens": 1,
    "decode_context_len": 1024,
    "decode_token_context_product": 1024
  },
  "flops_breakdown": {
    "attn.qkv_proj": "0.4TF",
    "attn.attn_qk": "0.0TF",
    "attn.attn_av": "0.0TF",
    "attn.out_proj": "0.3TF",
    "ffn.dense_ffn": "2.9TF",
    "unembed.unembed": "0.0TF"
  },)";

TEST_CASE("MFU record: where the work goes, as indented JSON", "[loggers]") {
  EstimatingEngine engine({.debug = true});
  const PerfModel estimates = model();
  PerfBreakdown breakdown;
  PerfContext prefill;
  prefill.add({.num_scheduled_tokens = 512, .is_new = true});
  PerfStats stats = estimates.estimate(prefill, breakdown);
  breakdown.calculation_seconds = 0.03;
  engine.record(stats);
  PerfContext decode;
  decode.add({.num_scheduled_tokens = 1, .num_computed_tokens = 1023});
  stats = estimates.estimate(decode, breakdown);
  breakdown.calculation_seconds = 0.02;
  engine.record(stats);

  const Lines lines = engine.logged_after(2);
  REQUIRE(lines.size() == 2);
  // (3642263339008 + 7378829312) / 2 s; bytes of both steps / 2 s.
  CHECK(lines[0] == "INFO Engine 000: MFU: 1.8 TF/s/GPU 8.3 GB/s/GPU");
  CAPTURE(lines[1]);
  CHECK(lines[1].substr(0, std::string(kDetails).size()) == kDetails);
  CHECK(
      lines[1].ends_with("  },\n  \"duration\": \"2.0s\",\n"
                         "  \"mfu_calc_overhead\": \"2.5%\"\n}"));
  for (const char* key :
       {"  \"num_read_bytes_breakdown\": {\n    \"attn.",
        "  \"num_write_bytes_breakdown\": {\n    \"attn.", "GB\"\n  },\n"}) {
    CHECK(lines[1].find(key) != std::string::npos);
  }
}

TEST_CASE("MFU record: details without a breakdown are empty objects",
          "[loggers]") {
  EstimatingEngine engine({.debug = true});
  engine.record({1e12, 1e9, 1e9});
  const Lines lines = engine.logged_after(1);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].find("\"num_batches\": 0,") != std::string::npos);
  CHECK(lines[1].find("  \"flops_breakdown\": {},\n") != std::string::npos);
}

TEST_CASE("MFU record: details are made at DEBUG only", "[loggers]") {
  Surroundings around;
  StatLoggerOptions options = around.options();
  const auto quiet = std::make_shared<CapturedLog>(LogLevel::kInfo);
  options.log_sink = quiet;
  options.enable_mfu_metrics = true;
  options.debug_mfu_metrics = true;
  const auto manager = *StatLoggerManager::create(options);
  SchedulerStats scheduler;
  scheduler.perf_stats = PerfStats{1e12, 0, 0};
  IterationStats iteration;
  iteration.num_generation_tokens = 1;
  manager->record(&scheduler, &iteration);
  around.clock->advance(1);
  manager->log();
  REQUIRE(quiet->lines.size() == 2);
  CHECK(quiet->lines[1] == "INFO Engine 000: MFU: 1.0 TF/s/GPU 0.0 GB/s/GPU");
}

}  // namespace
}  // namespace vllm_metrics
