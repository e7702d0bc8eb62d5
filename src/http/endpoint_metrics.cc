#include "src/http/endpoint_metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vllm_metrics/catalogue/catalogue.h"

namespace vllm_metrics::inline v0::http {
namespace {

Labels labels_of(const std::string& address) { return {{"address", address}}; }

absl::StatusOr<Handle<Counter>> add_counter(Registry& registry, MetricId id,
                                            const std::string& address) {
  return registry.add_counter(family_of(spec_of(id)), labels_of(address));
}

// One for each value of the extra label; fewer when one could not be added.
std::vector<Handle<Counter>> add_counters(Registry& registry, MetricId id,
                                          const std::string& address) {
  const ExtraLabel& extra = spec_of(id).extra_label;
  std::vector<Handle<Counter>> counters;
  for (const auto value : extra.values) {
    Labels labels = labels_of(address);
    labels.push_back({std::string(extra.name), std::string(value)});
    auto counter = registry.add_counter(family_of(spec_of(id)), labels);
    if (!counter.ok()) return {};
    counters.push_back(*std::move(counter));
  }
  return counters;
}

}  // namespace

std::optional<EndpointMetrics> EndpointMetrics::add_to(
    Registry& registry, const std::string& address) {
  auto answers = add_counters(registry, MetricId::kHttpRequests, address);
  auto bytes = add_counter(registry, MetricId::kHttpResponseBytes, address);
  const MetricSpec& render_spec = spec_of(MetricId::kHttpRenderSeconds);
  auto render = registry.add_histogram(family_of(render_spec),
                                       render_spec.buckets, labels_of(address));
  auto connections = registry.add_gauge(
      family_of(spec_of(MetricId::kHttpConnections)), labels_of(address));
  auto ends = add_counters(registry, MetricId::kHttpClosedConnections, address);
  auto errors = add_counter(registry, MetricId::kHttpAcceptErrors, address);
  if (answers.empty() || !bytes.ok() || !render.ok() || !connections.ok() ||
      ends.empty() || !errors.ok()) {
    return std::nullopt;
  }
  return EndpointMetrics(std::move(answers), *std::move(bytes),
                         *std::move(render), *std::move(connections),
                         std::move(ends), *std::move(errors));
}

EndpointMetrics::EndpointMetrics(Counters answers, Handle<Counter> bytes,
                                 Handle<Histogram> render,
                                 Handle<Gauge> connections, Counters ends,
                                 Handle<Counter> accept_errors)
    : answers_(std::move(answers)),
      bytes_(std::move(bytes)),
      render_(std::move(render)),
      connections_(std::move(connections)),
      ends_(std::move(ends)),
      accept_errors_(std::move(accept_errors)) {}

// The last code stands for those that the catalogue does not have.
void EndpointMetrics::count_answer(unsigned int status) noexcept {
  const auto codes = spec_of(MetricId::kHttpRequests).extra_label.values;
  const absl::AlphaNum text(status);
  const std::string_view code(text.data(), text.size());
  const auto found = std::find(codes.begin(), codes.end() - 1, code);
  answers_[static_cast<std::size_t>(found - codes.begin())]->inc();
}

void EndpointMetrics::count_end(ConnectionTable::End end) noexcept {
  ends_[static_cast<std::size_t>(end)]->inc();
}

}  // namespace vllm_metrics::inline v0::http
