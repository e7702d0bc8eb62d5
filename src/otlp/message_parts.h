#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>

#include "src/otlp/settings.h"
#include "vllm_metrics/version.h"

namespace vllm_metrics::inline v0::otlp {

// Nanoseconds since 1970. Whole seconds apart from the rest: a double of their
// product would be off by 100 ns.
inline std::uint64_t nanoseconds(double seconds) {
  if (!(seconds > 0.0) || seconds > 1e10) return 0;
  const auto whole = static_cast<std::uint64_t>(seconds);
  const double rest = seconds - static_cast<double>(whole);
  return whole * 1'000'000'000 + static_cast<std::uint64_t>(rest * 1e9 + 0.5);
}

inline void add_text(protozero::pbf_writer& message, std::uint32_t field,
                     std::string_view text) {
  message.add_bytes(field, text.data(), text.size());
}

// KeyValue: key = 1, value = 2; AnyValue: string_value = 1.
inline void add_attribute(protozero::pbf_writer& message, std::uint32_t field,
                          std::string_view key, std::string_view value) {
  protozero::pbf_writer pair(message, field);
  add_text(pair, 1, key);
  protozero::pbf_writer any(pair, 2);
  add_text(any, 1, value);
}

// Resource: attributes = 1.
inline void add_resource(protozero::pbf_writer& message, std::uint32_t field,
                         const Pairs& attributes) {
  protozero::pbf_writer resource(message, field);
  for (const auto& [name, value] : attributes)
    add_attribute(resource, 1, name, value);
}

// InstrumentationScope: name = 1, version = 2.
inline void add_scope(protozero::pbf_writer& message, std::uint32_t field) {
  protozero::pbf_writer scope(message, field);
  add_text(scope, 1, "vllm_metrics");
  add_text(scope, 2, version());
}

}  // namespace vllm_metrics::inline v0::otlp
