#include "src/tools/sim/sim_options.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "src/tools/sim/kv_block_pool.h"

namespace vllm_metrics::sim {
namespace {

absl::StatusOr<SimOptions> parse(std::vector<const char*> arguments) {
  return parse_options(arguments);
}

std::string error_of(std::vector<const char*> arguments) {
  return std::string(parse(std::move(arguments)).status().message());
}

TEST_CASE("SimOptions: a value follows its flag or an equals sign", "[tools]") {
  const auto options = parse(
      {"--engines", "4", "--block-size=32", "--speed", "max", "--seconds=2.5",
       "--begin=1e9", "--no-prefix-caching", "--num-gpu-blocks", "unlimited",
       "--metrics-version", "0.28", "--seed", "18446744073709551615"});
  REQUIRE(options.ok());
  CHECK(options->parameters.engine.engines == 4);
  CHECK(options->parameters.engine.block_size == 32);
  CHECK(std::isinf(options->speed));
  CHECK(options->seconds == 2.5);
  CHECK(options->begin == 1e9);
  CHECK_FALSE(options->parameters.engine.enable_prefix_caching);
  CHECK(options->parameters.engine.num_gpu_blocks == KvBlockPool::kUnlimited);
  CHECK(options->wire_version == WireVersion{0, 28});
  CHECK(options->seed == 18446744073709551615u);
}

TEST_CASE("SimOptions: without flags it is one engine in real time",
          "[tools]") {
  const auto options = parse({});
  REQUIRE(options.ok());
  CHECK(options->parameters.engine.engines == 1);
  CHECK(options->speed == 1.0);
  CHECK_FALSE(options->seconds.has_value());
  CHECK_FALSE(options->begin.has_value());
  CHECK_FALSE(options->parameters.engine.num_gpu_blocks.has_value());
  CHECK_FALSE(options->listen.has_value());
}

TEST_CASE("SimOptions: an error names flag, value and what is allowed",
          "[tools]") {
  CHECK(error_of({"--engines", "0"}) ==
        "--engines = 0; allowed: a whole number from 1 to 256");
  CHECK(error_of({"--engines=2x"}) ==
        "--engines = 2x; allowed: a whole number from 1 to 256");
  CHECK(error_of({"--speed", "fast"}) ==
        "--speed = fast; allowed: a number from 0.001 to 1000000000, or max");
  CHECK(error_of({"--begin", "-1"}) ==
        "--begin = -1; allowed: a number from 0 to 3153600000, or now");
  CHECK(error_of({"--prefix-share", "nan"}) ==
        "--prefix-share = nan; allowed: a number from 0 to 1");
  CHECK(error_of({"--num-gpu-blocks", "-1"}) ==
        "--num-gpu-blocks = -1; allowed: a whole number from 0 to 100000000, "
        "or unlimited");
  CHECK(error_of({"--seed", "-1"}) ==
        "--seed = -1; allowed: a whole number from 0 to 18446744073709551615");
  CHECK(error_of({"--metrics-version", "0.26"}) ==
        "--metrics-version = 0.26; allowed: 0.27, 0.28, 0.29, 0.30, "
        "0.31 or 0.32");
  CHECK(error_of({"--page="}) ==
        "--page = ; allowed: a text that is not empty");
  CHECK(error_of({"--rate"}) ==
        "--rate: no value; allowed: a number from 1e-06 to 1000000");
  CHECK(error_of({"--sped", "1"}) == "--sped: no such flag; --help lists them");
  CHECK(error_of({"trace.csv"}) ==
        "trace.csv: no such flag; --help lists them");
  CHECK(error_of({"--help=no"}) == "--help=no: --help takes no value");
}

TEST_CASE("SimOptions: a flag that could do nothing is refused", "[tools]") {
  CHECK(error_of({"--rate", "3", "--trace", "x"}) ==
        "--rate: allowed only without --trace x, it shapes the workload of its "
        "own");
  CHECK(error_of({"--rate", "3", "--concurrency", "5"}) ==
        "--rate: allowed only without --concurrency, whose clients ask when "
        "they have an answer");
  CHECK(error_of({"--linger", "3"}) ==
        "--linger: allowed only with --listen, whose endpoint it keeps");
  CHECK(error_of({"--acceptance-rate", "0.5"}) ==
        "--acceptance-rate: allowed only with --speculative-tokens above 0");
  CHECK(error_of({"--kv-transfer-bandwidth", "9"}) ==
        "--kv-transfer-bandwidth: allowed only with --kv-transfer");
  CHECK(error_of({"--routing", "sticky"}) ==
        "--routing: allowed only with more than one of --engines");
  CHECK(error_of({"--enable-expert-parallel"}) ==
        "--enable-expert-parallel: allowed only for a --model with experts");
  CHECK(error_of({"--scenario", "healthy", "--trace", "x"}) ==
        "--scenario: allowed only without --trace, it has its own workload");
}

TEST_CASE("SimOptions: what does not go together is refused", "[tools]") {
  CHECK(error_of({"--turns", "3"}) ==
        "--turns = 3; allowed: 1 without concurrency, whose clients have the "
        "conversations");
  CHECK(error_of({"--kv-cache-metrics", "--num-gpu-blocks", "0"}) ==
        "--kv-cache-metrics = on; allowed: only with a limit on "
        "num-gpu-blocks, as without one no block is ever evicted");
  CHECK_THAT(error_of({"--model", "no/such/file"}),
             Catch::StartsWith("--model = no/such/file; allowed: dense-8b, "
                               "dense-70b, moe-30b"));
  CHECK_THAT(error_of({"--device", "T5"}),
             Catch::StartsWith("--device = T5; allowed: V100 SXM2 16GB, "));
  CHECK_THAT(error_of({"--device", "T4"}),
             Catch::StartsWith("--gpu-memory-utilization = 0.9: of the 16 GB"));
}

TEST_CASE("SimOptions: --page-at may be given more than once", "[tools]") {
  const auto options =
      parse({"--page-at", "60:b", "--page-at=2.5:a:c", "--page-at", "60:-"});
  REQUIRE(options.ok());
  REQUIRE(options->pages.size() == 3);
  CHECK(options->pages[0].at == to_ticks(2.5));
  CHECK(options->pages[0].file == "a:c");
  CHECK(options->pages[1].file == "b");
  CHECK(options->pages[2].file == "-");
  for (const char* text : {"60", "60:", ":a", "x:a", "-1:a"}) {
    CHECK_THAT(error_of({"--page-at", text}),
               Catch::StartsWith(std::string("--page-at = ") + text));
  }
}

TEST_CASE("Parameters: values are checked wherever they come from", "[tools]") {
  const auto refusal = [](auto change) {
    Parameters parameters;
    change(parameters);
    return std::string(validate(parameters).message());
  };
  CHECK(refusal([](Parameters&) {}).empty());
  CHECK(refusal([](Parameters& p) { p.scheduler.max_num_seqs = 0; }) ==
        "max-num-seqs = 0; allowed: a whole number from 1 to 1073741824");
  CHECK(refusal([](Parameters& p) { p.engine.kv_cache_dtype = "int3"; }) ==
        "kv-cache-dtype = int3; allowed: auto, fp8, fp8_e4m3, fp8_e5m2, "
        "nvfp4");
  CHECK(refusal([](Parameters& p) { p.workload.prefix_share = 1.5; }) ==
        "prefix-share = 1.5; allowed: a number from 0 to 1");
  CHECK(refusal([](Parameters& p) { p.workload.corrupted_share = 0.5; }) ==
        "corrupted-share = 0.5; allowed: 0 without compute-nans-in-logits, "
        "which finds them");
  CHECK(refusal([](Parameters& p) { p.engine.shape.hidden_size = 0; }) != "");
}

TEST_CASE("SimOptions: --listen takes an address and a port", "[tools]") {
  const auto of = [](const char* text) {
    const auto parsed = parse_host_port(text);
    if (!parsed.has_value()) return std::string("refused");
    return parsed->host + " " + std::to_string(parsed->port);
  };
  CHECK(of("127.0.0.1:8000") == "127.0.0.1 8000");
  CHECK(of("localhost:0") == "127.0.0.1 0");
  CHECK(of("[::1]:65535") == "::1 65535");
  for (const char* text : {"", "8000", ":8000", "1.2.3.4", "1.2.3.4:",
                           "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4:8o"}) {
    CHECK(of(text) == "refused");
  }
}

TEST_CASE("SimOptions: the help fits a terminal of 80 columns", "[tools]") {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
}

}  // namespace
}  // namespace vllm_metrics::sim
