#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "src/tools/sim/trace_reader.h"

namespace vllm_metrics::sim {
namespace {

absl::StatusOr<Trace> read(const std::string& text) {
  std::istringstream in(text);
  return read_trace(in, "t");
}

std::string error_of(const std::string& text) {
  return std::string(read(text).status().message());
}

const std::string kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST_CASE("Trace reader: JSON Lines with milliseconds and hashed chunks",
          "[tools]") {
  const auto trace =
      read(R"({"timestamp": 1500, "input_length": 600, "output_length": 7, )"
           R"("hash_ids": [4, 5]})"
           "\n\n"
           R"({"timestamp": 2000.5, "input_length": 513, "output_length": 0, )"
           R"("hash_ids": [4, 6]})");
  REQUIRE(trace.ok());
  REQUIRE(trace->requests.size() == 2);
  const RequestSpec& first = trace->requests[0];
  CHECK(first.arrival == to_ticks(1.5));
  CHECK(first.prompt_tokens == 600);
  CHECK(first.output_tokens == 7);
  CHECK(first.chunk_tokens == 512);
  const RequestSpec& second = trace->requests[1];
  CHECK(second.arrival == to_ticks(2.0005));
  CHECK(second.output_tokens == 1);  // to see the end, one is computed
  REQUIRE(first.prefix.size() == 2);
  REQUIRE(second.prefix.size() == 2);
  CHECK(first.prefix[0] == second.prefix[0]);
  CHECK(first.prefix[1] != second.prefix[1]);
}

TEST_CASE("Trace reader: hash_ids may be left out or cover a part", "[tools]") {
  const auto trace = read(
      "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 1}\n"
      "{\"timestamp\": 0, \"input_length\": 999, \"output_length\": 1, "
      "\"hash_ids\": [3]}\n");
  REQUIRE(trace.ok());
  CHECK(trace->requests[0].prefix.empty());
  CHECK(trace->requests[1].prefix.size() == 1);
}

TEST_CASE("Trace reader: CSV begins with its first request", "[tools]") {
  const std::string end = GENERATE("\n", "\r\n");
  const auto trace = read("TIMESTAMP,ContextTokens,GeneratedTokens" + end +
                          "2023-11-16 18:17:03.9799600,4808,10" + end +
                          "2023-11-16 18:17:05.2299600,34,0" + end +
                          "2023-11-16 18:17:04.9799600+00:00,7,8");
  REQUIRE(trace.ok());
  REQUIRE(trace->requests.size() == 3);
  CHECK(to_seconds(trace->epoch) == Approx(1700158623.97996).margin(1e-6));
  CHECK(trace->requests[0].arrival == 0);
  CHECK(trace->requests[0].prompt_tokens == 4808);
  CHECK(trace->requests[0].output_tokens == 10);
  CHECK(trace->requests[0].prefix.empty());
  // Out of order in the file, in order here.
  CHECK(trace->requests[1].arrival == kTicksPerSecond);
  CHECK(trace->requests[1].output_tokens == 8);
  CHECK(trace->requests[2].arrival == kTicksPerSecond + kTicksPerSecond / 4);
  CHECK(trace->requests[2].output_tokens == 1);
}

TEST_CASE("Trace reader: a byte order mark is no content", "[tools]") {
  CHECK(read("\xef\xbb\xbf" + kHeader + "2023-11-16 18:17:03,1,1\n").ok());
}

TEST_CASE("Trace reader: names line, field and what is allowed in JSON Lines",
          "[tools]") {
  const std::string good =
      "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 1}\n";
  const std::string tokens = "; allowed: a whole number from 1 to 2147483647";
  CHECK(error_of(good + "{\"timestamp\": 0, \"input_length\": 0, "
                        "\"output_length\": 1}") ==
        "t:2: input_length is 0" + tokens);
  CHECK(error_of("\n{\"timestamp\": 0, \"input_length\": 1.5, "
                 "\"output_length\": 1}") ==
        "t:2: input_length is 1.5" + tokens);
  CHECK(error_of("{\"timestamp\": 0, \"input_length\": "
                 "18446744073709551615, \"output_length\": 1}") ==
        "t:1: input_length is 18446744073709551615" + tokens);
  CHECK(error_of("{\"timestamp\": 0, \"input_length\": 5}") ==
        "t:1: output_length is missing; allowed: a whole number from 0 to "
        "2147483647");
  CHECK(error_of("{\"timestamp\": -1, \"input_length\": 5}") ==
        "t:1: timestamp is -1; allowed: milliseconds, a number from 0 to "
        "1e+12");
  CHECK(error_of("{\"timestamp\": 0, \"input_length\": 5, "
                 "\"output_length\": 1, \"hash_ids\": [1, 2]}") ==
        "t:1: hash_ids is [1,2]; allowed: a list of whole numbers, one for "
        "each 512 tokens of input_length, here at most 1");
  CHECK(error_of("{\"timestamp\": 0, \"input_length\": 5, "
                 "\"output_length\": 1, \"hash_ids\": [\"a\"]}")
            .starts_with("t:1: hash_ids is [\"a\"]; allowed: a list"));
  CHECK(error_of(good + good.substr(0, 20))
            .starts_with("t:2: not a JSON object; allowed: {"));
  CHECK(error_of(good + "[1]").starts_with("t:2: not a JSON object"));
}

TEST_CASE("Trace reader: names line, field and what is allowed in CSV",
          "[tools]") {
  const std::string time = "2023-11-16 18:17:03.97,";
  const std::string tokens = "; allowed: a whole number from 1 to 2147483647";
  CHECK(error_of(kHeader + time + "1,1\n" + time + "x,1\n") ==
        "t:3: ContextTokens is \"x\"" + tokens);
  CHECK(error_of(kHeader + time + "0,1\n") ==
        "t:2: ContextTokens is \"0\"" + tokens);
  CHECK(error_of(kHeader + time + "5,\n")
            .starts_with("t:2: GeneratedTokens is \"\"; allowed: "));
  CHECK(error_of(kHeader + time + "5,6,7\n")
            .starts_with("t:2: GeneratedTokens is \"6,7\"; allowed: "));
  CHECK(error_of(kHeader + time + "5\n")
            .starts_with("t:2: \"2023-11-16 18:17:03.97,5\" has not the "));
  const std::string bad = GENERATE(
      "", "2023-11-16", "2023-13-16 18:17:03", "2023-02-30 18:17:03",
      "2023-11-16 24:17:03", "2023-11-16 18:17:60", "2023-11-16T18:17:03",
      "2023-11-16 18:17:03.", "2023-11-16 18:17:03.5+02:00",
      "1969-12-31 23:59:59", "2023-11--6 18:17:03");
  CHECK(error_of(kHeader + bad + ",5,6\n") ==
        "t:2: TIMESTAMP is \"" + bad +
            "\"; allowed: YYYY-MM-DD HH:MM:SS.fraction, 1970 or later");
}

TEST_CASE("Trace reader: a file of another kind or none is refused",
          "[tools]") {
  CHECK(error_of("a,b,c\n1,2,3\n") ==
        "t:1: begins neither with a JSON object nor with the header "
        "TIMESTAMP,ContextTokens,GeneratedTokens");
  CHECK(error_of("") == "t: no requests in it");
  CHECK(error_of(kHeader) == "t: no requests in it");
  const auto missing = read_trace(std::string("/nonexistent/file"));
  CHECK(absl::IsNotFound(missing.status()));
  CHECK(std::string(missing.status().message()) ==
        "/nonexistent/file: No such file or directory");
}

}  // namespace
}  // namespace vllm_metrics::sim
