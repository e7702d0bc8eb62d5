#include "pushed_step.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contest.h"
#include "engines.h"
#include "loopback_collector.h"
#include "scraped_step.h"
#include "step_data.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/otlp/metrics_exporter.h"
#include "vllm_metrics/otlp/span_exporter.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(EXIT_FAILURE);
}

// An engine whose page is pushed, and with `ratio` above 0 its requests.
class PushedEngine {
 public:
  PushedEngine(const std::string& url, double ratio, std::size_t queue) {
    otlp::Options push;
    push.endpoint = url;
    push.environment = [](const char*) -> const char* { return nullptr; };
    push.export_interval = push.span_delay = 0.1;
    push.root_ratio = ratio;
    push.span_queue = queue;
    StatLoggerOptions options = prometheus_only(1);
    options.registry = Registry::create();
    auto metrics = otlp::MetricsExporter::start(options.registry, push);
    if (!metrics.ok()) give_up(metrics.status().ToString());
    metrics_ = *std::move(metrics);
    if (ratio > 0.0) {
      auto spans = otlp::SpanExporter::start(options.registry, push);
      if (!spans.ok()) give_up(spans.status().ToString());
      spans_ = *std::move(spans);
      options.factories = {spans_->factory()};
    }
    manager_ = make_manager(std::move(options));
  }
  ~PushedEngine() {
    metrics_->shutdown(0.0);
    if (spans_ != nullptr) spans_->shutdown(0.0);
  }

  StatLoggerManager& manager() { return *manager_; }

 private:
  std::unique_ptr<otlp::MetricsExporter> metrics_;
  std::unique_ptr<otlp::SpanExporter> spans_;
  std::unique_ptr<StatLoggerManager> manager_;
};

// Of steps timed one by one, in turns.
double p99_ratio(StatLoggerManager& above, StatLoggerManager& below,
                 const std::vector<Step>& steps) {
  constexpr std::size_t kRepetitions = 15;
  constexpr std::size_t kSteps = 10'000;
  std::vector<double> ratios, times;
  for (std::size_t i = 0; i < kRepetitions; ++i) {
    const double upper = quantile(time_steps(above, steps, kSteps), 0.99);
    const double lower = quantile(time_steps(below, steps, kSteps), 0.99);
    ratios.push_back(upper / lower);
    times.push_back(upper);
  }
  std::printf("%-44s %14.1f ns\n", "the same, p99", median(times));
  return median(std::move(ratios));
}

}  // namespace

PushedStep time_pushed_step() {
  constexpr double kRatio = 0.01;
  const auto steps = make_steps({});
  const LoopbackCollector collector(LoopbackCollector::Manner::kAnswers);
  const LoopbackCollector silent(LoopbackCollector::Manner::kSilent);
  const auto plain_manager = make_manager(prometheus_only(1));
  PushedEngine with_metrics(collector.url(), 0.0, 2048);
  PushedEngine with_spans(collector.url(), kRatio, 2048);
  PushedEngine in_vain(silent.url(), kRatio, 64);

  Contest contest;
  const auto add = [&](const char* name, StatLoggerManager& manager) {
    return contest.add(name, [carousel = Carousel(steps),
                              &manager](std::size_t times) mutable {
      for (std::size_t i = 0; i < times; ++i) record(manager, carousel.next());
    });
  };
  const auto plain = add("no exporter", *plain_manager);
  const auto metrics = add("metrics exporter", with_metrics.manager());
  const auto spans =
      add("metrics exporter and spans of 1 %", with_spans.manager());
  const auto blocked = add("both, never answered", in_vain.manager());
  contest.run();
  const double p99 = p99_ratio(in_vain.manager(), with_spans.manager(), steps);
  if (collector.answers() < 3) give_up("nothing was pushed");
  return {contest.ratio(metrics, plain), contest.ratio(spans, plain),
          contest.ratio(blocked, plain), p99};
}

}  // namespace vllm_metrics::bench
