#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace vllm_metrics::inline v0 {

inline constexpr std::int64_t kMaxSize = 2147483647;  // 2^31 - 1

// The fields of one JSON object of a config file. A field that is null is
// absent. Keeps the first error; what is read after it means nothing.
class ConfigFields {
 public:
  using Names = std::initializer_list<std::string_view>;

  // `path`: where the object is in the file, "" or e.g. "text_config.".
  // `object` and `status` must outlive this.
  ConfigFields(const nlohmann::json& object, std::string_view file,
               std::string path, absl::Status& status)
      : object_(&object),
        file_(file),
        path_(std::move(path)),
        status_(&status) {}

  // Null if the field is absent.
  const nlohmann::json* find(std::string_view name) const;

  // The object's member that is an object; empty: there is none. Something
  // else in its place is an error.
  std::optional<ConfigFields> object(std::string_view name) const;

  // The first of the names that is there; of a list its first element.
  std::optional<std::int64_t> integer(Names names, std::int64_t least) const;
  // The same, and an error if none is there.
  std::int64_t needed_integer(Names names) const;

  std::optional<std::string> text(Names names) const;
  bool is_true(std::string_view name) const;

  // An error about a field: "<file>: <path><name> = <value> is not <allowed>".
  void refuse(std::string_view name, const nlohmann::json& value,
              std::string_view allowed) const;

 private:
  void fail(const std::string& message) const;

  const nlohmann::json* object_;
  std::string_view file_;
  std::string path_;
  absl::Status* status_;
};

}  // namespace vllm_metrics::inline v0
