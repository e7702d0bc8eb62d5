#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/options.h"

namespace vllm_metrics::inline v0 {
class Registry;
}

namespace vllm_metrics::inline v0::shm {

struct PythonFilesOptions {
  // Where the Python server keeps its files; has to be there. Empty:
  // $PROMETHEUS_MULTIPROC_DIR.
  std::string folder = {};

  // Entries with a time, as client_python writes and reads them since 0.17.
  // False for 0.16 and before, whose entries are shorter.
  bool has_timestamps = true;
};

// The files of client_python's multiprocess mode, for an engine core in C++
// inside a Python server: its series then are on the server's own /metrics.
//
// Each write() replaces the files `counter_PID.db`, `histogram_PID.db` and
// `gauge_MODE_PID.db` whole, so that the server never reads half of one;
// between two calls the server shows the older values. The files stay when the
// process ends, as Python's do. Native buckets have no place in them. An engine
// has python_files_logger() call it. One for a process and folder: two would
// replace each other's files.
//
// Thread-safety: one thread at a time.
// Fork: in a forked child write() does nothing, for the registry there begins
// with what the parent counted. A child that counts makes its own registry and
// its own PythonFiles.
// Errors: create() returns InvalidArgument without a folder, both calls an
// error naming the path and the system's reason.
// Definition: client_python's mmap_dict.py and multiprocess.py, 0.16 to 0.22.
class VLLM_METRICS_EXPORT PythonFiles {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<PythonFiles>> create(
      PythonFilesOptions options = {});
  ~PythonFiles();
  PythonFiles(const PythonFiles&) = delete;
  PythonFiles& operator=(const PythonFiles&) = delete;

  // The series of `registry`, which must be this process's alone: the server
  // adds up the files of all. `now`: seconds since 1970, the time of the
  // gauges.
  absl::Status write(const Registry& registry, double now);

 private:
  struct State;
  explicit PythonFiles(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// PythonFiles as a stat logger, for StatLoggerOptions::factories:
//
//   options.factories.push_back(shm::python_files_logger());
//
// It writes the series of StatLoggerOptions::registry when the manager's log()
// is called, when the engines are initialized, and at the manager's end, so
// that the last steps are in the files that stay. In a forked child it writes
// nothing; one that records makes a manager of its own. One such logger for a
// process and folder: of managers that share a registry one has it.
//
// Errors: those of PythonFiles::create() are the manager's. Those of write()
// are reported once in the log, and counted in
// `vllm_metrics_logger_errors_total{logger="python_files"}`.
VLLM_METRICS_EXPORT AggregateStatLoggerFactory
python_files_logger(PythonFilesOptions options = {});

}  // namespace vllm_metrics::inline v0::shm
