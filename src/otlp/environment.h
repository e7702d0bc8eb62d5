#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/otlp/settings.h"

namespace vllm_metrics::inline v0::otlp {

// What a variable says, without white space around it, and what it is called.
struct Variable {
  std::string name;
  std::string value;
  std::string lower() const;  // of the value: names of choices have no case
};

// The variables OTEL_... of one signal's exporter.
class Environment {
 public:
  // `options` outlive this.
  Environment(const Options& options, Signal signal)
      : options_(options), signal_(signal) {}

  // A variable that is empty counts as unset, as OpenTelemetry says.
  std::optional<Variable> find(std::string_view name) const;
  // The one of this signal, else the general one.
  std::optional<Variable> find_exporter(std::string_view name) const;

  // Into the log.
  void warn(std::string_view text) const;
  // What cannot be read is as if it were not there, as OpenTelemetry says of
  // choices, numbers and attributes, but not silently.
  void ignore(const Variable& variable, std::string_view allowed) const;

 private:
  const Options& options_;
  Signal signal_;
};

// name=value with commas between, values percent-encoded; nothing for what is
// no such list.
enum class Names { kPlain, kEncoded };
std::optional<Pairs> read_pairs(std::string_view list, Names names);

}  // namespace vllm_metrics::inline v0::otlp
