#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;
using Lines = std::vector<std::string>;

// An engine that speculates with 3 tokens, or a diffusion model.
class DraftingEngine : public Surroundings {
 public:
  explicit DraftingEngine(bool is_diffusion = false) {
    StatLoggerOptions given = options();
    given.num_speculative_tokens = 3;
    given.is_diffusion = is_diffusion;
    manager_ = *StatLoggerManager::create(std::move(given));
  }

  void record(const SpecDecodingStats& stats) {
    SchedulerStats scheduler;
    scheduler.spec_decoding_stats = stats;
    manager_->record(&scheduler, nullptr);
  }
  // The record behind the main one, without its name; empty when there is none.
  std::string logged_after(double seconds) {
    clock->advance(seconds);
    log->lines.clear();
    manager_->log();
    if (log->lines.size() < 2) return {};
    CHECK(log->lines.size() == 2);
    const std::string mark = "Decoding metrics: ";
    const std::string& line = log->lines[1];
    const std::size_t at = line.find(mark);
    return at == line.npos ? line : line.substr(at + mark.size());
  }

  std::string counter(const std::string& name) const {
    return of_engine0(page(), "vllm:" + name + "_total");
  }
  std::string accepted_at(const std::string& position) const {
    return value(page(),
                 "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="
                 "\"0\",model_name=\"m\",position=\"" +
                     position + "\"}");
  }

 private:
  std::unique_ptr<StatLoggerManager> manager_;
};

SpecDecodingStats drafts(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& given) {
  SpecDecodingStats stats;
  stats.num_spec_tokens = 3;
  for (const auto& [tokens, accepted] : given)
    stats.observe_draft(tokens, accepted);
  return stats;
}

TEST_CASE("speculative record: sums of the interval, its own clock",
          "[loggers]") {
  DraftingEngine engine;
  engine.record(drafts({{3, 3}, {3, 1}, {2, 0}}));
  engine.record(drafts({{3, 2}}));
  CHECK(engine.logged_after(4) ==
        "Mean acceptance length: 2.50, Accepted throughput: 1.50 tokens/s, "
        "Drafted throughput: 2.75 tokens/s, Accepted: 6 tokens, Drafted: 11 "
        "tokens, Per-position acceptance rate: 0.750, 0.500, 0.250, Avg Draft "
        "acceptance rate: 54.5%");
  CHECK(engine.logged_after(10).empty());
  // Twenty seconds since the record before: the quiet interval counts.
  engine.record(drafts({{3, 3}}));
  CHECK(engine.logged_after(10) ==
        "Mean acceptance length: 4.00, Accepted throughput: 0.15 tokens/s, "
        "Drafted throughput: 0.15 tokens/s, Accepted: 3 tokens, Drafted: 3 "
        "tokens, Per-position acceptance rate: 1.000, 1.000, 1.000, Avg Draft "
        "acceptance rate: 100.0%");
}

TEST_CASE("speculative record: no time has passed, no throughput",
          "[loggers]") {
  DraftingEngine engine;
  engine.record(drafts({{2, 1}}));
  CHECK(engine.logged_after(0).starts_with(
      "Mean acceptance length: 2.00, Accepted throughput: 0.00 tokens/s, "
      "Drafted throughput: 0.00 tokens/s, Accepted: 1 tokens,"));
}

TEST_CASE("speculative record: no drafts, so no mean and no rate",
          "[loggers]") {
  DraftingEngine engine;
  engine.record(drafts({}));
  CHECK(engine.logged_after(1) ==
        "Mean acceptance length: nan, Accepted throughput: 0.00 tokens/s, "
        "Drafted throughput: 0.00 tokens/s, Accepted: 0 tokens, Drafted: 0 "
        "tokens, Per-position acceptance rate: nan, nan, nan, Avg Draft "
        "acceptance rate: nan%");
}

TEST_CASE("speculative record: drafts without tokens have no rate",
          "[loggers]") {
  DraftingEngine engine;
  engine.record(drafts({{0, 0}, {0, 0}}));
  CHECK(engine.logged_after(1) ==
        "Mean acceptance length: 1.00, Accepted throughput: 0.00 tokens/s, "
        "Drafted throughput: 0.00 tokens/s, Accepted: 0 tokens, Drafted: 0 "
        "tokens, Per-position acceptance rate: 0.000, 0.000, 0.000, Avg Draft "
        "acceptance rate: nan%");
}

