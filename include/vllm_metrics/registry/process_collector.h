#pragma once

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0 {

// Puts this process on the page of `registry`, under the names that Prometheus
// clients agree on, read anew at each scrape:
//
//   process_virtual_memory_bytes    gauge, bytes of address space
//   process_resident_memory_bytes   gauge, bytes in physical memory
//   process_start_time_seconds      gauge, seconds since 1970
//   process_cpu_seconds_total       counter, user and system, all threads
//   process_open_fds                gauge
//   process_max_fds                 gauge, the soft limit; +Inf without one
//
// `proc` is where procfs is mounted. A gauge that cannot be read at a scrape is
// NaN then (out of file descriptors, `process_open_fds` still is right). In a
// forked child the values are the child's.
//
// Errors: Unavailable when `proc` has no `self/stat` or no boot time,
// AlreadyExists when the series are on the page.
// Definition: "Process metrics" of Prometheus's "Writing client libraries".
[[nodiscard]] VLLM_METRICS_EXPORT absl::StatusOr<Registration>
add_process_metrics(Registry& registry, const char* proc = "/proc");

}  // namespace vllm_metrics::inline v0
