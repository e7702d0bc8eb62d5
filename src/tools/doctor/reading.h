#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vllm_metrics/exposition/histogram_value.h"

namespace vllm_metrics::doctor {

// A gauge on both pages, summed over the series of one model.
struct Level {
  double before = 0.0;
  double after = 0.0;

  double mean() const { return (before + after) / 2.0; }
};

// One engine of a model; what tells whether they share the load.
struct EngineReading {
  std::string engine = {};  // the label; empty where there is none
  double prompt_tokens = 0.0;
  double generation_tokens = 0.0;
};

// How requests ended.
struct Endings {
  double stop = 0.0;
  double length = 0.0;
  double abort = 0.0;
  double error = 0.0;
  double other = 0.0;

  double all() const { return stop + length + abort + error + other; }
};

// What two pages of one server say about one model. Counts are those between
// the pages; times are seconds. Nothing: the pages do not have that family, or
// for a histogram, it took no value.
struct Reading {
  std::string model = {};
  std::optional<double> elapsed = {};  // seconds between the pages
  std::vector<EngineReading> engines = {};
  bool restarted = false;    // counters fell: the counts are those since then
  bool since_start = false;  // there was no earlier page

  // The two moments.
  std::optional<Level> running = {};
  std::optional<Level> waiting = {};
  std::optional<Level> kv_usage = {};    // mean over the engines, 0 to 1
  std::optional<double> kv_tokens = {};  // that the KV caches hold, all engines

  // Between them.
  std::optional<Endings> ended = {};
  std::optional<double> preemptions = {};
  std::optional<double> prompt_tokens = {};
  std::optional<double> generation_tokens = {};
  std::optional<double> prefix_queries = {};  // tokens
  std::optional<double> prefix_hits = {};
  std::optional<double> prefix_queries_before = {};  // until the first page
  std::optional<double> prefix_hits_before = {};
  std::optional<HistogramValue> step_tokens = {};
  std::optional<HistogramValue> ttft = {};
  std::optional<HistogramValue> itl = {};
  std::optional<HistogramValue> tpot = {};
  std::optional<HistogramValue> e2e = {};
  std::optional<HistogramValue> queue_time = {};
  std::optional<HistogramValue> prefill_time = {};
  std::optional<HistogramValue> decode_time = {};
  std::optional<HistogramValue> prompt_length = {};
  std::optional<HistogramValue> output_length = {};
  std::optional<HistogramValue> idle_before_evict = {};
  std::optional<HistogramValue> reuse_gap = {};

  // From the GPUs' exporter, mean of both pages and all GPUs, 0 to 1.
  std::optional<double> tensor_active = {};
  std::optional<double> dram_active = {};

  // A request was worked on between the pages.
  bool moved() const;

  // Something moved, or is in the engines.
  bool is_active() const;

  // A count as a rate; nothing without a clock.
  std::optional<double> per_second(std::optional<double> count) const;

  // Of the queried tokens of the prefix cache; nothing when none was queried.
  std::optional<double> hit_rate() const;
  std::optional<double> hit_rate_before() const;
};

}  // namespace vllm_metrics::doctor
