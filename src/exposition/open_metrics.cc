#include "vllm_metrics/exposition/open_metrics.h"

#include <memory>
#include <utility>

#include "src/exposition/page_plan.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr Dialect kOpenMetrics{.counter_header_suffix = "",
                               .help_escapes_quote = true,
                               .units = true,
                               .created_within_family = true,
                               .exemplars = true,
                               .end = "# EOF\n"};

}  // namespace

struct OpenMetrics::State {
  PagePlan plan;
  Snapshot snapshot;
};

OpenMetrics::OpenMetrics(OpenMetricsOptions options,
                         std::vector<std::string> names)
    : state_(std::make_unique<State>(State{
          PagePlan(kOpenMetrics, options.created_series, std::move(names)),
          {}})) {}
OpenMetrics::OpenMetrics(OpenMetrics&&) noexcept = default;
OpenMetrics& OpenMetrics::operator=(OpenMetrics&&) noexcept = default;
OpenMetrics::~OpenMetrics() = default;

std::string_view OpenMetrics::render(const Snapshot& snapshot) {
  return state_->plan.write(snapshot);
}

std::string_view OpenMetrics::render(const Registry& registry) {
  registry.snapshot(state_->snapshot);
  return render(state_->snapshot);
}

}  // namespace vllm_metrics::inline v0
