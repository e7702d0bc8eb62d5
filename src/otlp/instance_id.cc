#include "src/otlp/instance_id.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "src/registry/mutex.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

std::string make_uuid() {
  std::array<std::uint8_t, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size()))
    return {};
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);  // version
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);  // variant
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", bytes[i]);
  }
  return out;
}

}  // namespace

std::string instance_id() {
  static Mutex mutex;
  static auto& id = *new std::string;
  static pid_t owner = -1;
  const MutexLock lock(mutex);
  if (owner != getpid()) {
    id = make_uuid();
    owner = getpid();
  }
  return id;
}

}  // namespace vllm_metrics::inline v0::otlp
