#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

class Registry;

struct OpenMetricsOptions {
  // Behind the samples of each series of a counter or histogram, and in the
  // same family, a sample `<name>_created`: the time it was registered, seconds
  // since 1970.
  bool created_series = false;
};

// Writes snapshots as OpenMetrics 1.0.0: what TextFormat writes, but HELP and
// TYPE of a counter without `_total` (its samples have it), the quote escaped
// in HELP, `# UNIT` where a family's unit ends its name, and `# EOF` as the
// last line. Numbers, label order and `le` are the same.
//
// Families of info series are gauges here too: their samples then have the
// same name in every format. A histogram may be called `..._total`; the
// registry sees to it that no counter has samples of that name.
//
// Thread-safety and cost: as of TextFormat. Make one for each scraping thread.
// Definition: OpenMetrics 1.0.0, text format; number form of client_python.
class VLLM_METRICS_EXPORT OpenMetrics {
 public:
  static constexpr std::string_view kContentType =
      "application/openmetrics-text; version=1.0.0; charset=utf-8";

  // With names, only samples and families that are called so: see TextFormat.
  explicit OpenMetrics(OpenMetricsOptions options = {},
                       std::vector<std::string> names = {});
  OpenMetrics(OpenMetrics&&) noexcept;
  OpenMetrics& operator=(OpenMetrics&&) noexcept;
  ~OpenMetrics();

  // The page; valid until the next call.
  std::string_view render(const Snapshot& snapshot);

  // The same of what `registry` knows now.
  std::string_view render(const Registry& registry);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0
