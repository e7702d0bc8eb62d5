#pragma once

#include <microhttpd.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/http/answer.h"

namespace vllm_metrics::inline v0::http {

// The value of a header that may come once; nothing when it comes more often,
// since a proxy before us may have looked at another one than we would.
std::optional<std::string_view> find_header(MHD_Connection* connection,
                                            std::string_view name);

// The value of a header that is a list: several count as one, joined by commas
// (RFC 9110, section 5.3), in `joined`. Empty when there is no memory for that.
std::string_view find_list(MHD_Connection* connection, std::string_view name,
                           std::string& joined);

// `name[]` of a query, one more than allowed at most.
class QueryNames {
 public:
  explicit QueryNames(MHD_Connection* connection);

  std::span<const std::string_view> found() const {
    return std::span(names_).first(count_);
  }

 private:
  std::array<std::string_view, kMaxNames + 1> names_;
  std::size_t count_ = 0;
};

}  // namespace vllm_metrics::inline v0::http
