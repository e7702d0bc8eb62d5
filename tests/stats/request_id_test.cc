#include "vllm_metrics/stats/request_id.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

namespace vllm_metrics {
namespace {

TEST_CASE("RequestId: keeps 55 bytes, in whole characters", "[stats]") {
  CHECK(RequestId().empty());
  CHECK(RequestId("").empty());
  CHECK(RequestId("chatcmpl-1").view() == "chatcmpl-1");
  CHECK(RequestId(std::string(55, 'a')).view() == std::string(55, 'a'));
  CHECK(RequestId(std::string(90, 'a')).view() == std::string(55, 'a'));
  // The euro sign has three bytes.
  const std::string sign = "\xe2\x82\xac";
  for (const std::size_t before : {std::size_t{53}, std::size_t{54}}) {
    CHECK(RequestId(std::string(before, 'a') + sign).view() ==
          std::string(before, 'a'));
  }
  CHECK(RequestId(std::string(52, 'a') + sign + "b").view() ==
        std::string(52, 'a') + sign);
  CHECK(RequestId(std::string_view("ab\0cd", 5)).view() == "ab");
  CHECK(RequestId(std::string(80, '\x80')).empty());
  static_assert(RequestId("a") == RequestId(std::string_view("a")));
}

}  // namespace
}  // namespace vllm_metrics
