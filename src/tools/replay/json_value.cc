#include "src/tools/replay/json_value.h"

#include <cmath>
#include <limits>

namespace vllm_metrics::replay {
namespace {

// The value as in the trace, cut short where it would hide the message.
std::string shown(const Json& json) {
  constexpr std::size_t kMaxBytes = 60;
  std::string text = json.dump(-1, ' ', true);
  if (text.size() > kMaxBytes) text = text.substr(0, kMaxBytes) + "...";
  return text;
}

// False, with an error, for what is not an integer of `Int`.
template <class Int>
void read_integer(const JsonValue& value, Int& out, std::string_view range) {
  const Json& json = value.json();
  const auto lowest = std::int64_t{std::numeric_limits<Int>::lowest()};
  const auto highest = std::int64_t{std::numeric_limits<Int>::max()};
  if (!json.is_number_integer()) return value.refuse("a whole number");
  const bool above = json.is_number_unsigned() &&
                     json.get<std::uint64_t>() > std::uint64_t(highest);
  const auto number = json.get<std::int64_t>();
  if (above || number < lowest || number > highest) return value.refuse(range);
  out = static_cast<Int>(number);
}

}  // namespace

JsonValue JsonValue::member(const std::string& name) const {
  const auto found = json_->find(name);
  return {*found, *this, found.key(), 0};
}

JsonValue JsonValue::element(std::size_t index) const {
  return {(*json_)[index], *this, {}, index};
}

bool JsonValue::is_array_of(std::size_t size, std::string_view allowed) const {
  const bool fits = json_->is_array() && json_->size() == size;
  if (!fits) refuse(allowed);
  return fits;
}

void JsonValue::refuse(std::string_view allowed) const {
  fail(shown(*json_) + " is not allowed: " + std::string(allowed));
}

void JsonValue::fail(std::string_view message) const {
  if (!report_->error.empty()) return;
  const std::string where = path();
  report_->error = where + (where.empty() ? "" : ": ") + std::string(message);
}

void JsonValue::fail_missing(std::string_view name) const {
  if (!report_->error.empty()) return;
  const std::string where = path();
  report_->error = where + (where.empty() ? "" : ".") + std::string(name) +
                   ": is missing, and required here";
}

void JsonValue::note_unread(const std::string& name) const {
  report_->unread.push_back(member(name).path());
}

std::string JsonValue::path() const {
  if (parent_ == nullptr) return {};
  std::string before = parent_->path();
  if (name_.empty()) return before + "[" + std::to_string(index_) + "]";
  return before + (before.empty() ? "" : ".") + std::string(name_);
}

void read_value(const JsonValue& value, bool& out) {
  if (!value.json().is_boolean()) return value.refuse("true or false");
  out = value.json().get<bool>();
}

void read_value(const JsonValue& value, int& out) {
  read_integer(value, out, "a whole number of 32 bits");
}

void read_value(const JsonValue& value, std::int64_t& out) {
  read_integer(value, out, "a whole number from -2^63 to 2^63 - 1");
}

void read_value(const JsonValue& value, double& out) {
  if (!value.json().is_number()) return value.refuse("a number");
  out = value.json().get<double>();
}

void read_value(const JsonValue& value, std::string& out) {
  if (!value.json().is_string()) return value.refuse("text");
  out = value.json().get_ref<const std::string&>();
}

void read_any_double(const JsonValue& value, double& out) {
  const Json& json = value.json();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) {
    out = json.get<double>();
  } else if (json == "NaN") {
    out = std::numeric_limits<double>::quiet_NaN();
  } else if (json == "Infinity") {
    out = kInfinity;
  } else if (json == "-Infinity") {
    out = -kInfinity;
  } else {
    value.refuse(
        R"(a number, or one of the texts "NaN", "Infinity", "-Infinity")");
  }
}

void read_any_double(const JsonValue& value, std::optional<double>& out) {
  if (value.json().is_null()) {
    out.reset();
  } else {
    read_any_double(value, out.emplace());
  }
}

}  // namespace vllm_metrics::replay
