#include "src/tools/sim/processes.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace vllm_metrics::sim {
namespace {

absl::Status error_of(std::string_view what) {
  return absl::UnavailableError(
      fmt::format("--processes: {}: {}", what, std::strerror(errno)));
}

// In the child.
[[noreturn]] void run(const Processes::Work& work, std::size_t number,
                      std::FILE* out, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it has died meanwhile
  const int status = work(number, out);
  std::fflush(out);
  ::_exit(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Processes>> Processes::start(std::size_t count,
                                                            const Work& work) {
  std::fflush(nullptr);  // or a child prints it too
  std::unique_ptr<Processes> made(new Processes);
  const pid_t parent = ::getpid();
  for (std::size_t i = 0; i < count; ++i) {
    Process& process = made->all_.emplace_back();
    process.out.reset(std::tmpfile());
    if (process.out == nullptr) return error_of("no temporary file");
    process.pid = ::fork();
    if (process.pid < 0) return error_of("cannot fork");
    if (process.pid == 0) run(work, i, process.out.get(), parent);
    process.runs = true;
    ++made->num_running_;
  }
  return made;
}

Processes::~Processes() {
  for (const Process& process : all_) {
    if (process.runs) ::kill(process.pid, SIGKILL);
  }
  for (const Process& process : all_) {
    if (process.runs) ::waitpid(process.pid, nullptr, 0);
  }
}

void Processes::look(const std::function<void(std::string_view)>& failed) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Process& process = all_[i];
    int status = 0;
    if (!process.runs || ::waitpid(process.pid, &status, WNOHANG) == 0) {
      continue;
    }
    process.runs = false;
    --num_running_;
    const bool killed = WIFSIGNALED(status);
    if (!killed && WEXITSTATUS(status) == 0) continue;
    any_failed_ = true;
    failed(fmt::format(
        "process {} of {} (pid {}) {}", i + 1, all_.size(), process.pid,
        killed ? fmt::format("died: {}", ::strsignal(WTERMSIG(status)))
               : fmt::format("ended with status {}", WEXITSTATUS(status))));
  }
}

void Processes::interrupt() {
  for (const Process& process : all_) {
    if (!process.runs) continue;
    ::kill(process.pid, SIGTERM);
    ::kill(process.pid, SIGCONT);  // who is stopped would not notice
  }
}

std::string Processes::output(std::size_t number) {
  std::FILE* const file = all_[number].out.get();
  std::string text;
  std::rewind(file);
  std::array<char, 4096> piece;
  while (const std::size_t size =
             std::fread(piece.data(), 1, piece.size(), file)) {
    text.append(piece.data(), size);
  }
  return text;
}

}  // namespace vllm_metrics::sim
