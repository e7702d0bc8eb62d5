#include "vllm_metrics/exposition/histogram_value.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace vllm_metrics {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("quantile: is what Prometheus's histogram_quantile() gives",
          "[exposition]") {
  const HistogramValue h{{0.1, 0.5, 1, 10}, {2, 4, 4, 9, 10}, 30};
  CHECK(quantile(0.0, h) == 0.0);
  CHECK(quantile(0.1, h) == Approx(0.05));
  CHECK(quantile(0.2, h) == Approx(0.1));
  CHECK(quantile(0.3, h) == Approx(0.3));
  CHECK(quantile(0.4, h) == Approx(0.5));
  CHECK(quantile(0.5, h) == Approx(2.8));
  CHECK(quantile(0.9, h) == Approx(10));
  CHECK(quantile(0.95, h) == 10.0);  // in +Inf: the highest finite bound
  CHECK(quantile(1.0, h) == 10.0);
  CHECK(quantile(-0.1, h) == -kInf);
  CHECK(quantile(1.1, h) == kInf);
  CHECK(std::isnan(quantile(std::nan(""), h)));
}

TEST_CASE("quantile: the first bucket begins at 0 unless its bound is lower",
          "[exposition]") {
  CHECK(quantile(0.5, {{4, 8}, {10, 10, 10}, 1}) == 2.0);
  CHECK(quantile(0.5, {{-4, 8}, {10, 10, 10}, 1}) == -4.0);
  CHECK(quantile(0.5, {{0, 8}, {10, 10, 10}, 1}) == 0.0);
  CHECK(quantile(0.75, {{-4, 8}, {10, 20, 20}, 1}) == 2.0);
  CHECK(std::isnan(quantile(0.0, {{4, 8}, {0, 10, 10}, 1})));  // as PromQL
}

TEST_CASE("quantile, mean: of nothing are NaN", "[exposition]") {
  CHECK(std::isnan(quantile(0.5, {})));
  CHECK(std::isnan(quantile(0.5, {{1}, {0, 0}, 0})));
  CHECK(std::isnan(quantile(0.5, {{}, {7}, 1})));  // +Inf alone
  CHECK(std::isnan(mean({{1}, {0, 0}, 0})));
  CHECK(mean({{1}, {2, 4}, 10}) == 2.5);
}

TEST_CASE("increase: of a histogram, bucket by bucket", "[exposition]") {
  const HistogramValue before{{1, 2}, {1, 2, 3}, 4.5};
  const HistogramValue after{{1, 2}, {2, 5, 9}, 20};
  const HistogramValue between = increase(before, after);
  CHECK(between.bounds == after.bounds);
  CHECK(between.buckets == std::vector<std::uint64_t>{1, 3, 6});
  CHECK(between.sum == 15.5);
  CHECK(between.count() == 6);
}

TEST_CASE("increase: after a reset is all that there is", "[exposition]") {
  const HistogramValue after{{1, 2}, {2, 5, 9}, 20};
  CHECK(increase({{1, 2}, {9, 9, 9}, 4}, after).buckets == after.buckets);
  CHECK(increase({{1, 2}, {9, 9, 9}, 4}, after).sum == 20.0);
  CHECK(increase({{1, 3}, {1, 1, 1}, 4}, after).buckets == after.buckets);
  CHECK(increase({}, after).buckets == after.buckets);
  CHECK(increase(10.0, 4.0) == 4.0);
  CHECK(increase(4.0, 10.0) == 6.0);
}

TEST_CASE("increase: never falls from bucket to bucket", "[exposition]") {
  const HistogramValue between =
      increase({{1, 2}, {1, 5, 5}, 0}, {{1, 2}, {4, 6, 6}, 0});
  CHECK(between.buckets == std::vector<std::uint64_t>{3, 3, 3});
}

TEST_CASE("rate: is the increase by the seconds, and NaN without any",
          "[exposition]") {
  CHECK(rate(100, 150, 10) == 5.0);
  CHECK(rate(100, 50, 10) == 5.0);  // a restart
  CHECK(std::isnan(rate(1, 2, 0)));
  CHECK(std::isnan(rate(1, 2, -1)));
}

}  // namespace
}  // namespace vllm_metrics
