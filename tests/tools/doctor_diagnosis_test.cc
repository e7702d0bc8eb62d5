#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "src/tools/doctor/diagnosis.h"
#include "src/tools/doctor/report_text.h"

namespace vllm_metrics::doctor {
namespace {

// All observations at `value`, or but one in fifty, at `rare`.
HistogramValue around(double value, double rare = 0.0) {
  HistogramValue out;
  out.sum = 1500.0 * value;
  out.bounds = {value * 0.99, value * 1.01};
  out.buckets = {0, 1500, 1500};
  if (rare > 0.0) {
    out.bounds.insert(out.bounds.end(), {rare * 0.99, rare * 1.01});
    out.buckets = {0, 1470, 1470, 1500, 1500};
  }
  return out;
}

// A server that is well: requests run, nobody waits.
Reading well() {
  Reading r;
  r.model = "m";
  r.engines = {{.engine = "0", .prompt_tokens = 1e5}};
  r.running = {20.0, 24.0};
  r.waiting = {0.0, 1.0};
  r.kv_usage = {0.4, 0.5};
  r.ended = Endings{.stop = 100.0, .length = 5.0};
  r.preemptions = 0.0;
  r.prompt_tokens = 1e5;
  r.generation_tokens = 2e4;
  r.prefix_queries = 1e5;
  r.prefix_hits = 6e4;
  r.prefix_queries_before = 1e6;
  r.prefix_hits_before = 6e5;
  r.step_tokens = around(30.0, 2000.0);
  r.ttft = around(0.1);
  r.itl = around(0.01);
  r.tpot = around(0.01);
  r.e2e = around(2.1);
  r.queue_time = around(0.01);
  r.prefill_time = around(0.09);
  r.decode_time = around(2.0);
  r.prompt_length = around(1000.0);
  r.output_length = around(200.0);
  return r;
}

Reading queued() {
  Reading r = well();
  r.waiting = {40.0, 60.0};
  r.queue_time = around(5.0);
  r.ttft = around(5.1);
  return r;
}

std::vector<std::string> found(const Reading& r) {
  std::vector<std::string> ids;
  for (const Finding& finding : diagnose(r).findings)
    ids.emplace_back(finding.id);
  return ids;
}

using Ids = std::vector<std::string>;

TEST_CASE("diagnose: a server that is well has no finding", "[tools]") {
  const Diagnosis diagnosis = diagnose(well());
  CHECK(diagnosis.state == State::kHealthy);
  CHECK(diagnosis.findings.empty());
}

TEST_CASE("diagnose: full is not saturated while nobody waits", "[tools]") {
  Reading r = well();
  r.kv_usage = {0.99, 1.0};
  CHECK(found(r) == Ids{});
}

TEST_CASE("diagnose: a queue means what the KV cache says", "[tools]") {
  Reading r = queued();
  r.kv_usage = {0.95, 0.9};
  CHECK(found(r) == Ids{"queue-saturated"});
  r.preemptions = 20.0;  // one for five requests
  CHECK(found(r) == Ids{"queue-saturated"});
  r.preemptions = 80.0;
  CHECK(found(r) == Ids{"preemption-storm"});

  r = queued();
  r.running = {31.0, 32.0};
  CHECK(found(r) == Ids{"false-saturation"});
  r.running = {32.0, 10.0};  // a limit was lowered
  CHECK(found(r) == Ids{"false-saturation"});
  r.running = {10.0, 32.0};  // no limit is seen
  CHECK(found(r) == Ids{});
  CHECK(diagnose(r).state == State::kUnknown);
  CHECK(diagnose(r).why ==
        "requests queue, and the pages do not show for what");
}

TEST_CASE("diagnose: a contradiction is not taken for saturation", "[tools]") {
  Reading r = well();
  r.waiting = {2.0, 2.0};
  r.kv_usage = {0.0026, 0.0026};
  CHECK(found(r) == Ids{});
}

TEST_CASE("diagnose: without latencies a queue is told with less confidence",
          "[tools]") {
  Reading r = queued();
  r.kv_usage = {0.95, 0.95};
  r.queue_time.reset();
  r.prefill_time.reset();
  const Diagnosis diagnosis = diagnose(r);
  REQUIRE(diagnosis.findings.size() == 1);
  CHECK(diagnosis.findings[0].id == "queue-saturated");
  CHECK(diagnosis.findings[0].confidence == Confidence::kMedium);
}

TEST_CASE("diagnose: a few preemptions are a chance encounter", "[tools]") {
  Reading r = well();
  r.preemptions = 2.0;
  CHECK(found(r) == Ids{});
  r.preemptions = 3.0;  // of 105 requests
  CHECK(found(r) == Ids{"preemption-storm"});
  r.ended = Endings{.stop = 1000.0};
  CHECK(found(r) == Ids{});
}

TEST_CASE("diagnose: busy tensor cores turn a queue into a compute limit",
          "[tools]") {
  Reading r = queued();
  r.running = {4.0, 4.0};
  r.step_tokens = around(8000.0);
  r.tensor_active = 0.8;
  CHECK(found(r) == Ids{"compute-bound"});
  CHECK(diagnose(r).findings[0].confidence == Confidence::kHigh);
  r.tensor_active.reset();  // full steps stand for it
  CHECK(found(r) == Ids{"compute-bound"});
  CHECK(diagnose(r).findings[0].confidence == Confidence::kMedium);
  r.tensor_active = 0.2;
  CHECK(found(r) == Ids{"false-saturation"});
}

TEST_CASE("diagnose: late first tokens of long prompts", "[tools]") {
  Reading r = well();
  r.ttft = around(0.8);
  r.prefill_time = around(0.7);
  CHECK(found(r) == Ids{});  // prompts are not long
  r.prompt_length = around(16000.0);
  CHECK(found(r) == Ids{"long-prompts"});
  CHECK(diagnose(r, {.ttft_p95 = 1.0}).state == State::kHealthy);
}

TEST_CASE("diagnose: stutter is not slowness", "[tools]") {
  Reading r = well();
  r.itl = around(0.01, 0.3);
  CHECK(found(r) == Ids{"prefill-interference"});

  r = well();
  r.itl = around(0.08);
  r.tpot = around(0.08);
  r.decode_time = around(20.0);
  CHECK(found(r) == Ids{"bandwidth-bound"});
  r.dram_active = 0.5;
  CHECK(found(r) == Ids{});
  r.dram_active = 0.8;
  r.tensor_active = 0.15;
  CHECK(found(r) == Ids{"bandwidth-bound"});
}

TEST_CASE("diagnose: the cache's hit rate falls, or its blocks do not last",
          "[tools]") {
  Reading r = well();
  r.prefix_hits = 2e4;
  CHECK(found(r) == Ids{});  // one engine: nothing to scatter over
  r.engines.push_back({.engine = "1", .prompt_tokens = 1.1e5});
  CHECK(found(r) == Ids{"scattered-sessions"});
  r.engines[1].prompt_tokens = 5e5;  // not shared evenly
  CHECK(found(r) == Ids{});

  r.idle_before_evict = around(6.0);
  CHECK(found(r) == Ids{"cache-thrashing"});
  r.idle_before_evict = around(60.0);
  CHECK(found(r) == Ids{});
  r.idle_before_evict = around(6.0);
  r.prefix_hits = 0.0;  // prompts share nothing: nothing is lost
  CHECK(found(r) == Ids{});
}

TEST_CASE("diagnose: clients that give up come with their reason", "[tools]") {
  Reading r = queued();
  r.kv_usage = {0.95, 0.95};
  r.ended = Endings{.stop = 60.0, .abort = 40.0};
  CHECK(found(r) == Ids{"clients-give-up", "queue-saturated"});
  r.ended = Endings{.stop = 960.0, .abort = 40.0};
  CHECK(found(r) == Ids{"queue-saturated"});
}

TEST_CASE("diagnose: idle, and unknown", "[tools]") {
  CHECK(diagnose({}).state == State::kIdle);
  CHECK(found({}) == Ids{"idle"});
  Reading r;
  r.running = {3.0, 3.0};
  r.generation_tokens = 0.0;
  CHECK(diagnose(r).state == State::kUnknown);
  CHECK(diagnose(r).why == "no counter moved between the pages");
}

TEST_CASE("report_text: no line is longer than the terminal is wide",
          "[tools]") {
  Reading r = queued();
  r.kv_usage = {0.95, 0.95};
  r.elapsed = 15.0;
  const int width = GENERATE(60, 80, 160);
  const std::string text = report_text(r, diagnose(r), {.width = width});
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  CHECK(longest <= static_cast<std::size_t>(width));
  CHECK(text.find("1. Requests queue for room in the KV cache.\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace vllm_metrics::doctor
