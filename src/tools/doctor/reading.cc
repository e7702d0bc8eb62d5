#include "src/tools/doctor/reading.h"

namespace vllm_metrics::doctor {
namespace {

std::optional<double> ratio(std::optional<double> part,
                            std::optional<double> whole) {
  if (!part.has_value() || whole.value_or(0.0) <= 0.0) return std::nullopt;
  return *part / *whole;
}

}  // namespace

bool Reading::is_active() const {
  const auto moved = [](std::optional<double> count) {
    return count.value_or(0.0) > 0.0;
  };
  const auto there = [](const std::optional<Level>& level) {
    return level.has_value() && level->before + level->after > 0.0;
  };
  return moved(prompt_tokens) || moved(generation_tokens) ||
         (ended.has_value() && ended->all() > 0.0) || there(running) ||
         there(waiting);
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
