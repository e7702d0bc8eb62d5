#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace vllm_metrics::replay {

// Members keep their order: that of LoRA adapters is seen on the page.
using Json = nlohmann::ordered_json;

// What reading one line of a trace turned up.
struct LineReport {
  std::string error;                // the first one; empty: none
  std::vector<std::string> unread;  // fields that the format does not know
};

// A value inside a line of a trace and the way to it, so that an error can say
// where: `outputs[2].events[0][1]: ...`. The first error of a line counts; what
// is read after it goes nowhere.
//
// Lifetime: points to the parsed line, the report and the value around it.
class JsonValue {
 public:
  JsonValue(const Json& line, LineReport& report)
      : json_(&line), report_(&report) {}

  const Json& json() const { return *json_; }

  // Of an object or an array that has it.
  JsonValue member(const std::string& name) const;
  JsonValue element(std::size_t index) const;

  // True for an array of `size`; otherwise an error saying `allowed`.
  bool is_array_of(std::size_t size, std::string_view allowed) const;

  // Error: `<path>: <value> is not allowed: <allowed>`.
  void refuse(std::string_view allowed) const;

  // Error: `<path>: <message>`.
  void fail(std::string_view message) const;

  // Error: the object has no `name`, or it is null.
  void fail_missing(std::string_view name) const;

  // The object has a field that the format does not know.
  void note_unread(const std::string& name) const;

 private:
  JsonValue(const Json& json, const JsonValue& parent, std::string_view name,
            std::size_t index)
      : json_(&json),
        parent_(&parent),
        name_(name),
        index_(index),
        report_(parent.report_) {}
  std::string path() const;

  const Json* json_;
  const JsonValue* parent_ = nullptr;
  std::string_view name_;  // in the object around it; empty: `index_`
  std::size_t index_ = 0;
  LineReport* report_;
};

void read_value(const JsonValue& value, bool& out);
void read_value(const JsonValue& value, int& out);
void read_value(const JsonValue& value, std::int64_t& out);
void read_value(const JsonValue& value, double& out);  // finite
void read_value(const JsonValue& value, std::string& out);

// Any double: "NaN", "Infinity" and "-Infinity" are not numbers in JSON.
void read_any_double(const JsonValue& value, double& out);
void read_any_double(const JsonValue& value, std::optional<double>& out);

// Null is absent.
template <class T>
void read_value(const JsonValue& value, std::optional<T>& out) {
  if (value.json().is_null()) {
    out.reset();
  } else {
    read_value(value, out.emplace());
  }
}

template <class T>
void read_value(const JsonValue& value, std::vector<T>& out) {
  if (!value.json().is_array()) return value.refuse("a list");
  out.resize(value.json().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    read_value(value.element(i), out[i]);
  }
}

// How one field of an object gets into a struct. A field of the format is one
// of these in the table of its struct.
template <class Object>
struct Field {
  std::string_view name;
  void (*read)(const JsonValue& value, Object& out);
  bool required = false;
};

template <class Object, auto kMember>
constexpr Field<Object> field(std::string_view name) {
  return {name, [](const JsonValue& value, Object& out) {
            read_value(value, out.*kMember);
          }};
}

template <class Object, auto kMember>
constexpr Field<Object> required_field(std::string_view name) {
  return {name, field<Object, kMember>(name).read, true};
}

template <class Object, auto kMember>
constexpr Field<Object> any_double_field(std::string_view name) {
  return {name, [](const JsonValue& value, Object& out) {
            read_any_double(value, out.*kMember);
          }};
}

// A field whose null is as if it were not there.
template <class Object, auto kMember>
constexpr Field<Object> nullable_field(std::string_view name) {
  return {name, [](const JsonValue& value, Object& out) {
            if (!value.json().is_null()) read_value(value, out.*kMember);
          }};
}

// A field that needs no reading.
template <class Object>
constexpr Field<Object> ignored_field(std::string_view name) {
  return {name, [](const JsonValue&, Object&) {}};
}

// One of some names, which `allowed` lists.
template <class Enum, std::size_t kSize>
void read_name(
    const JsonValue& value,
    const std::array<std::pair<std::string_view, Enum>, kSize>& names,
    std::string_view allowed, Enum& out) {
  for (const auto& [name, meaning] : names) {
    if (value.json() == name) {
      out = meaning;
      return;
    }
  }
  value.refuse(allowed);
}

template <class Object>
void read_object(const JsonValue& value, Object& out,
                 std::span<const Field<std::type_identity_t<Object>>> fields) {
  const Json& json = value.json();
  if (!json.is_object()) return value.refuse("an object");
  for (const auto& item : json.items()) {
    const Field<Object>* known = nullptr;
    for (const Field<Object>& candidate : fields) {
      if (candidate.name == item.key()) known = &candidate;
    }
    if (known == nullptr) {
      value.note_unread(item.key());
    } else {
      known->read(value.member(item.key()), out);
    }
  }
  for (const Field<Object>& wanted : fields) {
    if (wanted.required && !json.contains(wanted.name)) {
      value.fail_missing(wanted.name);
    }
  }
}

}  // namespace vllm_metrics::replay
