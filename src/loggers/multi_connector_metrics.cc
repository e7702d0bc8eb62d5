#include "vllm_metrics/loggers/multi_connector_metrics.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "src/loggers/step_writer.h"
#include "vllm_metrics/stats/multi_connector_stats.h"

namespace vllm_metrics::inline v0 {
namespace {

const std::vector<const KvConnectorStats*>& parts_of(
    const KvConnectorStats& stats) {
  return static_cast<const MultiConnectorStats&>(stats).parts;
}

class MultiConnectorLog final : public KvConnectorLog {
 public:
  void add(std::string_view connector, std::unique_ptr<KvConnectorLog> log) {
    if (log != nullptr) parts_.push_back({connector, std::move(log)});
  }

  void observe(const KvConnectorStats& stats) override {
    for (const KvConnectorStats* step : parts_of(stats)) {
      if (step == nullptr || step->empty()) continue;
      const auto part =
          std::ranges::find(parts_, step->connector(), &Part::connector);
      if (part == parts_.end()) continue;
      part->log->observe(*step);
      part->has_data = true;
    }
  }

  void finish(std::string& out) override {
    std::string_view before = "";
    for (Part& part : parts_) {
      if (!std::exchange(part.has_data, false)) continue;
      out.append(std::exchange(before, ", ")).append(part.connector);
      out += "={";
      part.log->finish(out);
      out += '}';
    }
  }

 private:
  struct Part {
    std::string_view connector;
    std::unique_ptr<KvConnectorLog> log;
    bool has_data = false;
  };
  std::vector<Part> parts_;
};

}  // namespace

MultiConnectorMetrics::MultiConnectorMetrics(const Connectors& connectors) {
  std::size_t first = 0;
  for (const auto& connector : connectors) {
    if (connector == nullptr) continue;
    const std::size_t count = connector->families().size();
    parts_.push_back({connector, first, count});
    first += count;
  }
}
MultiConnectorMetrics::~MultiConnectorMetrics() = default;

std::vector<StepMetrics::Metric> MultiConnectorMetrics::families() const {
  std::vector<StepMetrics::Metric> all;
  for (const Part& part : parts_) {
    std::ranges::move(part.connector->families(), std::back_inserter(all));
  }
  return all;
}

// Lets `write` write to the part's own metrics, which it counts from 0.
template <class Write>
void MultiConnectorMetrics::write(const Part& part, StepWriter& writer,
                                  Write write) {
  StepWriter::State& all = writer.state_;
  StepWriter::State own{all.section, all.own.subspan(part.first, part.count)};
  StepWriter part_writer(own);
  write(part_writer);
  all.wrong_metric += own.wrong_metric;
  all.other_connector += own.other_connector;
}

void MultiConnectorMetrics::record(const KvConnectorStats& stats,
                                   StepWriter& writer) const {
  for (const KvConnectorStats* step : parts_of(stats)) {
    if (step == nullptr) continue;
    const auto part =
        std::ranges::find_if(parts_, [step](const Part& candidate) {
          return candidate.connector->connector() == step->connector();
        });
    if (part == parts_.end()) {
      ++writer.state_.other_connector;
      continue;
    }
    write(*part, writer,
          [&](StepWriter& own) { part->connector->record(*step, own); });
  }
}

std::unique_ptr<KvConnectorLog> MultiConnectorMetrics::make_log() const {
  auto log = std::make_unique<MultiConnectorLog>();
  for (const Part& part : parts_)
    log->add(part.connector->connector(), part.connector->make_log());
  return log;
}

std::uint64_t MultiConnectorMetrics::sampled() const noexcept {
  std::uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.connector->sampled();
  return sum;
}

void MultiConnectorMetrics::begin(StepWriter& writer) const {
  for (const Part& part : parts_) {
    write(part, writer, [&](StepWriter& own) { part.connector->begin(own); });
  }
}

}  // namespace vllm_metrics::inline v0
