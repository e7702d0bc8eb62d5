#include "src/http/gzip.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/allocation_count.h"

namespace vllm_metrics::http {
namespace {

// zlib's own memory is taken for the first page, too, but by malloc.
TEST_CASE("Gzip: pages after the first allocate nothing", "[http]") {
  const std::string page(100'000, 'x');
  Gzip gzip;
  std::string out;
  REQUIRE(gzip.compress(page, out));
  const std::string first = out;
  CHECK(allocations_of([&] {
          for (int i = 0; i < 10; ++i) gzip.compress(page, out);
        }) == 0);
  CHECK(out == first);
}

}  // namespace
}  // namespace vllm_metrics::http
