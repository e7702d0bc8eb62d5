// A stat logger that writes what an engine reports as a trace, which
// `vllm-metrics-replay` plays again: to see a page of production on your desk,
// or to keep a strange hour as a test.
//
// In production: copy this file, trace_line.h and trace_stats.h, and add to the
// options
//
//     options.factories.push_back(TraceRecorder::factory("/tmp/steps.jsonl"));
//
// record() copies the step into a buffer that is kept (no allocation once it
// has grown); log() and the destructor write the file. Cost: the memory of one
// log interval's steps, and on disk about 700 bytes for each step and 20 for
// each token, so record while you look for something, not for ever. Records
// since the last log() are lost when the process dies.
//
// Not in the format, so not in what a replay shows: `buckets`,
// `latency_buckets`, `lora_label_sets`, `lora_strict`, `debug_mfu_metrics`,
// `step_metrics`, KV connectors other than NIXL, and metrics of your own.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace_line.h"
#include "trace_stats.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger.h"

// Thread-safety: as StatLoggerBase asks; record() of all engines takes one lock
// for the time of a copy.
// Errors: create() fails when the file cannot be made; when it cannot be
// written later, a WARNING says so once.
class TraceRecorder : public vllm_metrics::StatLoggerBase {
 public:
  using Options = vllm_metrics::StatLoggerOptions;

  // For StatLoggerOptions::factories. The file is made anew.
  static vllm_metrics::StatLoggerFactory factory(std::string path) {
    return vllm_metrics::AggregateStatLoggerFactory(
        [path = std::move(path)](const Options& options) {
          return create(path, options);
        });
  }

  static absl::StatusOr<std::unique_ptr<StatLoggerBase>> create(
      const std::string& path, const Options& options) {
    std::ofstream file(path, std::ios::binary);
    if (!file) {
      return absl::InvalidArgumentError("trace file \"" + path +
                                        "\" cannot be written; allowed: a "
                                        "file in a folder that exists");
    }
    return std::unique_ptr<StatLoggerBase>(
        new TraceRecorder(path, std::move(file), options));
  }

  ~TraceRecorder() override { write_buffered(); }

  std::string_view name() const override { return "trace_recorder"; }

  void record(const vllm_metrics::StepRecord& step) override {
    const std::lock_guard lock(mutex_);
    Event& event = add(Event::Kind::kRecord);
    event.engine = step.engine_index;
    event.has_scheduler = step.scheduler != nullptr;
    event.has_iteration = step.iteration != nullptr;
    event.has_mm_cache = step.mm_cache != nullptr;
    // Copied into what an earlier step left, to reuse its storage.
    if (event.has_scheduler) event.scheduler.copy(*step.scheduler);
    if (event.has_iteration) event.iteration = *step.iteration;
    if (event.has_mm_cache) event.mm_cache = *step.mm_cache;
  }

  void log() override {
    {
      const std::lock_guard lock(mutex_);
      add(Event::Kind::kLog);
    }
    write_buffered();
  }

  void log_engine_initialized() override {
    const std::lock_guard lock(mutex_);
    add(Event::Kind::kInit);
  }

  void record_sleep_state(const vllm_metrics::SleepState& state) override {
    const std::lock_guard lock(mutex_);
    add(Event::Kind::kSleep).sleep = state;
  }

 private:
  struct Event {
    enum class Kind { kRecord, kLog, kInit, kSleep };
    Kind kind = Kind::kLog;
    double wall = 0.0;
    double mono = 0.0;
    int engine = 0;
    bool has_scheduler = false;
    bool has_iteration = false;
    bool has_mm_cache = false;
    RecordedScheduler scheduler;
    vllm_metrics::IterationStats iteration;
    vllm_metrics::MultiModalCacheStats mm_cache;
    vllm_metrics::SleepState sleep;
  };

  // Events in the order they came; `size` of them, the rest is storage.
  struct Buffer {
    std::vector<Event> events;
    std::size_t size = 0;
  };

  TraceRecorder(std::string path, std::ofstream file, const Options& options)
      : path_(std::move(path)),
        file_(std::move(file)),
        clock_(options.clock),
        log_sink_(options.log_sink) {
    write_config(options);
  }

