// Any bytes as a trace: an event, the end, or an error with its place.
// Covers: src/tools/replay/trace_reader.cc src/tools/replay/event_fields.cc
// Covers: src/tools/replay/json_value.cc src/tools/replay/stats_fields.cc
// Covers: src/tools/replay/feature_fields.cc src/tools/replay/config_fields.cc

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <variant>

#include "src/tools/replay/trace_reader.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::cerr.setstate(std::ios::badbit);  // fields that the format has not
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace vllm_metrics::replay;
  static const int file = memfd_create("trace", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  require(ftruncate(file, 0) == 0);
  require(pwrite(file, data, size, 0) == static_cast<ssize_t>(size));

  auto reader = TraceReader::open(path);
  require(reader.ok());
  TraceEvent event;
  for (bool is_first = true;; is_first = false) {
    const auto more = reader->next(event);
    if (!more.ok()) {
      require(more.status().message().find(path + ":") == 0);
      require(!reader->error_here("x").ok());
      return 0;
    }
    if (!*more) return 0;
    require(std::holds_alternative<TraceConfig>(event.action) == is_first);
  }
}
