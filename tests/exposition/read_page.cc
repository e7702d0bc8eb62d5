// Reads the page in file argv[1] as the library does, for tests that compare
// with other readers: one JSON array a sample,
//   [family, type, sample, {label: value}, value, timestamp or null]
// or, after --render, the page written again.

#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vllm_metrics/exposition/number_text.h"
#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/page_snapshot.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/exposition/text_parser.h"

namespace vllm_metrics {
namespace {

using nlohmann::json;

std::string text_of(double value) {
  char text[kMaxNumberText];
  return {text, write_number(text, value)};
}

void print(const PageFamily& family, const PageSeries& series,
           std::string_view suffix, double value, std::string_view extra = {},
           double bound = 0.0) {
  json labels = json::object();
  for (const PageLabel& label : series.labels)
    labels[std::string(label.name)] = label.value;
  if (!extra.empty()) labels[std::string(extra)] = text_of(bound);
  json timestamp;
  if (series.timestamp) timestamp = *series.timestamp;
  std::cout << json{family.name,
                    name_of(family.kind),
                    std::string(family.name) + std::string(suffix),
                    labels,
                    text_of(value),
                    timestamp}
                   .dump()
            << '\n';
}

void print(const PageFamily& family, const PageSeries& series,
           PageFormat format) {
  switch (family.kind) {
    case PageKind::kHistogram:
    case PageKind::kSummary:
      for (const PageBucket& bucket : series.buckets)
        print(family, series, "_bucket", bucket.count, "le", bucket.bound);
      for (const PageQuantile& quantile : series.quantiles)
        print(family, series, "", quantile.value, "quantile",
              quantile.quantile);
      print(family, series, "_count", series.count);
      if (series.sum) print(family, series, "_sum", *series.sum);
      break;
    case PageKind::kCounter:
      print(family, series, format == PageFormat::kText ? "" : "_total",
            series.value);
      break;
    default:
      print(family, series, "", series.value);
  }
  if (series.created) print(family, series, "_created", *series.created);
}

int run(const char* path, std::string_view mode) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto page = parse_page(text);
  if (!page.ok()) {
    std::cerr << path << ": " << page.status().message() << '\n';
    return 1;
  }
  if (mode.empty()) {
    for (const PageFamily& family : page->families) {
      for (const PageSeries& series : family.series)
        print(family, series, page->format);
    }
    return 0;
  }
  const auto snapshot = snapshot_of(*page);
  if (!snapshot.ok()) {
    std::cerr << path << ": " << snapshot.status().message() << '\n';
    return 1;
  }
  if (mode == "--render-openmetrics") {
    std::cout << OpenMetrics().render(*snapshot);
  } else {
    std::cout << TextFormat().render(*snapshot);
  }
  return 0;
}

}  // namespace
}  // namespace vllm_metrics

int main(int argc, char** argv) {
  return vllm_metrics::run(argv[argc - 1], argc > 2 ? argv[1] : "");
}
