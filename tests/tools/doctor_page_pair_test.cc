#include <catch2/catch.hpp>
#include <string>

#include "src/tools/doctor/page_pair.h"
#include "vllm_metrics/exposition/text_parser.h"

namespace vllm_metrics::doctor {
namespace {

// A page as a test wants it: lines of one sample each. TYPE lines are made for
// the families in use.
struct Text {
  std::string text;

  Text& family(const std::string& name, const std::string& kind) {
    text += "# TYPE " + name + " " + kind + "\n";
    return *this;
  }
  Text& line(const std::string& sample) {
    text += sample + "\n";
    return *this;
  }
};

std::string labels(const std::string& engine, const std::string& model = "m") {
  return "{engine=\"" + engine + "\",model_name=\"" + model + "\"}";
}

absl::StatusOr<std::vector<Reading>> read(const Text& before, const Text& after,
                                          PagePair pair = {}) {
  const auto first = parse_page(before.text);
  const auto second = parse_page(after.text);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  if (!before.text.empty()) pair.before = &*first;
  pair.after = &*second;
  return read_pages(pair);
}

std::string refusal(const Text& before, const Text& after) {
  return std::string(read(before, after).status().message());
}

Text tokens(const std::string& engine0, const std::string& engine1 = "") {
  Text page;
  page.family("vllm:num_requests_running", "gauge")
      .line("vllm:num_requests_running" + labels("0") + " 2.0")
      .family("vllm:generation_tokens_total", "counter")
      .line("vllm:generation_tokens_total" + labels("0") + " " + engine0);
  if (!engine1.empty())
    page.line("vllm:generation_tokens_total" + labels("1") + " " + engine1);
  return page;
}

TEST_CASE("read_pages: counts are what happened between the pages, added up",
          "[tools]") {
  const auto readings = read(tokens("100.0", "7.0"), tokens("150.0", "10.0"),
                             {.measured_elapsed = 10.0});
  REQUIRE(readings.ok());
  REQUIRE(readings->size() == 1);
  const Reading& m = readings->front();
  CHECK(m.model == "m");
  CHECK(m.generation_tokens == 53.0);
  CHECK(m.per_second(m.generation_tokens) == 5.3);
  CHECK_FALSE(m.restarted);
  REQUIRE(m.engines.size() == 2);
  CHECK(m.engines[0].generation_tokens == 50.0);
  CHECK(m.engines[1].generation_tokens == 3.0);
  CHECK(m.running->mean() == 2.0);
  CHECK_FALSE(m.kv_usage.has_value());
  CHECK_FALSE(m.ttft.has_value());
}

TEST_CASE("read_pages: a counter that fell began anew at 0", "[tools]") {
  const auto readings = read(tokens("100.0"), tokens("30.0"));
  REQUIRE(readings.ok());
  CHECK(readings->front().generation_tokens == 30.0);
  CHECK(readings->front().restarted);
}

TEST_CASE("read_pages: without an earlier page all counts are since the start",
          "[tools]") {
  const auto readings = read({}, tokens("30.0"));
  REQUIRE(readings.ok());
  CHECK(readings->front().generation_tokens == 30.0);
  CHECK(readings->front().since_start);
}

TEST_CASE("read_pages: a series that is new counts from 0", "[tools]") {
  const auto readings = read(tokens("100.0"), tokens("100.0", "4.0"));
  REQUIRE(readings.ok());
  CHECK(readings->front().generation_tokens == 4.0);
}

Text latencies(const std::string& family, int fast, int slow) {
  Text page;
  const auto bucket = [&](const std::string& le, int count) {
    page.line(family + "_bucket{le=\"" + le + "\",model_name=\"m\"} " +
              std::to_string(count));
  };
  page.family(family, "histogram");
  bucket("0.1", fast);
  bucket("0.2", fast + slow);
  bucket("+Inf", fast + slow);
  page.line(family + "_sum{model_name=\"m\"} " +
            std::to_string(fast * 0.05 + slow * 0.15));
  page.line(family + "_count{model_name=\"m\"} " + std::to_string(fast + slow));
  return page;
}

TEST_CASE("read_pages: a histogram has the observations between the pages",
          "[tools]") {
  const std::string name = GENERATE("vllm:inter_token_latency_seconds",
                                    "vllm:time_per_output_token_seconds");
  const auto readings =
      read(latencies(name, 1000, 0), latencies(name, 1060, 40));
  REQUIRE(readings.ok());
  const auto& itl = readings->front().itl;
  REQUIRE(itl.has_value());
  CHECK(itl->count() == 100);
  CHECK(mean(*itl) == Approx(0.09));
  CHECK(quantile(0.3, *itl) == Approx(0.05));
  CHECK(quantile(0.8, *itl) == Approx(0.15));
}

TEST_CASE("read_pages: the names of older versions are known", "[tools]") {
  Text page;
  page.family("vllm:gpu_cache_usage_perc", "gauge")
      .line("vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.25")
      .family("vllm:gpu_prefix_cache_queries_total", "counter")
      .line("vllm:gpu_prefix_cache_queries_total{model_name=\"m\"} 10")
      .family("vllm:gpu_prefix_cache_hits_total", "counter")
      .line("vllm:gpu_prefix_cache_hits_total{model_name=\"m\"} 4");
  const auto readings = read({}, page);
  REQUIRE(readings.ok());
  CHECK(readings->front().kv_usage->after == 0.25);
  CHECK(readings->front().hit_rate() == 0.4);
}

TEST_CASE("read_pages: each model has a reading of its own", "[tools]") {
  Text page = tokens("5.0");
  page.line("vllm:generation_tokens_total" + labels("0", "a") + " 9.0");
  const auto readings = read({}, page);
  REQUIRE(readings.ok());
  REQUIRE(readings->size() == 2);
  CHECK((*readings)[0].model == "a");
  CHECK((*readings)[0].generation_tokens == 9.0);
  CHECK((*readings)[1].model == "m");
}

TEST_CASE("read_pages: the simulator's clock comes before a measured time",
          "[tools]") {
  const auto clock = [](const std::string& seconds) {
    return tokens("0.0")
        .family("vllm_metrics_sim_seconds", "gauge")
        .line("vllm_metrics_sim_seconds " + seconds);
  };
  const auto elapsed = [&](PagePair pair) {
    return read(clock("5.0"), clock("65.0"), pair)->front().elapsed;
  };
  CHECK(elapsed({.measured_elapsed = 1.0}) == 60.0);
  CHECK(elapsed({.stated_elapsed = 2.0, .measured_elapsed = 1.0}) == 2.0);
  CHECK(refusal(clock("65.0"), clock("5.0")) ==
        "the pages are in the wrong order: the clock of the later one, "
        "vllm_metrics_sim_seconds, is behind");
}

TEST_CASE("read_pages: pages of two servers are refused", "[tools]") {
  Text other;
  other.family("vllm:generation_tokens_total", "counter")
      .line("vllm:generation_tokens_total" + labels("0", "other") + " 1.0");
  CHECK(refusal(tokens("1.0"), other) ==
        "the pages are of different servers: one has the models m, the other "
        "other");

  const auto started = [](const std::string& time, const std::string& count) {
    return tokens(count)
        .family("process_start_time_seconds", "gauge")
        .line("process_start_time_seconds " + time);
  };
  CHECK(refusal(started("2e9", "5.0"), started("1e9", "6.0"))
            .find("the server of the later page started earlier") !=
        std::string::npos);
  CHECK(
      refusal(started("1e9", "5.0"), started("2e9", "6.0"))
          .find("they started at different times, and no counter began anew") !=
      std::string::npos);
  CHECK(read(started("1e9", "5.0"), started("2e9", "4.0")).ok());

  const auto configured = [](const std::string& blocks) {
    return tokens("1.0")
        .family("vllm:cache_config_info", "gauge")
        .line(
            "vllm:cache_config_info{block_size=\"16\",engine=\"0\","
            "num_gpu_blocks=\"" +
            blocks + "\"} 1.0");
  };
  CHECK(
      refusal(configured("100"), configured("200")) ==
      "the pages are of different servers: vllm:cache_config_info is another");
  CHECK(read({}, configured("200"))->front().kv_tokens == 3200.0);
}

TEST_CASE("read_pages: a page that lacks the last families is cut short",
          "[tools]") {
  Text whole = tokens("5.0")
                   .family("vllm:prompt_tokens_total", "counter")
                   .line("vllm:prompt_tokens_total" + labels("0") + " 1.0");
  const std::string end =
      " page is cut short, or of another server: it ends with "
      "vllm:generation_tokens_total, and 1 families of the other page are "
      "missing";
  CHECK(refusal(whole, tokens("6.0")) == "the later" + end);
  CHECK(refusal(tokens("4.0"), whole) == "the earlier" + end);
}

TEST_CASE("read_pages: a page without vllm families says whose it is",
          "[tools]") {
  Text page;
  page.family("sglang:num_running_reqs", "gauge")
      .line("sglang:num_running_reqs 1")
      .line("node_load1 1");
  CHECK(refusal({}, page) ==
        "no vllm: family on the page, so nothing is known of a server; its "
        "families begin with node, sglang");
  CHECK(refusal({}, {"\n"}) == "the page has no metrics");
}

TEST_CASE("read_pages: the GPUs' activity is the mean of all of them",
          "[tools]") {
  Text gpus;
  gpus.family("DCGM_FI_PROF_DRAM_ACTIVE", "gauge")
      .line("DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\"} 0.5")
      .line("DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"1\"} 0.7");
  const auto page = parse_page(gpus.text);
  REQUIRE(page.ok());
  const auto readings = read(tokens("1.0"), tokens("2.0"),
                             {.gpus_before = &*page, .gpus_after = &*page});
  REQUIRE(readings.ok());
  CHECK(*readings->front().dram_active == Approx(0.6));
  CHECK_FALSE(readings->front().tensor_active.has_value());
}

}  // namespace
}  // namespace vllm_metrics::doctor
