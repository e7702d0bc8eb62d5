#include "vllm_metrics/primitives/bucket_bounds.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/primitives/bound_probes.h"

namespace vllm_metrics {
namespace {

using Limits = std::numeric_limits<double>;
using List = std::vector<double>;

constexpr double kInf = Limits::infinity();
const double kNan = std::nan("");

// How often the search and the definition disagree, 0 or the test says where.
std::size_t disagreements(const List& list) {
  const auto bounds = BucketBounds::create(list);
  REQUIRE(bounds.has_value());
  std::size_t found = 0;
  for (const double v : probes_of(list)) {
    const std::size_t below = bounds_below(list, v);
    const bool one_by_one =
        !bounds->can_look_up(v) || bounds->look_up_one(v) == below;
    if (bounds->bucket_of(v) == below && one_by_one) continue;
    ++found;
    UNSCOPED_INFO("bucket_of(" << v << ") = " << bounds->bucket_of(v)
                               << ", expected " << below);
  }
  return found;
}

// `size` different finite numbers, rising.
template <class Draw>
List rising(std::size_t size, Draw draw) {
  std::set<double> drawn;
  while (drawn.size() < size) {
    const double v = draw();
    if (std::isfinite(v)) drawn.insert(v);
  }
  return {drawn.begin(), drawn.end()};
}

TEST_CASE(
    "BucketBounds: a list that cannot be buckets is refused and the "
    "reason named",
    "[primitives]") {
  using Case = std::pair<List, std::string>;
  const auto [list, expected] = GENERATE(values<Case>({
      {{}, "at least one finite bound is needed"},
      {{kInf}, "at least one finite bound is needed"},
      {{0.1, 0.1}, "bounds[1] = 0.1 is not above bounds[0] = 0.1"},
      {{0.3, 0.1}, "bounds[1] = 0.1 is not above bounds[0] = 0.3"},
      {{1, 2, 0.06, 0.04}, "bounds[2] = 0.06 is not above bounds[1] = 2"},
      {{0.0, -0.0}, "bounds[1] = -0 is not above bounds[0] = 0"},
      {{-1, -2}, "bounds[1] = -2 is not above bounds[0] = -1"},
      {{kNan}, "bounds[0] = nan is not finite"},
      {{1, kNan}, "bounds[1] = nan is not finite"},
      {{1, kNan, 2}, "bounds[1] = nan is not finite"},
      {{-kInf, 1}, "bounds[0] = -inf is not finite"},
      {{1, kInf, 2}, "bounds[1] = inf is not finite"},
      {{kInf, kInf}, "bounds[0] = inf is not finite"},
      {{1, kInf, kInf}, "bounds[1] = inf is not finite"},
  }));
  std::string error;
  CHECK_FALSE(BucketBounds::create(list, &error).has_value());
  CHECK(error == expected);
  CHECK_FALSE(BucketBounds::create(list).has_value());
}

TEST_CASE("BucketBounds: a trailing +infinity is accepted and dropped",
          "[primitives]") {
  std::string error = "untouched";
  const auto bounds = BucketBounds::create(List{1, kInf}, &error);
  REQUIRE(bounds.has_value());
  CHECK(error == "untouched");
  CHECK(bounds->size() == 1);
  CHECK(bounds->bucket_count() == 2);
  CHECK(std::ranges::equal(bounds->values(), List{1}));
  CHECK(*bounds == *BucketBounds::create(List{1}));
  CHECK_FALSE(*bounds == *BucketBounds::create(List{1, 2}));
}

TEST_CASE("BucketBounds: a value equal to a bound is in that bound's bucket",
          "[primitives]") {
  const auto bounds = BucketBounds::create(List{0.1, 1, 2.5});
  REQUIRE(bounds.has_value());
  CHECK(bounds->bucket_of(0.0) == 0);
  CHECK(bounds->bucket_of(0.1) == 0);
  CHECK(bounds->bucket_of(std::nextafter(0.1, 1.0)) == 1);
  CHECK(bounds->bucket_of(1.0) == 1);
  CHECK(bounds->bucket_of(2.5) == 2);
  CHECK(bounds->bucket_of(std::nextafter(2.5, 3.0)) == 3);
  CHECK(bounds->bucket_of(kInf) == 3);
  CHECK(bounds->bucket_of(-kInf) == 0);
}

TEST_CASE("BucketBounds: the search finds how many bounds are below a value",
          "[primitives]") {
  const List list = GENERATE(values<List>({
      {1},
      {0},
      {-1},
      {0.3},
      {Limits::denorm_min()},
      {Limits::min()},
      {Limits::max()},
      {Limits::lowest()},
      {-5, -1, 0, 1, 5},
      {0, 1, 2},
      {-0.0, 1},
      {Limits::lowest(), Limits::max()},
      {Limits::denorm_min(), 1, Limits::max()},
      {Limits::denorm_min(), 2 * Limits::denorm_min(), 3 * Limits::denorm_min(),
       4 * Limits::denorm_min()},
      {1, 1 + Limits::epsilon(), 1 + 2 * Limits::epsilon(),
       1 + 3 * Limits::epsilon()},
      {1e-300, 1e-200, 1e-100, 1, 1e100, 1e200, 1e300},
      {2048, 8192, 32768, 131072, 524288, 2097152, 8388608, 33554432},
      {1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75, 4},
  }));
  CAPTURE(list);
  CHECK(disagreements(list) == 0);
}

TEST_CASE("BucketBounds: random lists are searched as by counting",
          "[primitives]") {
  const auto size = GENERATE(1U, 2U, 3U, 7U, 20U, 31U, 32U, 64U, 253U, 254U,
                             255U, 300U, 1000U);
  CAPTURE(size);
  std::mt19937_64 random(size);
  SECTION("spread over some powers of ten, as latencies are") {
    std::uniform_real_distribution<double> power(-3.0, 4.0);
    CHECK(disagreements(rising(
              size, [&] { return std::pow(10.0, power(random)); })) == 0);
  }
  SECTION("dense between 1 and 2") {
    std::uniform_real_distribution<double> uniform(1.0, 2.0);
    CHECK(disagreements(rising(size, [&] { return uniform(random); })) == 0);
  }
  SECTION("negative and positive") {
    std::uniform_real_distribution<double> uniform(-50.0, 50.0);
    CHECK(disagreements(rising(size, [&] { return uniform(random); })) == 0);
  }
  SECTION("any finite double, subnormal ones among them") {
    CHECK(disagreements(rising(
              size, [&] { return std::bit_cast<double>(random()); })) == 0);
  }
  SECTION("any positive double") {
    CHECK(disagreements(rising(size, [&] {
            return std::bit_cast<double>(random() >> 1);
          })) == 0);
  }
  SECTION("subnormal only") {
    CHECK(disagreements(rising(size, [&] {
            return std::bit_cast<double>(random() >> 13);
          })) == 0);
  }
}

TEST_CASE("BucketBounds: the table serves up to 254 positive bounds",
          "[primitives]") {
  const auto one_to = [](int n) {
    List list;
    for (int i = 1; i <= n; ++i) list.push_back(i);
    return list;
  };
  CHECK(BucketBounds::create(one_to(1))->has_table());
  CHECK(BucketBounds::create(one_to(254))->has_table());
  CHECK_FALSE(BucketBounds::create(one_to(255))->has_table());
  CHECK_FALSE(BucketBounds::create(List{0, 1})->has_table());
  CHECK_FALSE(BucketBounds::create(List{-1, 1})->has_table());
  // Three neighbouring doubles share every cell the table may have.
  const double a = 1.0;
  const double b = std::nextafter(a, 2.0);
  CHECK_FALSE(
      BucketBounds::create(List{a, b, std::nextafter(b, 2.0)})->has_table());
}

TEST_CASE("BucketBounds: only plain numbers of a table are looked up alone",
          "[primitives]") {
  const auto table = *BucketBounds::create(List{0.1, 1, 2.5});
  CHECK(table.can_look_up(0.0));
  CHECK(table.can_look_up(Limits::denorm_min()));
  CHECK(table.can_look_up(Limits::max()));
  const double v = GENERATE(-0.0, -1.0, kInf, -kInf, kNan, -kNan);
  CAPTURE(v);
  CHECK_FALSE(table.can_look_up(v));
  CHECK_FALSE(BucketBounds::create(List{-1, 1})->can_look_up(0.5));
}

TEST_CASE("BucketBounds: a copy searches as the original does",
          "[primitives]") {
  std::optional<BucketBounds> original = BucketBounds::create(List{1, 2, 4});
  BucketBounds copy = *original;
  original.reset();
  CHECK(copy.bucket_of(3.0) == 2);
  const BucketBounds moved = std::move(copy);
  CHECK(moved.bucket_of(2.0) == 1);
  CHECK(moved.bucket_of(5.0) == 3);
}

}  // namespace
}  // namespace vllm_metrics
