#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/connector_page.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/stats/nixl_stats.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

constexpr std::size_t kMost = NixlConnectorMetrics::kMaxExactTransfers;

// Engines that move KV blocks through NIXL.
class TransferringEngines : public ConnectedEngines {
 public:
  explicit TransferringEngines(bool aggregated = false)
      : ConnectedEngines(std::make_shared<NixlConnectorMetrics>(), aggregated) {
  }

  std::string sampled() const {
    return value(page(),
                 "vllm_metrics_sampled_kv_transfers_total{model_name=\"m\"}");
  }
};

NixlStats seven_transfers() {
  NixlStats stats;
  stats.record_transfer(1500, 80, 1'048'576, 12);
  stats.record_transfer(2750, 95.5, 5'242'880, 40);
  stats.record_transfer(980, 120, 786'432, 8);
  stats.record_transfer(12000.5, 60, 33'554'432, 256);
  stats.record_transfer(3333.25, 75, 1'000'000, 11);
  stats.record_transfer(640, 300, 123'456'789, 900);
  stats.record_transfer(7100, 110, 64, 1);
  return stats;
}

// Expected figures of this file come from exact fractions, and where rounding
// shows from an emulation of numpy's sum; not from this library.
const char* const kSevenTransfers =
    "Num successful transfers=7, Avg xfer time (ms)=4.043, P90 xfer time "
    "(ms)=9.06, Avg post time (ms)=0.12, P90 post time (ms)=0.192, Avg MB per "
    "transfer=22.492, Throughput (MB/s)=5562.56, Avg number of "
    "descriptors=175.4";

TEST_CASE("NIXL record: exact statistics of the interval", "[loggers]") {
  TransferringEngines engines;
  engines.record(seven_transfers());
  CHECK(engines.logged() == one(kSevenTransfers));
  CHECK(engines.logged().empty());
}

TEST_CASE("NIXL record: steps add up, and each engine has its own",
          "[loggers]") {
  TransferringEngines engines;
  const NixlStats all = seven_transfers();
  for (std::size_t i = 0; i < 7; ++i) {
    NixlStats step;
    step.transfer_duration = {all.transfer_duration[i]};
    step.post_duration = {all.post_duration[i]};
    step.bytes_transferred = {all.bytes_transferred[i]};
    step.num_descriptors = {all.num_descriptors[i]};
    engines.record(step, 1);
  }
  NixlStats single;
  single.record_transfer(2'500'000, 125'000, 3 << 20, 5);
  engines.record(single, 0);
  CHECK(engines.logged() ==
        std::vector<std::string>{
            "Num successful transfers=1, Avg xfer time (ms)=2500.0, P90 xfer "
            "time (ms)=2500.0, Avg post time (ms)=125.0, P90 post time "
            "(ms)=125.0, Avg MB per transfer=3.0, Throughput (MB/s)=1.2, Avg "
            "number of descriptors=5.0",
            kSevenTransfers});
}

TEST_CASE("NIXL record: workers and engines are taken together", "[loggers]") {
  TransferringEngines engines(/*aggregated=*/true);
  const NixlStats all = seven_transfers();
  NixlStats first;
  for (std::size_t i = 0; i < 4; ++i) {
    first.transfer_duration.push_back(all.transfer_duration[i]);
    first.post_duration.push_back(all.post_duration[i]);
    first.bytes_transferred.push_back(all.bytes_transferred[i]);
    first.num_descriptors.push_back(all.num_descriptors[i]);
  }
  NixlStats worker;
  for (std::size_t i = 4; i < 7; ++i) {
    worker.transfer_duration.push_back(all.transfer_duration[i]);
    worker.post_duration.push_back(all.post_duration[i]);
    worker.bytes_transferred.push_back(all.bytes_transferred[i]);
    worker.num_descriptors.push_back(all.num_descriptors[i]);
  }
  NixlStats second;
  second.aggregate(worker);
  engines.record(first, 0);
  engines.record(second, 1);
  CHECK(engines.logged() == one(kSevenTransfers));
}

TEST_CASE("NIXL record: means are added as numpy adds", "[loggers]") {
  TransferringEngines engines;
  NixlStats stats;
  for (int i = 0; i < 200; ++i) {
    stats.transfer_duration.push_back((i * 7919) % 1000 / 7.0 * 1e9);
    stats.post_duration.push_back(stats.transfer_duration.back());
    stats.bytes_transferred.push_back(std::int64_t{1} << 50);
    stats.num_descriptors.push_back(3);
  }
  engines.record(stats);
  CHECK(engines.logged() ==
        one("Num successful transfers=200, Avg xfer time "
            "(ms)=70785714285714.28, P90 xfer time (ms)=128185714285714.28, "
            "Avg post time (ms)=70785714285714.28, P90 post time "
            "(ms)=128185714285714.28, Avg MB per transfer=1073741824.0, "
            "Throughput (MB/s)=0.015, Avg number of descriptors=3.0"));
}

TEST_CASE("NIXL record: without a success, eight whole zeros", "[loggers]") {
  TransferringEngines engines;
  NixlStats stats;
  SECTION("a transfer that failed") { stats.record_failed_transfer(); }
  SECTION("a notification that failed") { stats.record_failed_notification(); }
  SECTION("a request that expired") { stats.record_kv_expired_req(); }
  engines.record(stats);
  CHECK(engines.logged() ==
        one("Num successful transfers=0, Avg xfer time (ms)=0, P90 xfer time "
            "(ms)=0, Avg post time (ms)=0, P90 post time (ms)=0, Avg MB per "
            "transfer=0, Throughput (MB/s)=0, Avg number of descriptors=0"));
  engines.record(NixlStats{});  // nothing happened
  CHECK(engines.logged().empty());
}

TEST_CASE("NIXL record: lists of different lengths divide by nothing",
          "[loggers]") {
  TransferringEngines engines;
  NixlStats stats;
  stats.transfer_duration = {0.5};
  engines.record(stats);
  CHECK(engines.logged() ==
        one("Num successful transfers=1, Avg xfer time (ms)=500.0, P90 xfer "
            "time (ms)=500.0, Avg post time (ms)=0, P90 post time (ms)=0, Avg "
            "MB per transfer=0.0, Throughput (MB/s)=0.0, Avg number of "
            "descriptors=0.0"));
}

// They have no order: looking for P90 among them could leave the list.
TEST_CASE("NIXL record: durations that are not finite are left out",
          "[loggers]") {
  TransferringEngines engines;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  NixlStats stats;
  for (int i = 0; i < 500; ++i) {
    stats.transfer_duration.insert(stats.transfer_duration.end(),
                                   {kNan, 0.25, kInfinity, -kInfinity});
    stats.post_duration.insert(stats.post_duration.end(), 4, kNan);
  }
  engines.record(stats);
  CHECK(engines.logged() ==
        one("Num successful transfers=500, Avg xfer time (ms)=250.0, P90 xfer "
            "time (ms)=250.0, Avg post time (ms)=0, P90 post time (ms)=0, Avg "
            "MB per transfer=0.0, Throughput (MB/s)=0.0, Avg number of "
            "descriptors=0.0"));
  CHECK(of_engine0(engines.page(), "vllm:nixl_xfer_time_seconds_sum") ==
        "125.0");
}

TEST_CASE("NIXL page: seven families, fed by successes and failures",
          "[loggers]") {
  TransferringEngines engines;
  NixlStats stats = seven_transfers();
  stats.record_failed_transfer();
  stats.num_failed_notifications = {1, 2};
  stats.num_kv_expired_reqs = {1, 1, 1};
  engines.record(stats);
  const std::string page = engines.page();
  const auto sample = [&page](const std::string& name) {
    return of_engine0(page, "vllm:nixl_" + name);
  };
  CHECK(sample("xfer_time_seconds_count") == "7.0");
  CHECK(bucket(page, "vllm:nixl_xfer_time_seconds", "0.005") == "5.0");
  CHECK(bucket(page, "vllm:nixl_xfer_time_seconds", "0.01") == "6.0");
  CHECK(sample("post_time_seconds_count") == "7.0");
  CHECK(bucket(page, "vllm:nixl_post_time_seconds", "0.001") == "7.0");
  CHECK(sample("bytes_transferred_count") == "7.0");
  CHECK(sample("bytes_transferred_sum") == "1.65089173e+08");
  CHECK(bucket(page, "vllm:nixl_bytes_transferred", "2048.0") == "1.0");
  CHECK(sample("num_descriptors_count") == "7.0");
  CHECK(sample("num_descriptors_sum") == "1228.0");
  CHECK(sample("num_failed_transfers_total") == "1.0");
  CHECK(sample("num_failed_notifications_total") == "3.0");
  CHECK(sample("num_kv_expired_reqs_total") == "3.0");
}

// Another connector's statistics.
class OtherStats final : public KvConnectorStats {
 public:
  std::string_view connector() const noexcept override { return "other"; }
  bool empty() const noexcept override { return false; }
};

TEST_CASE("NIXL record: statistics of another connector are not its own",
          "[loggers]") {
  TransferringEngines engines;
  engines.record(OtherStats{});
  CHECK(engines.logged().empty());
  CHECK(of_engine0(engines.page(), "vllm:nixl_xfer_time_seconds_count") ==
        "0.0");
}

// `count` transfers of 1 ms, 2 ms, ... 1000 ms and again.
NixlStats transfers(std::size_t count) {
  NixlStats stats;
  for (std::size_t i = 0; i < count; ++i) {
    stats.record_transfer(static_cast<double>(1000 * (i % 1000 + 1)), 100,
                          1 << 20, 2);
  }
  return stats;
}

double number_behind(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key + "=");
  REQUIRE(at != text.npos);
  return std::stod(text.substr(at + key.size() + 1));
}

TEST_CASE("NIXL record: exact up to 16,384 transfers, none of them sampled",
          "[loggers]") {
  TransferringEngines engines;
  engines.record(transfers(kMost));
  CHECK(engines.sampled() == "0.0");
  // 16 rounds of 1000 and the first 384 once more: 8,192 + 147,072 / 16,384.
  CHECK(engines.logged() ==
        one("Num successful transfers=16384, Avg xfer time (ms)=493.281, P90 "
            "xfer time (ms)=898.0, Avg post time (ms)=0.1, P90 post time "
            "(ms)=0.1, Avg MB per transfer=1.0, Throughput (MB/s)=2.027, Avg "
            "number of descriptors=2.0"));
}

TEST_CASE(
    "NIXL record: beyond, P90 is of a sample and everything else exact; the "
    "page says how many were sampled",
    "[loggers]") {
  TransferringEngines engines;
  for (int i = 0; i < 100; ++i) engines.record(transfers(1000));
  CHECK(engines.sampled() == "83616.0");
  const std::string text = engines.logged().at(0);
  CHECK(
      text.starts_with("Num successful transfers=100000, Avg xfer time "
                       "(ms)=500.5, P90 xfer time (ms)="));
  // Of 900.1: six times the deviation of a sample's quantile, 2.34 ms.
  CHECK(number_behind(text, "P90 xfer time (ms)") ==
        Approx(900.1).margin(6 * 2.34));
  CHECK(text.ends_with(
      "Avg MB per transfer=1.0, Throughput (MB/s)=1.998, Avg number of "
      "descriptors=2.0"));

  // The next interval begins anew.
  engines.record(seven_transfers());
  CHECK(engines.logged() == one(kSevenTransfers));
  CHECK(engines.sampled() == "83616.0");
}

TEST_CASE("NIXL record: its memory does not grow with the transfers",
          "[loggers]") {
  TransferringEngines engines;
  const NixlStats step = transfers(1000);
  engines.record(step);
  CHECK(growth_of([&] {
          for (int i = 0; i < 200; ++i) engines.record(step);
        }) == 0);
}

}  // namespace
}  // namespace vllm_metrics
