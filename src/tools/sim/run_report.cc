#include "src/tools/sim/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <string_view>

namespace vllm_metrics::sim {
namespace {

double ratio(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

double ratio(std::int64_t part, std::int64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

// 12345678 as 12,345,678: independent of the process's locale.
std::string grouped(std::int64_t n) {
  std::string text = fmt::format("{}", n);
  for (auto i = std::ssize(text) - 3; i > 0; i -= 3) {
    text.insert(static_cast<std::size_t>(i), 1, ',');
  }
  return text;
}

template <class... Args>
void line(std::string& out, std::string_view name,
          fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), "{:<16}", name);
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out += '\n';
}

void latency_line(std::string& out, std::string_view name,
                  const LatencyTally& tally) {
  line(out, name, "{:>12.6f} {:>12.6f} {:>12.6f} {:>12}", tally.mean_seconds(),
       tally.quantile_seconds(0.5), tally.quantile_seconds(0.99),
       grouped(static_cast<std::int64_t>(tally.count())));
}

}  // namespace

void RunReport::add_step(const SchedulerStats& scheduler) {
  ++steps_;
  prefix_queries_ += scheduler.prefix_cache_stats.queries;
  prefix_hits_ += scheduler.prefix_cache_stats.hits;
  peak_kv_cache_usage_ =
      std::max(peak_kv_cache_usage_, scheduler.kv_cache_usage);
}

void RunReport::add_outputs(const IterationStats& iteration) {
  preemptions_ += iteration.num_preempted_reqs;
  prompt_tokens_ += iteration.prompt_token_stats.total;
  cached_tokens_ += iteration.prompt_token_stats.cached_tokens;
  generation_tokens_ += iteration.num_generation_tokens;
  for (const double seconds : iteration.time_to_first_tokens_iter) {
    first_token_.add(to_ticks(seconds));
  }
  // Requests that decode together wait equally long: count runs at once.
  const auto& latencies = iteration.inter_token_latencies_iter;
  for (auto begin = latencies.begin(); begin != latencies.end();) {
    const auto end = std::find_if(begin, latencies.end(),
                                  [begin](double s) { return s != *begin; });
    inter_token_.add(to_ticks(*begin), static_cast<std::uint64_t>(end - begin));
    begin = end;
  }
}

void RunReport::add_arrivals(std::int64_t arrived, std::int64_t refused) {
  arrived_ += arrived;
  refused_ += refused;
}

void RunReport::add_finished(const Request& request, Ticks now) {
  const RequestStateStats& stats = request.stats;
  ++finished_[static_cast<std::size_t>(request.spec.finish_reason)];
  const double scheduled = stats.scheduled_ts.value_or(to_seconds(now));
  queue_.add(to_ticks(scheduled - *stats.queued_ts));
  end_to_end_.add(now - request.spec.arrival);
}

std::int64_t RunReport::finished() const {
  return std::accumulate(finished_.begin(), finished_.end(), std::int64_t{0});
}

std::string RunReport::summary(const Context& context) const {
  std::string out;
  line(out, "Workload", "{}", context.workload);
  line(out, "Virtual time", "{:.3f} s{}", context.virtual_seconds,
       context.interrupted ? ", interrupted" : "");
  line(out, "Requests", "{} arrived, {} finished, {} refused, {} unfinished",
       grouped(arrived_), grouped(finished()), grouped(refused_),
       grouped(arrived_ - finished() - refused_));
  std::string reasons;
  for (std::size_t i = 0; i < finished_.size(); ++i) {
    if (finished_[i] == 0) continue;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ",
                           grouped(finished_[i]), kFinishReasonNames[i]);
  }
  line(out, "Finish reasons", "{}", reasons.empty() ? "none" : reasons);
  line(out, "Preemptions", "{}", grouped(preemptions_));
  line(out, "Prompt tokens", "{}, {} of them cached ({:.1f} %)",
       grouped(prompt_tokens_), grouped(cached_tokens_),
       100.0 * ratio(cached_tokens_, prompt_tokens_));
  line(out, "Output tokens", "{}", grouped(generation_tokens_));
  line(out, "Prefix cache", "{} of {} tokens hit ({:.1f} %)",
       grouped(prefix_hits_), grouped(prefix_queries_),
       100.0 * ratio(prefix_hits_, prefix_queries_));
  if (context.kv_cache_limited) {
    // Cut, not rounded: 100.0 % is a full cache only.
    line(out, "KV cache", "{:.1f} % used at most",
         std::floor(1000.0 * peak_kv_cache_usage_) / 10.0);
  } else {
    line(out, "KV cache", "unlimited");
  }
  line(out, "Throughput",
       "{:.2f} requests/s, {:.1f} prompt and {:.1f} output tokens/s",
       ratio(static_cast<double>(finished()), context.virtual_seconds),
       ratio(static_cast<double>(prompt_tokens_), context.virtual_seconds),
       ratio(static_cast<double>(generation_tokens_), context.virtual_seconds));
  line(out, "Latency, s", "{:>12} {:>12} {:>12} {:>12}", "mean", "p50", "p99",
       "samples");
  latency_line(out, "  TTFT", first_token_);
  latency_line(out, "  ITL", inter_token_);
  latency_line(out, "  queue", queue_);
  latency_line(out, "  end to end", end_to_end_);
  line(out, "Real time", "{:.3f} s, {:.4g} virtual seconds in each; {} steps",
       context.real_seconds,
       ratio(context.virtual_seconds, context.real_seconds), grouped(steps_));
  line(out, "record()", "{:.2f} us a step, {:.1f} % of the real time",
       1e6 * ratio(context.record_seconds, static_cast<double>(steps_)),
       100.0 * ratio(context.record_seconds, context.real_seconds));
  return out;
}

void write_request_header(std::ostream& out) {
  out << "id,engine,arrival,queued,scheduled,first_token,last_token,ttft,queue,"
         "prefill,decode,e2e,prompt,cached,generated,preemptions,reason,"
         "trace_id\n";
}

void write_request_row(std::ostream& out, int engine, const Request& request) {
  const RequestStateStats& stats = request.stats;
  const double arrival = to_seconds(request.spec.arrival);
  const std::optional<double> queued = stats.queued_ts;
  const std::optional<double> scheduled = stats.scheduled_ts;
  const std::optional<double> first = stats.first_token_ts;
  const std::optional<double> last = stats.last_token_ts;
  const auto text = [](const std::optional<double>& value) {
    return value.has_value() ? fmt::format("{}", *value) : std::string();
  };
  const auto since = [&text](const std::optional<double>& begin,
                             const std::optional<double>& end) {
    return begin.has_value() && end.has_value() ? text(*end - *begin)
                                                : std::string();
  };
  out << fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", request.id,
      engine, arrival, text(queued), text(scheduled), text(first), text(last),
      since(arrival, first), since(queued, scheduled), since(scheduled, first),
      since(first, last), since(arrival, last), stats.num_prompt_tokens,
      stats.num_cached_tokens, stats.num_generation_tokens,
      stats.num_preemptions, name_of(request.spec.finish_reason),
      stats.trace.valid()
          ? fmt::format("{:02x}", fmt::join(stats.trace.trace_id, ""))
          : "");
}

void write_inter_token_rows(std::ostream& out, const LatencyTally& tally) {
  out << "seconds,count\n";
  for (const LatencyTally::Entry& entry : tally.sorted()) {
    out << fmt::format("{},{}\n", to_seconds(entry.value), entry.count);
  }
}

}  // namespace vllm_metrics::sim