  Event& add(Event::Kind kind) {
    if (filling_.size == filling_.events.size()) {
      filling_.events.emplace_back();
    }
    Event& event = filling_.events[filling_.size++];
    event.kind = kind;
    event.wall = clock_->wall();
    event.mono = clock_->monotonic();
    return event;
  }

  // The format has an object around some numbers.
  static std::optional<std::vector<TraceLine::NamedCount>> wrapped(
      const char* name, const std::optional<std::int64_t>& number) {
    if (!number.has_value()) return std::nullopt;
    return std::vector<TraceLine::NamedCount>{{name, *number}};
  }

  void write_config(const Options& options) {
    const std::string version = std::to_string(options.wire_version.major) +
                                "." +
                                std::to_string(options.wire_version.minor);
    const bool is_nixl = options.kv_connector != nullptr &&
                         options.kv_connector->connector() == "nixl";
    const std::string_view logger = !options.default_loggers ? "none"
                                    : options.aggregate_engine_logging
                                        ? "aggregated"
                                        : "per_engine";
    TraceLine line("config");
    line.member("format", 1)
        .member("profile", version)
        .member("vllm_version", options.vllm_version.empty()
                                    ? version + ".0"
                                    : options.vllm_version)
        .member("show_hidden_metrics_for_version",
                options.show_hidden_metrics_for_version)
        .member("model_name", options.model_name)
        .member("max_model_len", options.max_model_len)
        .member("engine_indexes", options.engine_indexes)
        .member("logger", logger)
        .member("client_count", options.client_count)
        .member("lora", wrapped("max_loras", options.max_loras))
        .member("speculative", wrapped("num_speculative_tokens",
                                       options.num_speculative_tokens))
        .member("is_diffusion", options.is_diffusion)
        .member("kv_cache_metrics", options.kv_cache_metrics)
        .member("enable_mfu_metrics", options.enable_mfu_metrics)
        .member("kv_connector",
                is_nixl ? std::optional<std::string>("nixl") : std::nullopt)
        .member("compute_nans_in_logits", options.compute_nans_in_logits)
        .member("cudagraph", options.cudagraph)
        .member("num_gpu_blocks", options.num_gpu_blocks)
        .member("cache_config", options.cache_config)
        .member("wall", clock_->wall())
        .member("mono", clock_->monotonic());
    file_ << line.finish();
  }

  void write(const Event& event) {
    constexpr std::array<std::string_view, 4> kOps = {"record", "log", "init",
                                                      "sleep"};
    TraceLine line(kOps[static_cast<std::size_t>(event.kind)]);
    line.member("wall", event.wall).member("mono", event.mono);
    if (event.kind == Event::Kind::kRecord) {
      line.member("engine", event.engine);
      if (event.has_scheduler) line.member("scheduler", event.scheduler);
      if (event.has_iteration) line.member("iteration", event.iteration);
      if (event.has_mm_cache) line.member("mm_cache", event.mm_cache);
    } else if (event.kind == Event::Kind::kSleep) {
      line.member("sleep", event.sleep.sleep);
      line.member("level", event.sleep.level);
    }
    file_ << line.finish();
  }

  // The manager calls log() for one interval at a time, so `writing_` is ours.
  void write_buffered() {
    {
      const std::lock_guard lock(mutex_);
      std::swap(filling_, writing_);
      filling_.size = 0;
    }
    for (std::size_t i = 0; i < writing_.size; ++i) write(writing_.events[i]);
    if (!file_.flush() && !reported_) {
      reported_ = true;
      log_sink_->write(vllm_metrics::LogLevel::kWarning, clock_->wall(),
                       vllm_metrics::LogSink::kNoEngine,
                       "trace file " + path_ + " cannot be written");
    }
  }

  const std::string path_;
  std::ofstream file_;
  const std::shared_ptr<const vllm_metrics::Clock> clock_;
  const std::shared_ptr<vllm_metrics::LogSink> log_sink_;
  bool reported_ = false;

  std::mutex mutex_;
  Buffer filling_;  // under mutex_
  Buffer writing_;
};
