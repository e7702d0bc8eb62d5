#include "vllm_metrics/primitives/bucket_tally.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/primitives/bound_probes.h"

namespace vllm_metrics {
namespace {

using List = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();
const double kNan = std::nan("");

// What counting must give: one value after the other, by the definition.
struct Outcome {
  std::vector<std::uint64_t> buckets;
  std::uint64_t sum_bits = 0;  // compared bit for bit
  std::uint64_t not_finite = 0;
  std::uint64_t negative = 0;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << "buckets " << Catch::Detail::stringify(outcome.buckets)
             << ", sum " << std::bit_cast<double>(outcome.sum_bits)
             << ", not finite " << outcome.not_finite << ", negative "
             << outcome.negative;
}

template <Negatives kNegatives>
Outcome one_by_one(const BucketBounds& bounds, const List& values,
                   double start) {
  Outcome outcome{std::vector<std::uint64_t>(bounds.bucket_count())};
  double sum = start;
  for (double v : values) {
    if (!std::isfinite(v)) {
      ++outcome.not_finite;
      continue;
    }
    if (kNegatives == Negatives::kTakenAsZero && v < 0.0) {
      ++outcome.negative;
      v = 0.0;
    }
    ++outcome.buckets[bounds_below(bounds.values(), v)];
    sum += v;
  }
  outcome.sum_bits = std::bit_cast<std::uint64_t>(sum);
  return outcome;
}

template <Negatives kNegatives>
Outcome as_a_batch(const BucketBounds& bounds, const List& values,
                   double start) {
  Outcome outcome{std::vector<std::uint64_t>(bounds.bucket_count())};
  const Tally counted = tally<kNegatives>(
      bounds, values, start,
      [&](std::size_t b, std::uint64_t n) { outcome.buckets.at(b) += n; });
  outcome.sum_bits = std::bit_cast<std::uint64_t>(counted.sum);
  outcome.not_finite = counted.not_finite;
  outcome.negative = counted.negative;
  return outcome;
}

void check_batch(const BucketBounds& bounds, const List& values,
                 double start = 0.1) {
  CAPTURE(values, start);
  CHECK(as_a_batch<Negatives::kAllowed>(bounds, values, start) ==
        one_by_one<Negatives::kAllowed>(bounds, values, start));
  CHECK(as_a_batch<Negatives::kTakenAsZero>(bounds, values, start) ==
        one_by_one<Negatives::kTakenAsZero>(bounds, values, start));
}

// With a table and few buckets (the quick paths), without a table, and with
// more buckets than the quick paths have room for.
BucketBounds bounds_of(const std::string& kind) {
  List list;
  if (kind == "table") list = {0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 10};
  if (kind == "no table") list = {-1, 0, 0.05, 0.1, 1, 10};
  if (kind == "31 bounds") {
    for (int i = 1; i <= 31; ++i) list.push_back(0.01 * i * i);
  }
  if (kind == "32 bounds") {
    for (int i = 1; i <= 32; ++i) list.push_back(0.01 * i * i);
  }
  return *BucketBounds::create(list);
}

TEST_CASE("tally: a batch is its observations one by one, bit for bit",
          "[primitives]") {
  const std::string kind =
      GENERATE("table", "no table", "31 bounds", "32 bounds");
  const std::size_t size =
      GENERATE(0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 17U, 256U, 1001U);
  CAPTURE(kind, size);
  const BucketBounds bounds = bounds_of(kind);
  std::mt19937_64 random(size);
  std::uniform_real_distribution<double> power(-3.0, 2.0);
  List values(size);
  SECTION("all different") {
    for (double& v : values) v = std::pow(10.0, power(random));
    check_batch(bounds, values);
  }
  SECTION("all equal") {
    for (double& v : values) v = 0.0613;
    check_batch(bounds, values);
  }
  SECTION("runs of equal ones, the first run of two") {
    double v = 0.02;
    for (std::size_t i = 0; i < size; ++i) {
      if (i >= 2 && random() % 3 == 0) v = std::pow(10.0, power(random));
      values[i] = v;
    }
    check_batch(bounds, values);
  }
  SECTION("equal ones that do not come first") {
    for (std::size_t i = 0; i < size; ++i) values[i] = i == 0 ? 0.3 : 0.0613;
    check_batch(bounds, values);
  }
  SECTION("on the bounds themselves") {
    const auto list = bounds.values();
    for (std::size_t i = 0; i < size; ++i) values[i] = list[i % list.size()];
    check_batch(bounds, values);
  }
  SECTION("from a large sum, where each addition rounds") {
    for (double& v : values) v = std::pow(10.0, power(random));
    check_batch(bounds, values, 1e15 + 0.5);
  }
}

// Whatever shortcut a run of equal values takes, no sum may differ in a bit.
TEST_CASE("tally: a run of equal values rounds as its additions one by one",
          "[primitives]") {
  const BucketBounds bounds = bounds_of("table");
  std::mt19937_64 random(7);
  const auto check_run = [&](double start, double v, std::size_t n) {
    const List run(n, v);
    const auto by_batch = as_a_batch<Negatives::kAllowed>(bounds, run, start);
    const auto by_one = one_by_one<Negatives::kAllowed>(bounds, run, start);
    if (!(by_batch == by_one)) {
      FAIL("from " << start << ", " << n << " times " << v << ": " << by_batch
                   << ", expected " << by_one);
    }
  };
  const auto any_length = [&] { return 2 + random() % 40; };
  const auto exponent = [&](std::uint64_t from_0, int least) {
    return static_cast<int>(random() % from_0) + least;
  };
  SECTION("steps of quarters of the sum's last place, ties among them") {
    for (int i = 0; i < 5'000; ++i) {
      const double start = std::ldexp(1.0 + static_cast<double>(random() % 64),
                                      exponent(60, -30));
      const double last_place = std::nextafter(start, kInf) - start;
      const double v = last_place * 0.25 * static_cast<double>(random() % 40);
      check_run(start, v, any_length());
      check_run(std::nextafter(start, kInf), v, any_length());
      check_run(std::nextafter(start, 0.0), v, any_length());
      check_run(start - 3 * last_place, v, any_length());
    }
  }
  SECTION("any two sizes within some powers of two of each other") {
    std::uniform_real_distribution<double> mantissa(1.0, 2.0);
    for (int i = 0; i < 5'000; ++i) {
      const double start = std::ldexp(mantissa(random), 10);
      const double v = std::ldexp(mantissa(random), exponent(70, -50));
      check_run(start, v, any_length());
      check_run(-start, v, any_length());
      check_run(0.0, v, any_length());
    }
  }
  SECTION("long runs, over many powers of two") {
    for (const double v :
         {0.1, 0.0613, 1.0 / 3.0, 1.5, 1e-9, 4503599627370497.5}) {
      for (const double start : {0.0, 0.3, 1e9, 1e15 + 0.5, 9007199254740993.0})
        check_run(start, v, 10'000);
    }
  }
  SECTION("where doubles end") {
    for (const double v :
         {5e-324, 1e-310, 2.2250738585072014e-308, kMax / 3, kMax, 0.0}) {
      for (const double start : {0.0, -0.0, 5e-324, 2.2250738585072009e-308,
                                 1e300, kMax, -kMax, kInf})
        check_run(start, v, 100);
    }
  }
}

TEST_CASE(
    "tally: a value that cannot be taken as it is spoils no other, "
    "wherever it stands in the batch",
    "[primitives]") {
  const std::string kind = GENERATE("table", "no table", "32 bounds");
  const double bad =
      GENERATE(values<double>({kNan, -kNan, kInf, -kInf, -0.5, -0.0, 0.0, -kMax,
                               kMax, 5e-324, -5e-324}));
  CAPTURE(kind, bad);
  const BucketBounds bounds = bounds_of(kind);
  for (std::size_t size = 1; size <= 9; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      List different(size);
      for (std::size_t i = 0; i < size; ++i) {
        different[i] = 0.013 * static_cast<double>(i + 1);
      }
      different[at] = bad;
      check_batch(bounds, different);

      List equal(size, 0.0613);
      equal[at] = bad;
      check_batch(bounds, equal);

      List two_bad = equal;
      two_bad[size - 1 - at] = bad;
      check_batch(bounds, two_bad);
    }
  }
}

TEST_CASE("tally: nothing but values that are not finite adds nothing",
          "[primitives]") {
  const BucketBounds bounds = bounds_of("table");
  const List batch = GENERATE(values<List>(
      {{kNan, kNan}, {kInf, kInf, kInf}, {kNan, kInf, -kInf, kNan}}));
  bool added = false;
  const Tally counted = tally<Negatives::kTakenAsZero>(
      bounds, batch, 2.5, [&](std::size_t, std::uint64_t) { added = true; });
  CHECK_FALSE(added);
  CHECK(counted.sum == 2.5);
  CHECK(counted.not_finite == batch.size());
  CHECK(counted.negative == 0);
}

TEST_CASE("tally: each bucket of a quick batch is added to once",
          "[primitives]") {
  const BucketBounds bounds = bounds_of("table");
  const List values = GENERATE(List{0.02, 0.02, 0.02, 0.3, 0.02},
                               List{0.02, 0.3, 0.02, 0.02, 0.02});
  std::vector<std::pair<std::size_t, std::uint64_t>> added;
  tally<Negatives::kTakenAsZero>(
      bounds, values, 0.0,
      [&](std::size_t b, std::uint64_t n) { added.emplace_back(b, n); });
  CHECK(added ==
        std::vector<std::pair<std::size_t, std::uint64_t>>{{1, 4}, {6, 1}});
}

}  // namespace
}  // namespace vllm_metrics
