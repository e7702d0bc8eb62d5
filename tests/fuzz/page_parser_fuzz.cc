// Any bytes as a page: strict and tolerant agree, each family is found by its
// name, and what a page says can be written and read again.
// Covers: src/exposition/text_parser.cc src/exposition/page_line.cc
// Covers: src/exposition/page_builder.cc src/exposition/page_histogram.cc
// Covers: src/exposition/page_snapshot.cc src/exposition/metric_reader.cc

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/require.h"
#include "vllm_metrics/exposition/metric_reader.h"
#include "vllm_metrics/exposition/page_snapshot.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/exposition/text_parser.h"

namespace {

using namespace vllm_metrics;

void check_values(const Page& page) {
  const MetricReader reader(page);
  for (const MetricValue& metric : reader.all()) {
    require(!reader.select(metric.name, metric.labels).empty());
    reader.counter(metric.name, metric.labels);
    reader.gauge(metric.name, metric.labels);
    reader.vector(metric.name, metric.labels);
    const auto* histogram = reader.histogram(metric.name, metric.labels);
    if (histogram == nullptr) continue;
    require(histogram->buckets.size() == histogram->bounds.size() + 1);
    require(increase(*histogram, *histogram).count() == 0);
    quantile(0.5, *histogram);
  }
}

// What was written from a snapshot is a page without fault, unless two families
// or series have come to one name.
void check_way_back(const Page& page) {
  const auto snapshot = snapshot_of(page);
  if (!snapshot.ok()) return;
  const std::string text(TextFormat().render(*snapshot));
  const auto again = parse_page(text, {.format = PageFormat::kText});
  if (!again.ok()) return;
  const auto second = snapshot_of(*again);
  require(second.ok());
  require(TextFormat().render(*second) == text);
  const MetricReader before(*snapshot);
  const MetricReader after(*second);
  require(before.all().size() == after.all().size());
}

void check(std::string_view text, PageFormat format) {
  const auto strict = parse_page(text, {.format = format});
  const auto tolerant = parse_page(
      text, {.mode = ParseOptions::Mode::kTolerant, .format = format});
  require(tolerant.ok());
  require(strict.ok() == (tolerant->fault_count == 0));
  if (!strict.ok()) {
    const PageFault& first = tolerant->faults.front();
    require(strict.status().message().find(first.message) != std::string::npos);
  }
  for (const PageFamily& family : tolerant->families) {
    require(tolerant->find(family.name) != nullptr);
    require((name_of(family.kind) == "untyped") ==
            (family.kind == PageKind::kUntyped));
  }
  check_values(*tolerant);
  check_way_back(*tolerant);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // A copy of its own: one byte too far is then seen.
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text, PageFormat::kText);
  check(text, PageFormat::kOpenMetrics);
  require(parse_page(text, {.mode = ParseOptions::Mode::kTolerant}).ok());
  return 0;
}
