#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vllm_metrics::sim {

// Processes forked from this one, each with a part of its work. They get
// SIGTERM when this one dies. SIGCHLD is set to its default, without which
// nobody can tell how they ended.
//
// Thread-safety: none. Start them before any thread.
class Processes {
 public:
  // What one does: its number, from 0, and where it prints what output() is to
  // be. Its result is the process's exit status, 1 for an exception, which it
  // says on standard error.
  using Work = std::function<int(std::size_t number, std::FILE* out)>;

  // Errors: the system's reason; none of them runs then.
  static absl::StatusOr<std::unique_ptr<Processes>> start(std::size_t count,
                                                          const Work& work);
  ~Processes();  // kills those that still run
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  pid_t pid(std::size_t number) const { return all_[number].pid; }
  bool any_runs() const { return num_running_ != 0; }
  bool any_failed() const { return any_failed_; }

  // Notices which have ended, without waiting; `failed` is told of each that
  // did not end with status 0, or whose status another has taken, e.g.
  // "process 2 of 4 (pid 17) died: Killed".
  void look(const std::function<void(std::string_view)>& failed);

  // Asks those that run to end, as Ctrl-C does.
  void interrupt();

  // What it has printed, once it has ended.
  std::string output(std::size_t number);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Process {
    pid_t pid = -1;
    bool runs = false;
    std::unique_ptr<std::FILE, CloseFile> out;
  };

  Processes() = default;

  std::vector<Process> all_;
  std::size_t num_running_ = 0;
  bool any_failed_ = false;
};

}  // namespace vllm_metrics::sim
