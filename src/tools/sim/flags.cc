#include "src/tools/sim/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace vllm_metrics::sim {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return value;
}

const Flag* find_flag(std::span<const FlagGroup> groups,
                      std::string_view name) {
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      if (flag.name == name) return &flag;
    }
  }
  return nullptr;
}

absl::Status apply(const Flag& flag, std::string_view value) {
  if (flag.value.parse(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} = {}; allowed: {}", flag.name, value, flag.value.allowed));
}

// `text` in lines of at most `width`, each but the first behind `indent`.
std::string wrapped(std::string_view text, std::size_t indent,
                    std::size_t width) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > 0 && column + 1 + end > width) {
      out += fmt::format("\n{:{}}", "", indent);
      column = 0;
    }
    if (column > 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

FlagValue whole(std::int64_t& variable, std::int64_t min, std::int64_t max) {
  return {.name = "N",
          .allowed = fmt::format("a whole number from {} to {}", min, max),
          .preset = fmt::format("{}", variable),
          .parse =
              [&variable, min, max](std::string_view value) {
                const auto n = parse_number<std::int64_t>(value);
                if (!n.has_value() || *n < min || *n > max) return false;
                variable = *n;
                return true;
              },
          .fits = [&variable, min,
                   max] { return variable >= min && variable <= max; }};
}

FlagValue real(double& variable, double min, double max,
               std::string_view word) {
  return {
      .name = "X",
      .allowed = fmt::format("a number from {} to {}{}{}", min, max,
                             word.empty() ? "" : ", or ", word),
      .preset = fmt::format("{}", variable),
      .parse =
          [&variable, min, max, word](std::string_view value) {
            if (!word.empty() && value == word) {
              variable = std::numeric_limits<double>::infinity();
              return true;
            }
            const auto x = parse_number<double>(value);
            if (!x.has_value() || !(*x >= min && *x <= max)) return false;
            variable = *x;
            return true;
          },
      .fits =
          [&variable, min, max, word] {
            return (variable >= min && variable <= max) ||
                   (!word.empty() && std::isinf(variable) && variable > 0.0);
          }};
}

FlagValue text(std::string& variable, std::string_view name) {
  return {.name = std::string(name),
          .allowed = "a text that is not empty",
          .preset = variable,
          .parse =
              [&variable](std::string_view value) {
                variable = value;
                return !value.empty();
              },
          .fits = [&variable] { return !variable.empty(); }};
}

FlagValue choice(std::string& variable,
                 std::span<const std::string_view> words) {
  const auto is_allowed = [words](std::string_view value) {
    return std::find(words.begin(), words.end(), value) != words.end();
  };
  return {.name = "NAME",
          .allowed = fmt::format("{}", fmt::join(words, ", ")),
          .preset = variable,
          .parse =
              [&variable, is_allowed](std::string_view value) {
                variable = value;
                return is_allowed(value);
              },
          .fits = [&variable, is_allowed] { return is_allowed(variable); }};
}

FlagValue turn(bool& variable, bool on) {
  return {.name = {},
          .allowed = {},
          .preset = {},
          .parse =
              [&variable, on](std::string_view) {
                variable = on;
                return true;
              },
          .fits = {}};
}

absl::StatusOr<std::vector<std::string_view>> parse_flags(
    std::span<const FlagGroup> groups, std::span<const char* const> arguments) {
  std::vector<std::string_view> given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const bool has_equals = equals != std::string_view::npos;
    const Flag* flag = find_flag(groups, argument.substr(0, equals));
    if (flag == nullptr) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: no such flag; --help lists them", argument.substr(0, equals)));
    }
    const bool takes_value = !flag->value.name.empty();
    if (has_equals && !takes_value) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {} takes no value", argument, flag->name));
    }
    std::string_view value;
    if (has_equals) {
      value = argument.substr(equals + 1);
    } else if (takes_value) {
      if (++i == arguments.size()) {
        return absl::InvalidArgumentError(fmt::format(
            "{}: no value; allowed: {}", flag->name, flag->value.allowed));
      }
      value = arguments[i];
    }
    if (absl::Status status = apply(*flag, value); !status.ok()) return status;
    given.push_back(flag->name);
  }
  return given;
}

std::string describe_flags(std::span<const FlagGroup> groups) {
  constexpr std::size_t kIndent = 31;
  constexpr std::size_t kWidth = 79 - kIndent;
  std::string out;
  for (const FlagGroup& group : groups) {
    out += fmt::format("\n{}\n", group.title);
    for (const Flag& flag : group.flags) {
      const std::string left =
          fmt::format("  {} {}", flag.name, flag.value.name);
      std::string help(flag.help);
      if (!flag.value.preset.empty()) {
        help += fmt::format(" [{}]", flag.value.preset);
      }
      // A name that is too long has a line of its own.
      const std::string gap =
          left.size() < kIndent ? "" : fmt::format("\n{:{}}", "", kIndent);
      out += fmt::format("{:{}}{}{}\n", left, kIndent, gap,
                         wrapped(help, kIndent, kWidth));
    }
  }
  return out;
}

}  // namespace vllm_metrics::sim
