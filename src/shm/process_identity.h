#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "src/registry/unique_fd.h"

namespace vllm_metrics::inline v0::shm {

// Tells a process from every other there is or was on this machine.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start_time = 0;     // clock ticks since boot; 0: unknown
  std::uint64_t pid_namespace = 0;  // 0: unknown
  std::array<std::uint64_t, 2> boot_id = {};

  // Allocates nothing: a forked child asks too.
  static ProcessIdentity of_this_process() noexcept;

  friend bool operator==(const ProcessIdentity&,
                         const ProcessIdentity&) = default;
};

// Watches over a process, cheaply once it was found alive.
class ProcessWatch {
 public:
  // `self`: who asks.
  ProcessWatch(const ProcessIdentity& process, const ProcessIdentity& self);

  // False: it has ended, also if its parent has not noticed yet. True when it
  // cannot be told (a pid of another namespace).
  bool is_alive();

 private:
  ProcessIdentity process_;
  bool is_same_boot_;
  bool is_visible_;
  bool has_ended_ = false;
  UniqueFd pidfd_;
};

}  // namespace vllm_metrics::inline v0::shm
