#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vllm_metrics::inline v0 {

// Where a request belongs in a distributed trace: the span that its sender had
// open. All zero: it came without one.
//
// Thread-safety: a value.
// Definition: W3C Trace Context, version 00.
struct TraceContext {
  std::array<std::uint8_t, 16> trace_id = {};
  std::array<std::uint8_t, 8> span_id = {};  // of the caller's span
  std::uint8_t flags = 0;                    // bit 0: sampled

  // Both ids are there.
  constexpr bool valid() const noexcept {
    return trace_id != decltype(trace_id){} && span_id != decltype(span_id){};
  }
  constexpr bool sampled() const noexcept { return (flags & 1) != 0; }

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// The value of a `traceparent` header, e.g.
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01; nothing where the
// standard says to go on as if there were none. A later version's may be
// longer.
constexpr std::optional<TraceContext> parse_traceparent(
    std::string_view text) noexcept {
  constexpr std::size_t kLength = 55;
  bool good = text.size() >= kLength && text[2] == '-' && text[35] == '-' &&
              text[52] == '-';
  if (!good) return std::nullopt;
  const auto digit = [&](std::size_t at) -> unsigned {
    const char c = text[at];
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    good = false;
    return 0;
  };
  const auto byte = [&](std::size_t at) {
    return static_cast<std::uint8_t>(digit(at) * 16 + digit(at + 1));
  };

  const unsigned version = byte(0);
  TraceContext context;
  for (std::size_t i = 0; i < context.trace_id.size(); ++i)
    context.trace_id[i] = byte(3 + 2 * i);
  for (std::size_t i = 0; i < context.span_id.size(); ++i)
    context.span_id[i] = byte(36 + 2 * i);
  context.flags = byte(53);
  if (version == 0xff || (version == 0 && text.size() > kLength) ||
      (text.size() > kLength && text[kLength] != '-'))
    return std::nullopt;
  if (!good || !context.valid()) return std::nullopt;
  return context;
}

}  // namespace vllm_metrics::inline v0
