#include "src/tools/doctor/page_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace vllm_metrics::doctor {
namespace {

// What one thing is called, the present name first.
using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 1> kRunning = {
    "vllm:num_requests_running"};
constexpr std::array<std::string_view, 1> kWaiting = {
    "vllm:num_requests_waiting"};
constexpr std::array<std::string_view, 2> kKvUsage = {
    "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"};
constexpr std::array<std::string_view, 1> kCacheConfig = {
    "vllm:cache_config_info"};
constexpr std::array<std::string_view, 1> kEnded = {"vllm:request_success"};
constexpr std::array<std::string_view, 1> kPreemptions = {
    "vllm:num_preemptions"};
constexpr std::array<std::string_view, 1> kPromptTokens = {
    "vllm:prompt_tokens"};
constexpr std::array<std::string_view, 1> kGenerationTokens = {
    "vllm:generation_tokens"};
constexpr std::array<std::string_view, 2> kPrefixQueries = {
    "vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"};
constexpr std::array<std::string_view, 2> kPrefixHits = {
    "vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"};
constexpr std::array<std::string_view, 1> kSimulatedClock = {
    "vllm_metrics_sim_seconds"};
constexpr std::array<std::string_view, 1> kProcessStart = {
    "process_start_time_seconds"};
constexpr std::array<std::string_view, 1> kTensorActive = {
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"};
constexpr std::array<std::string_view, 1> kDramActive = {
    "DCGM_FI_PROF_DRAM_ACTIVE"};

struct HistogramNames {
  std::optional<HistogramValue> Reading::*field;
  std::array<std::string_view, 2> names;
};
constexpr HistogramNames kHistograms[] = {
    {&Reading::step_tokens, {"vllm:iteration_tokens_total"}},
    {&Reading::ttft, {"vllm:time_to_first_token_seconds"}},
    {&Reading::itl,
     {"vllm:inter_token_latency_seconds",
      "vllm:time_per_output_token_seconds"}},
    {&Reading::tpot, {"vllm:request_time_per_output_token_seconds"}},
    {&Reading::e2e, {"vllm:e2e_request_latency_seconds"}},
    {&Reading::queue_time, {"vllm:request_queue_time_seconds"}},
    {&Reading::prefill_time, {"vllm:request_prefill_time_seconds"}},
    {&Reading::decode_time, {"vllm:request_decode_time_seconds"}},
    {&Reading::prompt_length, {"vllm:request_prompt_tokens"}},
    {&Reading::output_length, {"vllm:request_generation_tokens"}},
    {&Reading::idle_before_evict, {"vllm:kv_block_idle_before_evict_seconds"}},
    {&Reading::reuse_gap, {"vllm:kv_block_reuse_gap_seconds"}},
};

const PageFamily* find(const Page* page, Names names) {
  if (page == nullptr) return nullptr;
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    if (const PageFamily* found = page->find(name)) return found;
  }
  return nullptr;
}

std::string_view label(const PageSeries& series, std::string_view name) {
  for (const PageLabel& label : series.labels) {
    if (label.name == name) return label.value;
  }
  return {};
}

// The series of `family` that has the labels of `series`; pages of one server
// mostly have both at the same place.
const PageSeries* twin(const PageFamily* family, const PageSeries& series,
                       std::size_t place) {
  if (family == nullptr) return nullptr;
  const auto same = [&series](const PageSeries& other) {
    return std::ranges::equal(series.labels, other.labels);
  };
  if (place < family->series.size() && same(family->series[place]))
    return &family->series[place];
  const auto found = std::ranges::find_if(family->series, same);
  return found == family->series.end() ? nullptr : &*found;
}

// Calls `use(before, after)` for each series of the model on the later page;
// `before` is null for one that is new.
template <class Use>
bool for_each_series(const PagePair& pages, Names names, std::string_view model,
                     Use use) {
  const PageFamily* const after = find(pages.after, names);
  if (after == nullptr) return false;
  const PageFamily* const before = find(pages.before, names);
  bool any = false;
  for (std::size_t i = 0; i < after->series.size(); ++i) {
    const PageSeries& series = after->series[i];
    if (label(series, "model_name") != model) continue;
    use(twin(before, series, i), series);
    any = true;
  }
  return any;
}

// Of a counter, with PromQL's rule for one that was reset.
double increase(const PageSeries* before, const PageSeries& after,
                bool& restarted) {
  const double start = before == nullptr ? 0.0 : before->value;
  if (after.value >= start) return after.value - start;
  restarted = true;
  return after.value;
}

std::optional<double> increase(const PagePair& pages, Names names,
                               Reading& reading) {
  double sum = 0.0;
  if (!for_each_series(pages, names, reading.model,
                       [&](const PageSeries* before, const PageSeries& after) {
                         sum += increase(before, after, reading.restarted);
                       }))
    return std::nullopt;
  return sum;
}

// Of the counter on the first page.
std::optional<double> start_value(const PagePair& pages, Names names,
                                  std::string_view model) {
  const PageFamily* const family = find(pages.before, names);
  if (family == nullptr) return std::nullopt;
  double sum = 0.0;
  for (const PageSeries& series : family->series) {
    if (label(series, "model_name") == model) sum += series.value;
  }
  return sum;
}

std::optional<Level> level(const PagePair& pages, Names names,
                           std::string_view model, std::size_t& series_count) {
  Level sum;
  series_count = 0;
  if (!for_each_series(pages, names, model,
                       [&](const PageSeries* before, const PageSeries& after) {
                         const PageSeries& start =
                             before == nullptr ? after : *before;
                         sum.before += start.value;
                         sum.after += after.value;
                         ++series_count;
                       }))
    return std::nullopt;
  return sum;
}

HistogramValue value_of(const PageSeries& series) {
  HistogramValue value;
  for (const PageBucket& bucket : series.buckets) {
    if (std::isfinite(bucket.bound)) value.bounds.push_back(bucket.bound);
    value.buckets.push_back(static_cast<std::uint64_t>(bucket.count));
  }
  value.sum = series.sum.value_or(0.0);
  return value;
}

// Bounds that `sum` lacks are left out, those that `more` lacks have the count
// of the next lower one: the sum stays cumulative.
void add(const HistogramValue& more, HistogramValue& sum) {
  if (sum.buckets.empty()) {
    sum = more;
    return;
  }
  for (std::size_t i = 0; i < sum.bounds.size(); ++i) {
    const auto upper = std::ranges::upper_bound(more.bounds, sum.bounds[i]);
    if (upper != more.bounds.begin())
      sum.buckets[i] += more.buckets[static_cast<std::size_t>(
          upper - more.bounds.begin() - 1)];
  }
  sum.buckets.back() += more.count();
  sum.sum += more.sum;
}

std::optional<HistogramValue> histogram(const PagePair& pages, Names names,
                                        Reading& reading) {
  HistogramValue sum;
  for_each_series(
      pages, names, reading.model,
      [&](const PageSeries* before, const PageSeries& after) {
        if (after.buckets.empty()) return;
        const HistogramValue start =
            before == nullptr ? HistogramValue{} : value_of(*before);
        const HistogramValue end = value_of(after);
        reading.restarted |= end.count() < start.count();
        add(before == nullptr ? end : vllm_metrics::increase(start, end), sum);
      });
  if (sum.count() == 0) return std::nullopt;
  return sum;
}

std::optional<Endings> endings(const PagePair& pages, Reading& reading) {
  Endings ended;
  const std::map<std::string_view, double Endings::*> reasons = {
      {"stop", &Endings::stop},
      {"length", &Endings::length},
      {"abort", &Endings::abort},
      {"error", &Endings::error}};
  if (!for_each_series(pages, kEnded, reading.model,
                       [&](const PageSeries* before, const PageSeries& after) {
                         const auto reason =
                             reasons.find(label(after, "finished_reason"));
                         ended.*(reason == reasons.end() ? &Endings::other
                                                         : reason->second) +=
                             increase(before, after, reading.restarted);
                       }))
    return std::nullopt;
  return ended;
}

std::vector<EngineReading> engines(const PagePair& pages, Reading& reading) {
  std::map<std::string_view, EngineReading> by_engine;
  const auto counted = [&](Names names, double EngineReading::*field) {
    for_each_series(pages, names, reading.model,
                    [&](const PageSeries* before, const PageSeries& after) {
                      by_engine[label(after, "engine")].*field +=
                          increase(before, after, reading.restarted);
                    });
  };
  counted(kPromptTokens, &EngineReading::prompt_tokens);
  counted(kGenerationTokens, &EngineReading::generation_tokens);
  std::vector<EngineReading> found;
  for (auto& [engine, of_engine] : by_engine) {
    of_engine.engine = engine;
    found.push_back(std::move(of_engine));
  }
  return found;
}

// Tokens that the KV caches hold. cache_config_info has no label model_name.
std::optional<double> kv_tokens(const PagePair& pages) {
  const PageFamily* const family = find(pages.after, kCacheConfig);
  if (family == nullptr) return std::nullopt;
  double sum = 0.0;
  for (const PageSeries& series : family->series) {
    const auto number = [&series](std::string_view name) {
      return std::strtod(std::string(label(series, name)).c_str(), nullptr);
    };
    sum += number("num_gpu_blocks") * number("block_size");
  }
  if (sum <= 0.0) return std::nullopt;
  return sum;
}

// The mean of a gauge over all its series on both pages.
std::optional<double> gpu_mean(const PagePair& pages, Names names) {
  double sum = 0.0;
  double count = 0.0;
  for (const Page* page :
       {pages.gpus_before, pages.gpus_after, pages.before, pages.after}) {
    const PageFamily* const family = find(page, names);
    if (family == nullptr) continue;
    for (const PageSeries& series : family->series) {
      sum += series.value;
      count += 1.0;
    }
  }
  if (count == 0.0) return std::nullopt;
  return sum / count;
}

std::optional<double> single_value(const Page* page, Names names) {
  const PageFamily* const family = find(page, names);
  if (family == nullptr || family->series.empty()) return std::nullopt;
  return family->series.front().value;
}

Reading read_model(const PagePair& pages, std::string model,
                   std::optional<double> elapsed) {
  Reading reading;
  reading.model = std::move(model);
  reading.elapsed = elapsed;
  reading.since_start = pages.before == nullptr;
  std::size_t series = 0;
  reading.running = level(pages, kRunning, reading.model, series);
  reading.waiting = level(pages, kWaiting, reading.model, series);
  reading.kv_usage = level(pages, kKvUsage, reading.model, series);
  if (reading.kv_usage.has_value()) {
    reading.kv_usage->before /= static_cast<double>(series);
    reading.kv_usage->after /= static_cast<double>(series);
  }
  reading.kv_tokens = kv_tokens(pages);
  reading.ended = endings(pages, reading);
  reading.preemptions = increase(pages, kPreemptions, reading);
  reading.prompt_tokens = increase(pages, kPromptTokens, reading);
  reading.generation_tokens = increase(pages, kGenerationTokens, reading);
  reading.prefix_queries = increase(pages, kPrefixQueries, reading);
  reading.prefix_hits = increase(pages, kPrefixHits, reading);
  reading.prefix_queries_before =
      start_value(pages, kPrefixQueries, reading.model);
  reading.prefix_hits_before = start_value(pages, kPrefixHits, reading.model);
  for (const HistogramNames& one : kHistograms)
    reading.*one.field = histogram(pages, one.names, reading);
  reading.engines = engines(pages, reading);
  reading.tensor_active = gpu_mean(pages, kTensorActive);
  reading.dram_active = gpu_mean(pages, kDramActive);
  return reading;
}

bool is_vllm(const PageFamily& family) {
  return family.name.starts_with("vllm:");
}

std::set<std::string_view> models(const Page& page) {
  std::set<std::string_view> names;
  for (const PageFamily& family : page.families) {
    if (!is_vllm(family)) continue;
    for (const PageSeries& series : family.series) {
      const std::string_view model = label(series, "model_name");
      if (!model.empty()) names.insert(model);
    }
  }
  return names;
}

std::string listed(const std::set<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

absl::Status check_is_vllm(const Page& page) {
  if (std::ranges::any_of(page.families, is_vllm)) return absl::OkStatus();
  std::set<std::string_view> beginnings;
  for (const PageFamily& family : page.families)
    beginnings.insert(family.name.substr(0, family.name.find_first_of("_:")));
  if (beginnings.empty())
    return absl::InvalidArgumentError("the page has no metrics");
  return absl::InvalidArgumentError(fmt::format(
      "no vllm: family on the page, so nothing is known of a server; its "
      "families begin with {}",
      listed(beginnings)));
}

// A page that ends early lacks the last families of the other one.
absl::Status check_is_whole(const Page& page, const Page& other,
                            std::string_view which) {
  std::string_view last;
  std::size_t missing = 0;
  for (const PageFamily& family : other.families) {
    if (!is_vllm(family)) continue;
    if (page.find(family.name) == nullptr) {
      ++missing;
    } else if (missing > 0) {
      return absl::OkStatus();  // a hole, no end
    } else {
      last = family.name;
    }
  }
  if (missing == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the {} page is cut short, or of another server: it ends with {}, and "
      "{} families of the other page are missing",
      which, last, missing));
}

absl::Status check_same_server(const PagePair& pages) {
  const auto before = models(*pages.before);
  const auto after = models(*pages.after);
  if (std::ranges::none_of(
          after, [&before](std::string_view m) { return before.contains(m); }))
    return absl::InvalidArgumentError(fmt::format(
        "the pages are of different servers: one has the models {}, the other "
        "{}",
        listed(before), listed(after)));
  const PageFamily* const config_before = find(pages.before, kCacheConfig);
  const PageFamily* const config_after = find(pages.after, kCacheConfig);
  if (config_before != nullptr && config_after != nullptr) {
    for (std::size_t i = 0; i < config_after->series.size(); ++i) {
      if (twin(config_before, config_after->series[i], i) == nullptr)
        return absl::InvalidArgumentError(
            "the pages are of different servers: vllm:cache_config_info is "
            "another");
    }
  }
  if (auto status = check_is_whole(*pages.before, *pages.after, "earlier");
      !status.ok())
    return status;
  return check_is_whole(*pages.after, *pages.before, "later");
}

// After a restart in between the counters start anew; where they do not, the
// other start time is another server's.
absl::Status check_start(const PagePair& pages,
                         const std::vector<Reading>& readings) {
  const auto before = single_value(pages.before, kProcessStart);
  const auto after = single_value(pages.after, kProcessStart);
  if (!before.has_value() || !after.has_value()) return absl::OkStatus();
  if (std::abs(*after - *before) < 1.0) return absl::OkStatus();
  const bool restarted = std::ranges::any_of(readings, &Reading::restarted);
  const bool was_busy = std::ranges::any_of(
      readings, [](const Reading& r) { return r.generation_tokens > 0.0; });
  if (*after > *before && (restarted || !was_busy)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      *after < *before
          ? "the pages are of different servers, or in the wrong order: the "
            "server of the later page started earlier"
          : "the pages are of different servers: they started at different "
            "times, and no counter began anew");
}

absl::StatusOr<std::optional<double>> elapsed_between(const PagePair& pages) {
  if (pages.stated_elapsed.has_value()) return pages.stated_elapsed;
  const auto end = single_value(pages.after, kSimulatedClock);
  if (!end.has_value()) return pages.measured_elapsed;
  const double start = single_value(pages.before, kSimulatedClock).value_or(0);
  if (*end < start)
    return absl::InvalidArgumentError(
        "the pages are in the wrong order: the clock of the later one, "
        "vllm_metrics_sim_seconds, is behind");
  return *end - start;
}

}  // namespace

absl::StatusOr<std::vector<Reading>> read_pages(const PagePair& pages) {
  for (const Page* page : {pages.before, pages.after}) {
    if (page == nullptr) continue;
    if (auto status = check_is_vllm(*page); !status.ok()) return status;
  }
  if (pages.before != nullptr) {
    if (auto status = check_same_server(pages); !status.ok()) return status;
  }
  const auto elapsed = elapsed_between(pages);
  if (!elapsed.ok()) return elapsed.status();
  std::vector<Reading> readings;
  for (const std::string_view model : models(*pages.after))
    readings.push_back(read_model(pages, std::string(model), *elapsed));
  if (pages.before != nullptr) {
    if (auto status = check_start(pages, readings); !status.ok()) return status;
  }
  return readings;
}

}  // namespace vllm_metrics::doctor
