#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {

// What a snapshot says, a line for each series in order of the page, e.g.
//   x{a="1"} 5
//   h{} 1,0,2 sum 3.5        buckets, not cumulative
inline std::vector<std::string> lines_of(const Snapshot& snapshot) {
  std::vector<std::string> lines;
  for (const SchemaFamily& family : snapshot.schema->families) {
    for (const Series& series : family.series) {
      std::ostringstream line;
      line << family.family.name << "{";
      for (std::size_t i = 0; i < series.labels.size(); ++i) {
        line << (i == 0 ? "" : ",") << series.labels[i].name << "=\""
             << series.labels[i].value << "\"";
      }
      line << "} ";
      if (family.family.kind == MetricKind::kHistogram) {
        const auto buckets = snapshot.buckets(series);
        for (std::size_t i = 0; i < buckets.size(); ++i) {
          line << (i == 0 ? "" : ",") << buckets[i];
        }
        line << " sum " << snapshot.sum(series);
      } else if (family.family.kind == MetricKind::kCounter &&
                 family.family.number == CounterNumber::kInteger) {
        line << snapshot.integer(series);
      } else {
        line << snapshot.real(series);
      }
      lines.push_back(line.str());
    }
  }
  return lines;
}

inline std::vector<std::string> lines_of(const Registry& registry) {
  Snapshot snapshot;
  registry.snapshot(snapshot);
  return lines_of(snapshot);
}

}  // namespace vllm_metrics
