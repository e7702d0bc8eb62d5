#include "vllm_metrics/exposition/text_format.h"

#include <memory>
#include <utility>

#include "src/exposition/page_plan.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr Dialect kText{.counter_header_suffix = "_total",
                        .help_escapes_quote = false,
                        .units = false,
                        .created_within_family = false,
                        .exemplars = false,
                        .end = ""};

}  // namespace

struct TextFormat::State {
  PagePlan plan;
  Snapshot snapshot;
};

TextFormat::TextFormat(TextFormatOptions options,
                       std::vector<std::string> names)
    : state_(std::make_unique<State>(State{
          PagePlan(kText, options.created_series, std::move(names)), {}})) {}
TextFormat::TextFormat(TextFormat&&) noexcept = default;
TextFormat& TextFormat::operator=(TextFormat&&) noexcept = default;
TextFormat::~TextFormat() = default;

std::string_view TextFormat::render(const Snapshot& snapshot) {
  return state_->plan.write(snapshot);
}

std::string_view TextFormat::render(const Registry& registry) {
  registry.snapshot(state_->snapshot);
  return render(state_->snapshot);
}

}  // namespace vllm_metrics::inline v0
