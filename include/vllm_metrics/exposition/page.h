#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// What a parser made of a page of metrics: families, their series, and the
// values of each. parse_page() in text_parser.h fills these structs.
//
// All text is views, into the page's bytes and into `Page::storage` where an
// escape had to be undone. Keep the bytes for as long as the Page.

enum class PageFormat : std::uint8_t { kText, kOpenMetrics };

enum class PageKind : std::uint8_t {
  kUntyped,  // no TYPE line, or `untyped`, or OpenMetrics' `unknown`
  kCounter,
  kGauge,
  kHistogram,
  kSummary,
  kInfo,            // OpenMetrics only, as the two below
  kStateSet,        //
  kGaugeHistogram,  // buckets, count and sum may fall
};

// As a TYPE line has it: "untyped", "counter", ...
VLLM_METRICS_EXPORT std::string_view name_of(PageKind kind);

struct PageLabel {
  std::string_view name;
  std::string_view value;

  friend bool operator==(const PageLabel&, const PageLabel&) = default;
};

// One observation that a sample was last moved by. OpenMetrics only.
struct PageExemplar {
  std::span<const PageLabel> labels = {};
  double value = 0.0;
  std::optional<double> timestamp = {};  // seconds since 1970
};

struct PageBucket {
  double bound = 0.0;  // `le`, inclusive
  double count = 0.0;  // cumulative
  const PageExemplar* exemplar = nullptr;
};

struct PageQuantile {
  double quantile = 0.0;  // 0 to 1
  double value = 0.0;
};

// One label set of a family and its values; which of them count depends on the
// family's kind.
struct PageSeries {
  std::span<const PageLabel> labels = {};    // by name; without le and quantile
  double value = 0.0;                        // no histogram or summary
  std::vector<PageBucket> buckets = {};      // ascending
  std::vector<PageQuantile> quantiles = {};  // as on the page
  double count = 0.0;                        // of buckets alone: their +Inf
  std::optional<double> sum = {};
  std::optional<double> timestamp = {};  // seconds since 1970; of the last line
  std::optional<double> created = {};    // seconds since 1970, OpenMetrics
  const PageExemplar* exemplar = nullptr;  // counters
  std::size_t line = 0;                    // of the first sample
};

struct PageFamily {
  std::string_view name = {};  // as TYPE and HELP have it
  std::string_view help = {};
  std::string_view unit = {};  // OpenMetrics
  PageKind kind = PageKind::kUntyped;
  std::vector<PageSeries> series = {};  // in the order of the page
};

// What is wrong with a page, and where: lines and columns from 1, in bytes.
struct PageFault {
  std::size_t line = 0;
  std::size_t column = 0;
  std::string message = {};  // what is there, and what is allowed
};

struct Page {
  // Faults that are kept; more are only counted.
  static constexpr std::size_t kMaxFaults = 100;

  PageFormat format = PageFormat::kText;
  std::vector<PageFamily> families = {};  // in the order of the page
  std::vector<PageFault> faults = {};
  std::size_t fault_count = 0;  // all of them
  std::unique_ptr<std::pmr::monotonic_buffer_resource> storage = {};

  // The family of that name, a counter's with or without `_total`; null when
  // there is none.
  VLLM_METRICS_EXPORT const PageFamily* find(std::string_view name) const;
};

}  // namespace vllm_metrics::inline v0