TEST_CASE("speculative page: counters of the steps, by position", "[loggers]") {
  DraftingEngine engine;
  CHECK(engine.counter("spec_decode_num_drafts") == "0.0");
  CHECK(engine.accepted_at("2") == "0.0");
  engine.record(drafts({{3, 3}, {3, 1}, {2, 0}}));
  engine.record(drafts({{3, 2}}));
  CHECK(engine.counter("spec_decode_num_drafts") == "4.0");
  CHECK(engine.counter("spec_decode_num_draft_tokens") == "11.0");
  CHECK(engine.counter("spec_decode_num_accepted_tokens") == "6.0");
  CHECK(engine.accepted_at("0") == "3.0");
  CHECK(engine.accepted_at("1") == "2.0");
  CHECK(engine.accepted_at("2") == "1.0");
  CHECK(engine.accepted_at("3") == "absent");
  CHECK(engine.counter("diffusion_num_denoising_steps") == "absent");
}

TEST_CASE("speculative page: positions that were not configured are counted",
          "[loggers]") {
  DraftingEngine engine;
  SpecDecodingStats stats;
  stats.num_drafts = 2;
  stats.num_accepted_tokens_per_pos = {2, 1, 1, 0, 7};
  engine.record(stats);
  CHECK(engine.counter("spec_decode_num_drafts") == "2.0");
  CHECK(engine.accepted_at("2") == "1.0");
  CHECK(engine.accepted_at("4") == "absent");
  CHECK(value(engine.page(),
              "vllm_metrics_rejected_samples_total{engine=\"0\",model_name="
              "\"m\",reason=\"wrong_metric\"}") == "1.0");
}

// The text record made room for as many positions as a step claimed to have.
TEST_CASE("speculative record: a claim of 2^62 positions is not believed",
          "[loggers]") {
  DraftingEngine engine;
  SpecDecodingStats stats;
  stats.num_spec_tokens = std::int64_t{1} << 62;
  stats.num_drafts = 1;
  engine.record(stats);
  const std::string text = engine.logged_after(1);
  CHECK(text.starts_with("Mean acceptance length: 1.00, "));
  CHECK(text.size() < 40'000);
  CHECK(value(engine.page(),
              "vllm_metrics_logger_errors_total{logger=\"logging\","
              "model_name=\"m\"}") == "0.0");
}

TEST_CASE("diffusion record: its own words for the same sums", "[loggers]") {
  DraftingEngine engine(/*is_diffusion=*/true);
  SpecDecodingStats step;
  step.num_drafts = 8;
  step.num_draft_tokens = 256;
  step.num_accepted_tokens = 20;
  engine.record(step);
  engine.record(step);
  CHECK(engine.logged_after(16) ==
        "Committed token throughput: 2.50 tokens/s, Mean denoising steps per "
        "canvas: 12.80, Mean tokens committed per denoising step: 2.50, "
        "Committed: 40 tokens, Denoising steps: 16, Canvas positions "
        "evaluated: 512");
  CHECK(engine.counter("diffusion_num_denoising_steps") == "16.0");
  CHECK(engine.counter("diffusion_num_canvas_positions") == "512.0");
  CHECK(engine.counter("diffusion_num_committed_tokens") == "40.0");
  CHECK(engine.counter("spec_decode_num_drafts") == "absent");
  CHECK(engine.accepted_at("0") == "absent");
}

TEST_CASE("diffusion record: nan where the divisor is 0", "[loggers]") {
  DraftingEngine engine(/*is_diffusion=*/true);
  SpecDecodingStats step;
  step.num_draft_tokens = 32;
  engine.record(step);
  CHECK(engine.logged_after(1) ==
        "Committed token throughput: 0.00 tokens/s, Mean denoising steps per "
        "canvas: nan, Mean tokens committed per denoising step: nan, "
        "Committed: 0 tokens, Denoising steps: 0, Canvas positions evaluated: "
        "32");
}

}  // namespace
}  // namespace vllm_metrics
