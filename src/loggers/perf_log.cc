#include "src/loggers/perf_log.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace vllm_metrics::inline v0 {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

double per_second(double v, double elapsed) {
  return elapsed > 0.0 ? v / elapsed : 0.0;
}

void append_object(
    std::string& out, std::string_view key,
    const std::vector<std::pair<std::string, std::string>>& members) {
  fmt::format_to(std::back_inserter(out), "  \"{}\": {{", key);
  for (std::size_t i = 0; i < members.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}\n    \"{}\": {}",
                   i == 0 ? "" : ",", members[i].first, members[i].second);
  }
  out += members.empty() ? "},\n" : "\n  },\n";
}

void append_parts(std::string& out, std::string_view key,
                  const std::vector<PerfBreakdown::Part>& parts, double unit,
                  std::string_view unit_name) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& part : parts) {
    members.emplace_back(
        part.name, fmt::format("\"{:.1f}{}\"", part.value / unit, unit_name));
  }
  append_object(out, key, members);
}

}  // namespace

void PerfLog::observe(const PerfStats& stats) {
  sums_.num_flops_per_gpu += stats.num_flops_per_gpu;
  sums_.num_read_bytes_per_gpu += stats.num_read_bytes_per_gpu;
  sums_.num_write_bytes_per_gpu += stats.num_write_bytes_per_gpu;
  if (stats.breakdown != nullptr) breakdown_.add(*stats.breakdown);
}

void PerfLog::reset() noexcept {
  sums_ = {};
  breakdown_.clear();
}

std::string PerfLog::text(std::string_view prefix, double elapsed) const {
  return fmt::format(
      "{}MFU: {:.1f} TF/s/GPU {:.1f} GB/s/GPU", prefix,
      per_second(sums_.num_flops_per_gpu, elapsed) / kTera,
      per_second(sums_.num_read_bytes_per_gpu + sums_.num_write_bytes_per_gpu,
                 elapsed) /
          kGiga);
}

std::string PerfLog::details(std::string_view prefix, double elapsed) const {
  const PerfContext& context = breakdown_.context;
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  std::string out = fmt::format("{}MFU details: {{\n", prefix);
  fmt::format_to(std::back_inserter(out),
                 "  \"prefill_reqs\": {},\n  \"decode_reqs\": {},\n  "
                 "\"num_batches\": {},\n",
                 context.num_prefill_requests, context.num_decode_requests,
                 breakdown_.num_batches);
  append_object(out, "context_breakdown",
                {{"num_prefill_requests", number(context.num_prefill_requests)},
                 {"prefill_num_tokens", number(context.prefill_num_tokens)},
                 {"prefill_context_len", number(context.prefill_context_len)},
                 {"prefill_token_context_product",
                  number(context.prefill_token_context_product)},
                 {"num_decode_requests", number(context.num_decode_requests)},
                 {"decode_num_tokens", number(context.decode_num_tokens)},
                 {"decode_context_len", number(context.decode_context_len)},
                 {"decode_token_context_product",
                  number(context.decode_token_context_product)}});
  append_parts(out, "flops_breakdown", breakdown_.flops, kTera, "TF");
  append_parts(out, "num_read_bytes_breakdown", breakdown_.read_bytes, kGiga,
               "GB");
  append_parts(out, "num_write_bytes_breakdown", breakdown_.write_bytes, kGiga,
               "GB");
  fmt::format_to(
      std::back_inserter(out),
      "  \"duration\": \"{:.1f}s\",\n  \"mfu_calc_overhead\": \"{:.1f}%\"\n}}",
      elapsed, 100.0 * per_second(breakdown_.calculation_seconds, elapsed));
  return out;
}

}  // namespace vllm_metrics::inline v0
