#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::testing {

// A clock that moves when told to.
class ManualClock final : public Clock {
 public:
  double wall() const noexcept override { return wall_; }
  double monotonic() const noexcept override { return monotonic_; }
  void advance(double seconds) {
    wall_ = wall_ + seconds;
    monotonic_ = monotonic_ + seconds;
  }

 private:
  std::atomic<double> wall_{1'700'000'000.0};
  std::atomic<double> monotonic_{1000.0};
};

// Keeps what was written, as `LEVEL text`. One thread.
class CapturedLog final : public LogSink {
 public:
  explicit CapturedLog(LogLevel minimum = LogLevel::kDebug)
      : minimum_(minimum) {}
  LogLevel minimum_level() const override { return minimum_; }
  void write(LogLevel level, double time, int engine,
             std::string_view text) override {
    lines.push_back(std::string(name_of(level)) + " " + std::string(text));
    times.push_back(time);
    engines.push_back(engine);
  }

  std::vector<std::string> lines;
  std::vector<double> times;
  std::vector<int> engines;

 private:
  LogLevel minimum_;
};

struct Surroundings {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<CapturedLog> log = std::make_shared<CapturedLog>();
  std::shared_ptr<Registry> registry = Registry::create();

  StatLoggerOptions options() const {
    StatLoggerOptions options;
    options.model_name = "m";
    options.max_model_len = 8192;
    options.clock = clock;
    options.log_sink = log;
    options.registry = registry;
    return options;
  }
  std::string page() const {
    return std::string(TextFormat().render(*registry));
  }
};

// The text of the value of a sample, e.g. value(page, "x_total{engine=\"0\"}");
// "absent" when there is none.
inline std::string value(const std::string& page, const std::string& sample) {
  const std::string start = "\n" + sample + " ";
  const std::string text = "\n" + page;
  const auto at = text.find(start);
  if (at == std::string::npos) return "absent";
  const auto from = at + start.size();
  return text.substr(from, text.find('\n', from) - from);
}

// The sample of engine 0 and model m: `name{engine="0",model_name="m"}`.
inline std::string of_engine0(const std::string& page,
                              const std::string& name) {
  return value(page, name + "{engine=\"0\",model_name=\"m\"}");
}

inline std::string bucket(const std::string& page, const std::string& family,
                          const std::string& le) {
  return value(page, family + "_bucket{engine=\"0\",le=\"" + le +
                         "\",model_name=\"m\"}");
}

}  // namespace vllm_metrics::testing
