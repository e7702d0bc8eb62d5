#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {
class Registry;
}

namespace vllm_metrics::inline v0::shm {

struct SharedRegistryOptions {
  // --- Where --------------------------------------------------------------

  // The folder that the processes share; made if its parent is there. Empty:
  // $PROMETHEUS_MULTIPROC_DIR, or if that is not set a fresh folder under
  // $XDG_RUNTIME_DIR, /dev/shm or /tmp, the first that will do: for processes
  // that are forked from this one, or told SharedRegistry::folder(). A fresh
  // one goes with the last process that destroys its registry; if the last is
  // killed or ends without destroying it, when the next one is made. It must be
  // on this machine; in memory (/dev/shm) it never waits for a disk.
  std::string folder = {};

  // What processes that have ended left in the folder.
  enum class Previous {
    kContinue,  // stays in the sums: a restart loses nothing
    kWipe,      // is removed, unless another process is alive in the folder
  };
  Previous previous = Previous::kContinue;

  // Memory for this process's series, allocated when the registry is made: at
  // least 65536 bytes. An engine takes about 45,000 with its names.
  std::size_t segment_bytes = std::size_t{1} << 20;

  // --- How ----------------------------------------------------------------

  // Only looks: takes no segment, leaves the folder as it is, and refuses
  // metrics of its own. For a process that serves what others record.
  bool read_only = false;

  // When the folder cannot be used: a registry in private memory and a warning
  // instead of an error.
  bool fall_back_to_private = false;

  // Shows the families `vllm_metrics_*` about the folder.
  bool self_metrics = true;

  // Told what goes wrong without being an error, e.g. of a damaged file, once
  // each; from any thread that scrapes. Empty: standard error.
  std::function<void(std::string_view warning)> on_warning = {};
};

// A registry whose series lie in memory that processes share, and whose page
// shows the series of all of them: counters and histograms added, gauges by
// their mode (`kAll` and `kLiveAll` with a label `pid`). Use it where a
// Registry goes: StatLoggerOptions::registry, TextFormat, http::Exposer.
//
// Each process has a file of its own, which only it writes; a step costs what
// it costs in private memory. A process that dies at any moment, or is forked,
// takes nothing with it and tears nothing: docs/design.md, "Many processes".
//
// Thread-safety: every member from any thread.
// Errors: create() returns InvalidArgument for an option that is not allowed,
// and for a folder that cannot be used an error naming it and the system's
// reason. A registration for which the segment has no room left is
// ResourceExhausted. The page is always there: what cannot be read of others is
// left out, named once through `on_warning`, and counted on the page.
// Fork: a child has a segment of its own from fork() on, all zero, through the
// same registry and handles. Fork without a thread inside record(): its locks
// are copied as they are.
// Definition: "Multiprocess mode" of Prometheus's client_python, without its
// files that grow and gauges of the dead.
class VLLM_METRICS_EXPORT SharedRegistry {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SharedRegistry>> create(
      SharedRegistryOptions options = {});
  ~SharedRegistry();
  SharedRegistry(const SharedRegistry&) = delete;
  SharedRegistry& operator=(const SharedRegistry&) = delete;

  // Shared with whoever adds to the page; may outlive this object.
  const std::shared_ptr<Registry>& registry() const noexcept;

  // Where the processes meet, an absolute path. Empty after a fall back to
  // private memory.
  const std::string& folder() const noexcept;

 private:
  struct State;
  explicit SharedRegistry(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0::shm
