#include "src/http/request_values.h"

#include <strings.h>

#include <cstring>
#include <new>

namespace vllm_metrics::inline v0::http {
namespace {

// Calls `take` with the value of each header or argument of that name.
template <class Take>
void for_each_value(MHD_Connection* connection, MHD_ValueKind kind,
                    std::string_view name, Take take) {
  struct Search {
    std::string_view name;
    Take& take;
  } search{name, take};
  // Only headers' names know no case.
  const auto look = [](void* state, MHD_ValueKind from, const char* key,
                       std::size_t key_size, const char* value,
                       std::size_t value_size) {
    auto& [wanted, use] = *static_cast<Search*>(state);
    const auto compare = from == MHD_HEADER_KIND ? strncasecmp : std::strncmp;
    if (key_size == wanted.size() &&
        compare(key, wanted.data(), key_size) == 0) {
      use(value == nullptr ? "" : std::string_view(value, value_size));
    }
    return MHD_YES;
  };
  MHD_get_connection_values_n(connection, kind, look, &search);
}

}  // namespace

std::optional<std::string_view> find_header(MHD_Connection* connection,
                                            std::string_view name) {
  std::string_view found;
  int count = 0;
  for_each_value(connection, MHD_HEADER_KIND, name, [&](auto value) {
    found = value;
    ++count;
  });
  if (count > 1) return std::nullopt;
  return found;
}

std::string_view find_list(MHD_Connection* connection, std::string_view name,
                           std::string& joined) {
  if (const auto only = find_header(connection, name)) return *only;
  try {
    for_each_value(connection, MHD_HEADER_KIND, name, [&](auto value) {
      joined.append(joined.empty() ? "" : ", ").append(value);
    });
  } catch (const std::bad_alloc&) {
    return {};
  }
  return joined;
}

QueryNames::QueryNames(MHD_Connection* connection) {
  for_each_value(connection, MHD_GET_ARGUMENT_KIND, "name[]",
                 [this](auto name) {
                   if (name.empty() || count_ == names_.size()) return;
                   names_[count_++] = name;
                 });
}

}  // namespace vllm_metrics::inline v0::http
