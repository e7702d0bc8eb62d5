#include "vllm_metrics/registry/native_histogram.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "vllm_metrics/primitives/native_words.h"

namespace vllm_metrics {
namespace {

using Words = std::vector<std::uint64_t>;

Words words_of(std::span<const double> values,
               const NativeHistogramOptions& options = {}) {
  Words words(native_word_count(options.max_buckets));
  NativeWords<std::uint64_t> native(words.data(), options.max_buckets);
  native.reset(options);
  for (const double v : values) native.add(v, 1);
  return words;
}

std::map<std::int32_t, std::uint64_t> buckets(const NativeView& view) {
  std::map<std::int32_t, std::uint64_t> used;
  for (std::size_t i = 0; i < view.counts.size(); ++i) {
    if (view.counts[i] != 0)
      used[view.first_index + static_cast<std::int32_t>(i)] = view.counts[i];
  }
  return used;
}

std::uint64_t count(const NativeView& view) {
  return std::accumulate(view.counts.begin(), view.counts.end(),
                         view.zero_count);
}

std::vector<double> latencies(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<> latency(0.5, 1.5);
  std::vector<double> values(n);
  for (double& v : values) v = latency(random);
  return values;
}

TEST_CASE(
    "native_quantile: the value lies between ends that hold the exact one",
    "[registry]") {
  const int schema = GENERATE(0, 3, 5);
  std::vector<double> values = latencies(10'001, 1);
  const Words words = words_of(values, {.schema = schema, .max_buckets = 1024});
  const NativeView view = native_view(words);
  REQUIRE(view.schema == schema);
  std::ranges::sort(values);
  for (const double q : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    CAPTURE(q);
    const auto rank =
        static_cast<std::size_t>(std::max(0.0, std::ceil(q * 10'001.0) - 1.0));
    const NativeQuantile found = native_quantile(view, q);
    CHECK(found.lower < values[rank]);
    CHECK(values[rank] <= found.upper);
    CHECK(found.lower <= found.value);
    CHECK(found.value <= found.upper);
    CHECK(found.upper / found.lower ==
          Approx(std::exp2(std::ldexp(1.0, -schema))));
  }
}

TEST_CASE("native_quantile: interpolates on a logarithmic scale",
          "[registry]") {
  // Four in (1, 2], four in (2, 4].
  const std::vector<double> values = {1.5, 1.5, 1.5, 1.5, 3.0, 3.0, 3.0, 3.0};
  const Words words = words_of(values, {.schema = 0});
  CHECK(native_quantile(native_view(words), 0.25).value ==
        Approx(std::sqrt(2.0)));
  CHECK(native_quantile(native_view(words), 0.5).value == 2.0);
  CHECK(native_quantile(native_view(words), 0.75).value ==
        Approx(2.0 * std::sqrt(2.0)));
  CHECK(native_quantile(native_view(words), 1.0).value == 4.0);
}

TEST_CASE("native_quantile: the zero bucket reaches from 0 to its threshold",
          "[registry]") {
  const std::vector<double> values = {0.0, 0.0, 0.001, 5.0};
  const Words words = words_of(values, {.zero_threshold = 0.5});
  const NativeQuantile found = native_quantile(native_view(words), 0.25);
  CHECK(found.value == Approx(0.5 / 3.0));
  CHECK(found.lower == 0.0);
  CHECK(found.upper == 0.5);
}

TEST_CASE("native_quantile: of some series it is that of all their values",
          "[registry]") {
  const auto values = latencies(3'000, 2);
  const std::span all(values);
  const auto bounds = std::make_shared<const BucketBounds>(
      *BucketBounds::create(std::vector<double>{1.0}));
  auto schema = std::make_shared<Schema>();
  SchemaFamily& family = schema->families.emplace_back(
      SchemaFamily{{.name = "s", .kind = MetricKind::kHistogram}});
  Snapshot snapshot;
  const auto add = [&](const char* engine, const Words& native) {
    family.series.push_back(
        {.labels = {{"engine", engine}, {"model", "m"}},
         .offset = static_cast<std::uint32_t>(snapshot.words.size()),
         .bounds = bounds,
         .native_buckets = static_cast<std::uint32_t>(
             native.empty() ? 0 : native.size() - kNativeHeaderWords)});
    snapshot.words.resize(snapshot.words.size() + bounds->bucket_count() + 1);
    snapshot.words.insert(snapshot.words.end(), native.begin(), native.end());
  };
  add("0", words_of(all.first(1'000), {.schema = 5, .max_buckets = 640}));
  add("1", words_of(all.last(2'000), {.schema = 4, .max_buckets = 320}));
  add("2", {});
  snapshot.schema = schema;

  const Words joined =
      words_of(values, {.schema = 4, .max_buckets = kMaxNativeBuckets});
  for (const double q : {0.0, 0.5, 0.99, 1.0}) {
    const NativeQuantile found = native_quantile(snapshot, "s", q);
    const NativeQuantile expected = native_quantile(native_view(joined), q);
    CHECK(found.value == Approx(expected.value));
    CHECK(found.lower == expected.lower);
    CHECK(found.upper == expected.upper);
    CHECK(native_quantile(snapshot, "s", q, {{"engine", "0"}}).upper ==
          native_quantile(snapshot.native(family.series[0]), q).upper);
  }
  const Labels nobody = {{"engine", "2"}, {"model", "m"}};
  CHECK(std::isnan(native_quantile(snapshot, "s", 0.5, nobody).value));
  CHECK(std::isnan(native_quantile(snapshot, "t", 0.5).value));
  CHECK(std::isnan(native_quantile(Snapshot(), "s", 0.5).value));
}

TEST_CASE("native_quantile: out of range, or of nothing, is what PromQL says",
          "[registry]") {
  const std::vector<double> one = {1.0};
  const Words words = words_of(one);
  const Words empty = words_of({});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(native_quantile(native_view(words), -0.1).value == -kInfinity);
  CHECK(native_quantile(native_view(words), 1.1).value == kInfinity);
  CHECK(std::isnan(native_quantile(native_view(words), std::nan("")).value));
  CHECK(std::isnan(native_quantile(native_view(empty), 0.5).value));
  CHECK(std::isnan(native_quantile({}, 0.5).value));
}

TEST_CASE("merge_native: two histograms are one of all their values",
          "[registry]") {
  const auto mine = latencies(1000, 2);
  const auto theirs = latencies(500, 3);
  std::vector<double> both(mine);
  both.insert(both.end(), theirs.begin(), theirs.end());
  const int own_schema = GENERATE(-2, 3, 5);
  const int other_schema = GENERATE(-2, 3, 4);
  CAPTURE(own_schema, other_schema);

  Words into = words_of(mine, {.schema = own_schema, .max_buckets = 512});
  const Words from =
      words_of(theirs, {.schema = other_schema, .max_buckets = 256});
  merge_native(into, native_view(from));
  const Words expected = words_of(
      both, {.schema = std::min(own_schema, other_schema), .max_buckets = 512});
  CHECK(native_view(into).schema == std::min(own_schema, other_schema));
  CHECK(buckets(native_view(into)) == buckets(native_view(expected)));
}

TEST_CASE("merge_native: the resolution falls when the sum needs more room",
          "[registry]") {
  const std::vector<double> low = {1e-9, 2e-9};
  const std::vector<double> high = {1e9, 2e9};
  Words into = words_of(low);
  merge_native(into, native_view(words_of(high)));
  const NativeView view = native_view(into);
  CHECK(view.schema == 1);
  CHECK(count(view) == 4);
  merge_native(into, native_view(words_of({})));
  CHECK(count(native_view(into)) == 4);
}

TEST_CASE("merge_native: the higher zero threshold wins, up to a bucket's end",
          "[registry]") {
  const std::vector<double> mine = {0.1, 0.3, 1.0};
  const std::vector<double> theirs = {0.0, 0.9};
  const NativeHistogramOptions fine{.schema = 0};
  const NativeHistogramOptions wide{.schema = 0, .zero_threshold = 0.3};
  // 0.3 lies in (0.25, 0.5], which has a value.
  for (const bool wide_into : {true, false}) {
    CAPTURE(wide_into);
    Words into = wide_into ? words_of(theirs, wide) : words_of(mine, fine);
    merge_native(into, native_view(wide_into ? words_of(mine, fine)
                                             : words_of(theirs, wide)));
    const NativeView view = native_view(into);
    CHECK(view.zero_threshold == 0.5);
    CHECK(view.zero_count == 3);
    CHECK(buckets(view) == std::map<std::int32_t, std::uint64_t>{{0, 2}});
  }
}

TEST_CASE("merge_native: takes words of another's making, and too few",
          "[registry]") {
  Words wild(native_word_count(132), ~std::uint64_t{0});
  Words into = words_of({});
  merge_native(into, native_view(wild));
  CHECK(native_view(into).zero_count == ~std::uint64_t{0});
  wild[1] = 1 << 30;
  merge_native(wild, native_view(words_of(std::vector<double>{1.0})));
  CHECK(native_view(wild).schema <= -1);
  Words few(3);
  merge_native(few, native_view(into));
  CHECK(few == Words{0, 0, 0});
}

}  // namespace
}  // namespace vllm_metrics
