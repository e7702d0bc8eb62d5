#include "src/tools/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace vllm_metrics::sim {
namespace {

// Log-normal lengths: a spread (of the logarithm) like that of chat traffic.
constexpr double kLengthSigma = 0.8;

std::int64_t draw_length(Random& random, double mean, std::int64_t max) {
  const double length = std::round(random.log_normal(mean, kLengthSigma));
  return static_cast<std::int64_t>(
      std::clamp(length, 1.0, static_cast<double>(max)));
}

}  // namespace

void choose_end(Random& random, RequestSpec& spec) {
  constexpr double kLengthShare = 0.1;
  if (random.uniform() < kLengthShare) {
    spec.finish_reason = FinishReason::kLength;
    spec.max_tokens = spec.output_tokens;
    return;
  }
  spec.finish_reason = FinishReason::kStop;
  // A round limit that the output stayed below.
  std::int64_t limit = 256;
  while (limit <= spec.output_tokens) limit *= 2;
  spec.max_tokens = limit;
}

TraceWorkload::TraceWorkload(std::string name, Ticks epoch,
                             std::vector<RequestSpec> requests,
                             std::uint64_t seed)
    : name_(std::move(name)),
      epoch_(epoch),
      requests_(std::move(requests)),
      random_(seed) {}

std::optional<RequestSpec> TraceWorkload::next() {
  if (next_ == requests_.size()) return std::nullopt;
  RequestSpec spec = std::move(requests_[next_++]);
  choose_end(random_, spec);
  return spec;
}

std::string TraceWorkload::description() const {
  return fmt::format("{}, {} requests", name_, requests_.size());
}

SyntheticWorkload::SyntheticWorkload(const Options& options, std::uint64_t seed)
    : options_(options), random_(seed) {}

std::optional<RequestSpec> SyntheticWorkload::next() {
  now_ += random_.exponential(1.0 / options_.rate);
  RequestSpec spec;
  spec.arrival = to_ticks(now_);
  if (spec.arrival >= options_.end) return std::nullopt;
  const std::int64_t longest_prompt =
      std::max<std::int64_t>(1, options_.max_tokens - 1);
  spec.prompt_tokens =
      draw_length(random_, options_.prompt_tokens, longest_prompt);
  const std::int64_t longest_output =
      std::max<std::int64_t>(1, options_.max_tokens - spec.prompt_tokens);
  spec.output_tokens =
      draw_length(random_, options_.output_tokens, longest_output);
  choose_prefix(spec);
  choose_end(random_, spec);
  return spec;
}

void SyntheticWorkload::choose_prefix(RequestSpec& spec) {
  const std::uint64_t text = random_.next() % kSharedTexts;
  const double shared =
      options_.prefix_share * static_cast<double>(spec.prompt_tokens);
  const auto chunks =
      static_cast<std::size_t>(shared) / static_cast<std::size_t>(kChunkTokens);
  spec.chunk_tokens = kChunkTokens;
  spec.prefix.reserve(chunks);
  std::uint64_t hash = text;
  for (std::size_t i = 0; i < chunks; ++i) {
    hash = chain(hash, i);
    spec.prefix.push_back(hash);
  }
}

std::string SyntheticWorkload::description() const {
  return fmt::format(
      "synthetic, {} requests/s, prompts of {} and outputs of {} tokens on "
      "average, {:g} % shared",
      options_.rate, options_.prompt_tokens, options_.output_tokens,
      options_.prefix_share * 100.0);
}

}  // namespace vllm_metrics::sim
