#include "src/tools/doctor/reading.h"

namespace vllm_metrics::doctor {
namespace {

std::optional<double> ratio(std::optional<double> part,
                            std::optional<double> whole) {
  if (!part.has_value() || whole.value_or(0.0) <= 0.0) return std::nullopt;
  return *part / *whole;
}

}  // namespace

bool Reading::moved() const {
  return generation_tokens.value_or(0.0) > 0.0 ||
         prompt_tokens.value_or(0.0) > 0.0 ||
         (ended.has_value() && ended->all() > 0.0);
}

bool Reading::is_active() const {
  const auto there = [](const std::optional<Level>& level) {
    return level.has_value() && level->before + level->after > 0.0;
  };
  return moved() || there(running) || there(waiting);
}

std::optional<double> Reading::per_second(std::optional<double> count) const {
  return ratio(count, elapsed);
}

std::optional<double> Reading::hit_rate() const {
  return ratio(prefix_hits, prefix_queries);
}

std::optional<double> Reading::hit_rate_before() const {
  return ratio(prefix_hits_before, prefix_queries_before);
}

}  // namespace vllm_metrics::doctor
