#include "src/model_config/config_fields.h"

#include <utility>

namespace vllm_metrics::inline v0 {
namespace {

using Json = nlohmann::json;

// A value for a message: short, and on one line.
std::string shown(const Json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_object()) return "{...}";
  if (value.is_array()) return value.empty() ? "[]" : "[...]";
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                Json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// An integer, also one that is written as 4096.0.
std::optional<std::int64_t> integer_of(const Json& value, std::int64_t least) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(kMaxSize)) return std::nullopt;
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (!(number >= 0.0 && number <= static_cast<double>(kMaxSize))) {
      return std::nullopt;
    }
    if (static_cast<double>(static_cast<std::int64_t>(number)) != number) {
      return std::nullopt;
    }
  } else if (!value.is_number_integer()) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  if (number < least || number > kMaxSize) return std::nullopt;
  return number;
}

}  // namespace

const Json* ConfigFields::find(std::string_view name) const {
  const auto found = object_->find(name);
  if (found == object_->end() || found->is_null()) return nullptr;
  return &*found;
}

std::optional<ConfigFields> ConfigFields::object(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    refuse(name, *value, "an object");
    return std::nullopt;
  }
  return ConfigFields(*value, file_, path_ + std::string(name) + '.', *status_);
}

std::optional<std::int64_t> ConfigFields::integer(Names names,
                                                  std::int64_t least) const {
  for (const std::string_view name : names) {
    const Json* value = find(name);
    if (value == nullptr) continue;
    if (value->is_array() && !value->empty()) value = &value->front();
    if (const auto number = integer_of(*value, least)) return number;
    refuse(name, *value,
           "an integer from " + std::to_string(least) + " to " +
               std::to_string(kMaxSize));
    return std::nullopt;
  }
  return std::nullopt;
}

std::int64_t ConfigFields::needed_integer(Names names) const {
  if (const auto number = integer(names, 1)) return *number;
  std::string others;
  for (const std::string_view name : names) {
    if (name == *names.begin()) continue;
    others += others.empty() ? " (or " : ", ";
    others += name;
  }
  if (!others.empty()) others += ')';
  fail(path_ + std::string(*names.begin()) + others + " is missing");
  return 1;
}

std::optional<std::string> ConfigFields::text(Names names) const {
  for (const std::string_view name : names) {
    const Json* value = find(name);
    if (value == nullptr) continue;
    if (value->is_string()) return value->get<std::string>();
    refuse(name, *value, "a text");
    return std::nullopt;
  }
  return std::nullopt;
}

bool ConfigFields::is_true(std::string_view name) const {
  const Json* value = find(name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

void ConfigFields::refuse(std::string_view name, const Json& value,
                          std::string_view allowed) const {
  fail(path_ + std::string(name) + " = " + shown(value) + " is not " +
       std::string(allowed));
}

void ConfigFields::fail(const std::string& message) const {
  if (!status_->ok()) return;
  *status_ = absl::InvalidArgumentError(std::string(file_) + ": " + message);
}

}  // namespace vllm_metrics::inline v0
