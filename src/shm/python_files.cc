#include "vllm_metrics/shm/python_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "src/registry/unique_fd.h"
#include "src/shm/folder.h"
#include "src/shm/segment.h"
#include "vllm_metrics/exposition/number_text.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::shm {
namespace {

std::string_view mode_name(GaugeMode mode) {
  switch (mode) {
    case GaugeMode::kMostRecent:
      return "mostrecent";
    case GaugeMode::kSum:
      return "sum";
    case GaugeMode::kMax:
      return "max";
    case GaugeMode::kMin:
      return "min";
    case GaugeMode::kAll:
      return "all";
    case GaugeMode::kLiveSum:
      return "livesum";
    case GaugeMode::kLiveAll:
      return "liveall";
  }
  return "";
}

std::string file_kind(const Family& family) {
  return family.kind == MetricKind::kGauge
             ? fmt::format("gauge_{}", mode_name(family.mode))
             : std::string(name_of(family.kind));
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string number_text(double value) {
  char text[kMaxNumberText];
  return {text, write_number(text, value)};
}

// A file as it grows: used size and padding, then the entries.
class Entries {
 public:
  explicit Entries(bool has_timestamps) : has_timestamps_(has_timestamps) {}

  // The key is a JSON array: family, sample, labels, help.
  void add(const Family& family, std::string_view suffix, const Series& series,
           std::string_view le, double value, double time) {
    std::string key = "[";
    append_json(key, family.name);
    key += ", ";
    append_json(key, family.name + std::string(suffix));
    key += ", {";
    const auto add_label = [&key](std::string_view name,
                                  std::string_view text) {
      if (key.back() != '{') key += ", ";
      append_json(key, name);
      key += ": ";
      append_json(key, text);
    };
    bool le_done = le.empty();
    for (const Label& label : series.labels) {
      if (!le_done && label.name > "le") {
        add_label("le", le);
        le_done = true;
      }
      add_label(label.name, label.value);
    }
    if (!le_done) add_label("le", le);
    key += "}, ";
    append_json(key, family.help);
    key += ']';
    put(static_cast<std::int32_t>(key.size()));
    bytes_ += key;
    bytes_.append(8 - bytes_.size() % 8, ' ');
    put(value);
    if (has_timestamps_) put(time);
  }

  // Readers of Python take the first page at least.
  const std::string& finish() {
    const auto used = static_cast<std::int32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &used, sizeof used);
    return bytes_;
  }

 private:
  template <class Number>
  void put(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  bool has_timestamps_;
  std::string bytes_ = std::string(8, '\0');
};

}  // namespace

struct PythonFiles::State {
  void add(const Family& family, const Series& series, double now,
           Entries& out) const;
  absl::Status replace(const std::string& name, std::string_view bytes) const;

  Folder folder;
  bool has_timestamps;
  pid_t owner = ::getpid();
  Snapshot snapshot = {};
};

void PythonFiles::State::add(const Family& family, const Series& series,
                             double now, Entries& out) const {
  switch (family.kind) {
    case MetricKind::kCounter:
      out.add(family, "_total", series, "",
              family.number == CounterNumber::kInteger
                  ? static_cast<double>(snapshot.integer(series))
                  : snapshot.real(series),
              0.0);
      return;
    case MetricKind::kGauge:
      out.add(family, "", series, "", snapshot.real(series), now);
      return;
    case MetricKind::kHistogram:
      break;
  }
  out.add(family, "_sum", series, "", snapshot.sum(series), 0.0);
  const auto buckets = snapshot.buckets(series);
  const auto bounds = series.bounds->values();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    out.add(family, "_bucket", series,
            i < bounds.size() ? number_text(bounds[i]) : "+Inf",
            static_cast<double>(buckets[i]), 0.0);
  }
}

absl::Status PythonFiles::State::replace(const std::string& name,
                                         std::string_view bytes) const {
  const std::string unfinished = name + std::string(kUnfinishedSuffix);
  const UniqueFd file = folder.make(unfinished);
  int error = file.value() < 0 ? errno : 0;
  while (error == 0 && !bytes.empty()) {
    const ssize_t done = ::write(file.value(), bytes.data(), bytes.size());
    if (done >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && ::renameat(folder.fd(), unfinished.c_str(), folder.fd(),
                               name.c_str()) != 0)
    error = errno;
  if (error == 0) return absl::OkStatus();
  folder.remove(unfinished);
  return system_error("file", folder.path() + "/" + name, error);
}

absl::StatusOr<std::unique_ptr<PythonFiles>> PythonFiles::create(
    PythonFilesOptions options) {
  if (options.folder.empty()) {
    const char* const given = std::getenv("PROMETHEUS_MULTIPROC_DIR");
    if (given == nullptr || *given == '\0') {
      return absl::InvalidArgumentError(
          "folder is empty and so is PROMETHEUS_MULTIPROC_DIR; allowed: the "
          "folder of the Python server");
    }
    options.folder = given;
  }
  auto folder = Folder::open(std::move(options.folder), /*read_only=*/true);
  if (!folder.ok()) return folder.status();
  return std::unique_ptr<PythonFiles>(new PythonFiles(std::unique_ptr<State>(
      new State{*std::move(folder), options.has_timestamps})));
}

PythonFiles::PythonFiles(std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}
PythonFiles::~PythonFiles() = default;

absl::Status PythonFiles::write(const Registry& registry, double now) {
  // A forked child has a copy of what its parent counted.
  if (::getpid() != state_->owner) return absl::OkStatus();
  registry.snapshot(state_->snapshot);
  std::map<std::string, Entries> files;
  for (const SchemaFamily& family : state_->snapshot.schema->families) {
    Entries& out =
        files.try_emplace(file_kind(family.family), state_->has_timestamps)
            .first->second;
    for (const Series& series : family.series)
      state_->add(family.family, series, now, out);
  }
  for (auto& [kind, entries] : files) {
    auto status = state_->replace(fmt::format("{}_{}.db", kind, state_->owner),
                                  entries.finish());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

namespace {

class PythonFilesLogger final : public StatLoggerBase {
 public:
  PythonFilesLogger(std::unique_ptr<PythonFiles> files,
                    const StatLoggerOptions& options)
      : files_(std::move(files)),
        registry_(options.registry),
        clock_(options.clock) {}

  ~PythonFilesLogger() override {
    try {
      write().IgnoreError();
    } catch (...) {
      // Memory is out; the files are those of the last log().
    }
  }

  std::string_view name() const override { return "python_files"; }
  void record(const StepRecord&) override {}

  // The manager's way to learn of an error is that it is thrown.
  void log() override {
    if (const auto status = write(); !status.ok())
      throw std::runtime_error(std::string(status.message()));
  }
  void log_engine_initialized() override { log(); }

 private:
  absl::Status write() { return files_->write(*registry_, clock_->wall()); }

  std::unique_ptr<PythonFiles> files_;
  std::shared_ptr<Registry> registry_;
  std::shared_ptr<const Clock> clock_;
};

}  // namespace

AggregateStatLoggerFactory python_files_logger(PythonFilesOptions options) {
  return [options = std::move(options)](const StatLoggerOptions& of_manager)
             -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
    auto files = PythonFiles::create(options);
    if (!files.ok()) return files.status();
    return std::make_unique<PythonFilesLogger>(*std::move(files), of_manager);
  };
}

}  // namespace vllm_metrics::inline v0::shm
