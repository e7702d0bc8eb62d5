#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/shm/recorders.h"
#include "tests/shm/shared_folder.h"

// Holds every page against the ones before it and against itself.
class PageJudge {
 public:
  void judge(const vllm_metrics::Registry& registry) {
    registry.snapshot(snapshot_);
    CHECK(no_counter_falls());
    const std::string page(format_.render(snapshot_));
    CHECK(histograms_agree(page));
    const double torn = sample(page, "vllm_metrics_torn_banks");
    CHECK(torn >= torn_);
    torn_ = torn;
    const double ended =
        sample(page, of_engine("vllm:e2e_request_latency_seconds_count"));
    const auto steps_of = [&](const char* name, double per_step) {
      return sample(page, of_engine(name)) / per_step;
    };
    // Of different families, at most the steps that somebody died in.
    CHECK(std::abs(steps_of("vllm:prompt_tokens_total", kPromptTokens) -
                   ended) <= torn);
    CHECK(std::abs(
              steps_of("vllm:inter_token_latency_seconds_count", kLatencies) -
              ended) <= torn);
  }

  double torn() const { return torn_; }

 private:
  bool no_counter_falls() {
    using namespace vllm_metrics;  // NOLINT
    for (const SchemaFamily& family : snapshot_.schema->families) {
      if (family.family.kind == MetricKind::kGauge) continue;
      for (const Series& series : family.series) {
        std::string key = family.family.name;
        for (const Label& label : series.labels) key += label.value + ',';
        std::vector<double>& before = before_[key];
        std::vector<double> now;
        if (family.family.kind == MetricKind::kHistogram) {
          for (const auto n : snapshot_.buckets(series))
            now.push_back(static_cast<double>(n));
          now.push_back(snapshot_.sum(series));
        } else if (family.family.number == CounterNumber::kInteger) {
          now.push_back(static_cast<double>(snapshot_.integer(series)));
        } else {
          now.push_back(snapshot_.real(series));
        }
        before.resize(now.size());
        for (std::size_t i = 0; i < now.size(); ++i) {
          if (now[i] < before[i]) {
            UNSCOPED_INFO(key << " fell from " << before[i] << " to "
                              << now[i]);
            return false;
          }
        }
        before = std::move(now);
      }
    }
    return true;
  }

  // Buckets rise along the page to `_count`.
  static bool histograms_agree(const std::string& page) {
    std::istringstream lines(page);
    std::string line;
    double last = 0.0;
    while (std::getline(lines, line)) {
      const double value =
          std::strtod(line.c_str() + line.rfind(' ') + 1, nullptr);
      if (line.find("_bucket{") != std::string::npos) {
        if (value < last) return false;
        last = value;
      } else {
        const std::string name = line.substr(0, line.find_first_of("{ "));
        if (name.ends_with("_count") && value != last) return false;
        last = 0.0;
      }
    }
    return true;
  }

  vllm_metrics::Snapshot snapshot_;
  vllm_metrics::TextFormat format_;
  std::map<std::string, std::vector<double>> before_;
  double torn_ = 0.0;
};
