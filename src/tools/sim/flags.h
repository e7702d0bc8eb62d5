#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vllm_metrics::sim {

// How the value of a command-line flag is read. The functions below make it for
// a variable, which must outlive it; what the variable holds is the preset.
struct FlagValue {
  std::string name;     // in the help; empty for a flag without a value
  std::string allowed;  // in messages
  std::string preset;   // in the help; empty for none
  std::function<bool(std::string_view)> parse;  // false: not allowed
  // Whether what the variable holds is allowed; empty: it always is.
  std::function<bool()> fits = {};
};

// A whole number from `min` to `max`.
FlagValue whole(std::int64_t& variable, std::int64_t min, std::int64_t max);

// A number from `min` to `max`, or `word`, which stands for infinity.
FlagValue real(double& variable, double min, double max,
               std::string_view word = {});

// Any text but the empty one.
FlagValue text(std::string& variable, std::string_view name);

// One of `words`, which must outlive it.
FlagValue choice(std::string& variable,
                 std::span<const std::string_view> words);

// A flag without a value sets the variable to `on`.
FlagValue turn(bool& variable, bool on = true);

struct Flag {
  std::string_view name;  // with its dashes
  std::string help;
  FlagValue value;
};

struct FlagGroup {
  std::string_view title;
  std::vector<Flag> flags;
};

// Sets what `arguments` (without the program's name) say; `--flag value` and
// `--flag=value` are the same. Returns the names given, in order.
// Errors: InvalidArgument that names the flag, the value and what is allowed.
absl::StatusOr<std::vector<std::string_view>> parse_flags(
    std::span<const FlagGroup> groups, std::span<const char* const> arguments);

// The groups, for --help, in 79 columns.
std::string describe_flags(std::span<const FlagGroup> groups);

}  // namespace vllm_metrics::sim
