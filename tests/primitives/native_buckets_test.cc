#include "vllm_metrics/primitives/native_buckets.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace vllm_metrics {
namespace {

using Limits = std::numeric_limits<double>;

// By definition: the one bucket whose bounds are around `v`.
bool holds(std::int32_t index, int schema, double v) {
  return native::upper_bound(index - 1, schema) < v &&
         v <= native::upper_bound(index, schema);
}

TEST_CASE("Native buckets: bounds are the nearest doubles to the powers of two",
          "[primitives]") {
  for (int k = -512; k <= 512; ++k) {
    CAPTURE(k);
    const long double exact = std::exp2(static_cast<long double>(k) / 256.0L);
    CHECK(native::upper_bound(k, 8) == static_cast<double>(exact));
  }
  for (int schema = kMinNativeSchema; schema <= kMaxNativeSchema; ++schema) {
    CAPTURE(schema);
    CHECK(native::upper_bound(0, schema) == 1.0);
    CHECK(native::upper_bound(1, schema) ==
          std::exp2(std::ldexp(1.0, -schema)));
  }
  CHECK(native::upper_bound(-3, 0) == 0.125);
  CHECK(native::upper_bound(2, -4) == 0x1p32);
}

TEST_CASE(
    "Native buckets: a value equal to a bound lands in its bucket, the "
    "next one in the next",
    "[primitives]") {
  const int schema = GENERATE(range(kMinNativeSchema, kMaxNativeSchema + 1));
  CAPTURE(schema);
  const int last = static_cast<int>(std::ldexp(1.0, schema) * 1023);
  const int first = static_cast<int>(std::ldexp(1.0, schema) * -1022);
  for (int i = first; i <= last; ++i) {
    const double bound = native::upper_bound(i, schema);
    const bool right =
        native::index_of(bound, schema) == i &&
        native::index_of(std::nextafter(bound, 0.0), schema) == i &&
        native::index_of(std::nextafter(bound, Limits::infinity()), schema) ==
            i + 1;
    if (!right) FAIL("bucket " << i << ", bound " << bound);
  }
}

TEST_CASE("Native buckets: any positive double has its bucket in every schema",
          "[primitives]") {
  std::mt19937_64 random(7);
  std::vector<double> values = {Limits::min(),
                                std::nextafter(Limits::min(), 0.0),
                                Limits::max(),
                                0x1p-1060,
                                0x1.8p-1040,
                                1.0,
                                std::nextafter(1.0, 2.0),
                                1e-9,
                                0.02};
  std::uniform_int_distribution<std::uint64_t> bits(
      1, std::bit_cast<std::uint64_t>(Limits::max()));
  for (int i = 0; i < 20'000; ++i)
    values.push_back(std::bit_cast<double>(bits(random)));
  for (const double v : values) {
    for (int schema = kMinNativeSchema; schema <= kMaxNativeSchema; ++schema) {
      // Below, bounds themselves are too coarse.
      if (v < 0x1p-1070) continue;
      if (!holds(native::index_of(v, schema), schema, v))
        FAIL(v << " at schema " << schema);
    }
  }
  CHECK(native::index_of(Limits::denorm_min(), 0) == -1074);
  CHECK(native::index_of(Limits::denorm_min(), -4) == -67);
  CHECK(native::index_of(Limits::max(), 0) == 1024);
  CHECK(native::index_of(Limits::max(), -4) == 64);
  CHECK(native::upper_bound(64, -4) == Limits::max());
}

TEST_CASE("Native buckets: two buckets of a schema are one of the coarser",
          "[primitives]") {
  for (std::int32_t i = -5; i <= 5; ++i) {
    CAPTURE(i);
    CHECK(native::coarser_index(2 * i, 1) == i);
    CHECK(native::coarser_index(2 * i - 1, 1) == i);
    CHECK(native::upper_bound(2 * i, 4) == native::upper_bound(i, 3));
  }
}

}  // namespace
}  // namespace vllm_metrics
