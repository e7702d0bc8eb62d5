#include "vllm_metrics/primitives/native_words.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace vllm_metrics {
namespace {

using Limits = std::numeric_limits<double>;

// Native words in memory of their own.
struct Owned {
  explicit Owned(const NativeHistogramOptions& options = {})
      : words(native_word_count(options.max_buckets)),
        native(words.data(), options.max_buckets) {
    native.reset(options);
  }

  NativeView view() const { return native_view(words); }
  // Buckets that are not empty, by index.
  std::map<std::int32_t, std::uint64_t> buckets() const {
    std::map<std::int32_t, std::uint64_t> used;
    for (std::size_t i = 0; i < view().counts.size(); ++i) {
      if (view().counts[i] != 0)
        used[view().first_index + static_cast<std::int32_t>(i)] =
            view().counts[i];
    }
    return used;
  }

  std::vector<std::uint64_t> words;
  NativeWords<std::uint64_t> native;
};

// By definition: each value above the threshold to its bucket.
std::map<std::int32_t, std::uint64_t> buckets_of(std::span<const double> values,
                                                 int schema,
                                                 double threshold = 0x1p-128) {
  std::map<std::int32_t, std::uint64_t> buckets;
  for (const double v : values) {
    if (v > threshold) ++buckets[native::index_of(v, schema)];
  }
  return buckets;
}

std::vector<double> lognormal(std::size_t n, double spread, unsigned seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<> latency(std::log(0.02), spread);
  std::vector<double> values(n);
  for (double& v : values) v = latency(random);
  return values;
}

TEST_CASE("NativeWords: the memory of a histogram is what it says",
          "[primitives]") {
  CHECK(native_word_count(0) == 0);
  CHECK(native_word_count(160) == 164);
  const NativeView view = Owned({.schema = 5, .max_buckets = 140}).view();
  CHECK(view.schema == 5);
  CHECK(view.zero_threshold == 0x1p-128);
  CHECK(view.counts.size() == 140);
}

TEST_CASE("NativeWords: zero has a bucket of its own, up to the threshold",
          "[primitives]") {
  Owned owned({.zero_threshold = 0.001});
  owned.native.add(0.0, 2);
  owned.native.add(-0.0, 1);
  owned.native.add(-5.0, 1);
  owned.native.add(0.001, 1);
  owned.native.add(std::nextafter(0.001, 1.0), 7);
  CHECK(owned.view().zero_count == 5);
  CHECK(owned.buckets() ==
        std::map<std::int32_t, std::uint64_t>{
            {native::index_of(std::nextafter(0.001, 1.0), 3), 7}});
}

TEST_CASE("NativeWords: the window moves with the values", "[primitives]") {
  Owned owned;
  owned.native.add(1e-9, 1);
  owned.native.add(2e-9, 1);
  owned.native.add(1e-6, 1);
  owned.native.add(1e-12, 1);
  const std::vector<double> values = {1e-9, 2e-9, 1e-6, 1e-12};
  CHECK(owned.view().schema == 3);
  CHECK(owned.buckets() == buckets_of(values, 3));
}

TEST_CASE(
    "NativeWords: values too far apart halve the resolution and lose "
    "no count",
    "[primitives]") {
  Owned owned;
  std::vector<double> values;
  int schema = 3;
  for (int octave = 0; octave <= 120; octave += 3) {
    values.push_back(std::ldexp(1.3, octave));
    values.push_back(std::ldexp(1.7, -octave));
    owned.native.add(values[values.size() - 2], 1);
    owned.native.add(values.back(), 1);
    CHECK(owned.view().schema <= schema);
    schema = owned.view().schema;
    CHECK(owned.buckets() == buckets_of(values, schema));
  }
  CHECK(schema == -1);  // 240 octaves in 160 buckets
}

TEST_CASE(
    "NativeWords: the fewest buckets hold every double, also those below "
    "the normal ones",
    "[primitives]") {
  Owned owned(
      {.schema = 8, .max_buckets = kMinNativeBuckets, .zero_threshold = 0.0});
  const std::vector<double> values = {
      1.0, Limits::denorm_min(), Limits::max(), Limits::min(), 0.02, 0x1p-1060};
  for (const double v : values) owned.native.add(v, 1);
  owned.native.add(0.0, 1);
  CHECK(owned.view().schema == -4);
  CHECK(owned.view().zero_count == 1);
  CHECK(owned.buckets() == buckets_of(values, -4, 0.0));
}

TEST_CASE(
    "NativeWords: fewer buckets than are allowed lose the place, not the "
    "count",
    "[primitives]") {
  Owned owned({.schema = 0, .max_buckets = 3});
  for (const double v : {1e-30, 1.0, 1e30, 1e300}) owned.native.add(v, 1);
  const NativeView view = owned.view();
  CHECK(std::accumulate(view.counts.begin(), view.counts.end(),
                        std::uint64_t{0}) == 4);
}

TEST_CASE("NativeWords: a batch counts as its values one by one",
          "[primitives]") {
  const int schema = GENERATE(-4, -1, 0, 3, 5, 8);
  const std::uint32_t max_buckets = GENERATE(132U, 160U, 255U, 256U, 300U);
  const double threshold = GENERATE(0.0, 0x1p-128, 0.015);
  const NativeHistogramOptions options{schema, max_buckets, threshold};
  CAPTURE(schema, max_buckets, threshold);

  std::vector<double> values = lognormal(5000, 0.7, 3);
  values[4000] = 0.0;
  values[4500] = -1.0;
  values[4600] = std::nan("");
  values[4700] = Limits::infinity();
  values[4800] = -Limits::infinity();
  values[4900] = Limits::denorm_min();
  for (std::size_t i = 3000; i < 3300; ++i) values[i] = values[3000];

  Owned batched(options);
  Owned single(options);
  const auto all = [&](std::size_t from, std::size_t n) {
    Tally counted;
    for (const double v : std::span(values).subspan(from, n)) {
      counted.not_finite += std::isfinite(v) ? 0U : 1U;
      counted.negative += v < 0.0 ? 1U : 0U;
      if (std::isfinite(v)) single.native.add(v, 1);
    }
    batched.native.add_all(std::span(values).subspan(from, n), counted);
  };
  all(0, 0);
  all(0, 1);
  all(1, 2);
  for (std::size_t from = 3; from < values.size();) {
    const std::size_t n = std::min(from * 2 + 1, values.size() - from);
    all(from, n);
    from += n;
  }
  all(3000, 300);  // equal ones
  all(0, 3000);    // several chunks
  CHECK(batched.view().schema == single.view().schema);
  CHECK(batched.view().zero_count == single.view().zero_count);
  CHECK(batched.buckets() == single.buckets());
}

TEST_CASE("NativeWords: what no writer of ours leaves there can be read",
          "[primitives]") {
  std::vector<std::uint64_t> words(native_word_count(132), ~std::uint64_t{0});
  NativeView view = native_view(words);
  CHECK(view.schema == -1);
  CHECK(view.zero_threshold == 0.0);
  words[0] = 1000;
  words[1] = std::bit_cast<std::uint64_t>(std::int64_t{-1} << 60);
  words[2] = std::bit_cast<std::uint64_t>(-1.0);
  view = native_view(words);
  CHECK(view.schema == 8);
  CHECK(view.first_index == -(1 << 19));
  CHECK(view.zero_threshold == 0.0);
  CHECK(native_view(std::span(words).first(3)).counts.empty());
}

}  // namespace
}  // namespace vllm_metrics
