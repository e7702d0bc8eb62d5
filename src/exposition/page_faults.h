#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vllm_metrics/exposition/page.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {

// Where a page's faults go while it is read.
class PageFaults {
 public:
  PageFaults(Page& page, bool first_ends) noexcept
      : page_(page), first_ends_(first_ends) {}

  void note(std::size_t line, std::size_t column, std::string message) {
    if (page_.fault_count++ < Page::kMaxFaults)
      page_.faults.push_back({line, column, std::move(message)});
  }

  std::size_t count() const noexcept { return page_.fault_count; }

  // Whether there is no sense in reading on.
  bool ended() const noexcept { return first_ends_ && page_.fault_count > 0; }

 private:
  Page& page_;
  const bool first_ends_;
};

// Joins the parts of a message. Debian's absl takes its own string_view.
template <class... Parts>
std::string message(const Parts&... parts) {
  return absl::StrCat(std::string(parts)...);
}

// A piece of the page for a message: in quotes, short, valid UTF-8.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out = "\"" + valid_utf8(text.substr(0, kLongest));
  return out += text.size() > kLongest ? "...\"" : "\"";
}

}  // namespace vllm_metrics::inline v0
