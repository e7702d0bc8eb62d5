#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0 {

// Where the exceptions of one stat logger end: reported once, counted always.
// Thread-safe.
class LoggerErrors {
 public:
  LoggerErrors(std::string name, const StatLoggerOptions& options)
      : name_(std::move(name)),
        clock_(options.clock),
        sink_(options.log_sink) {}

  // Where errors are counted, those of before too; called before there are two
  // threads, or never.
  void count_in(Handle<Counter> counter) {
    counter->inc(early_.exchange(0, std::memory_order_relaxed));
    counter_ = std::move(counter);
  }

  void count() noexcept {
    if (counter_.has_value()) {
      (*counter_)->inc();
    } else {
      early_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void report(std::string_view what) noexcept;

 private:
  std::string name_;
  std::shared_ptr<const Clock> clock_;
  std::shared_ptr<LogSink> sink_;
  std::optional<Handle<Counter>> counter_;
  std::atomic<std::uint64_t> early_{0};
  std::atomic<bool> reported_{false};
};

// A stat logger whose exceptions stay here.
struct ContainedLogger {
  std::unique_ptr<StatLoggerBase> logger;
  std::shared_ptr<LoggerErrors> errors;

  template <class Call>
  void call(Call call) noexcept {
    try {
      call(*logger);
    } catch (const std::exception& error) {
      errors->report(error.what());
    } catch (...) {
      errors->report("an exception that is not a std::exception");
    }
  }
};

}  // namespace vllm_metrics::inline v0
