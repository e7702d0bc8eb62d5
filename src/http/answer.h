#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "src/http/body_pool.h"

namespace vllm_metrics::inline v0::http {

// Of the names that a query may ask for, and of each one's bytes.
inline constexpr std::size_t kMaxNames = 256;
inline constexpr std::size_t kMaxNameSize = 256;

// What a client asked, as far as it matters to the answer. Valid for the call.
struct Request {
  std::string_view method;
  std::string_view path;  // decoded, without the query
  // `name[]` of the query, decoded, without empty ones. May be one too many.
  std::span<const std::string_view> names = {};
  // Headers; empty without one. Those that came more than once are joined.
  std::string_view accept = {};
  std::string_view accept_encoding = {};
  std::string_view host = {};
  std::string_view origin = {};
  std::string_view content_type = {};

  // Of a POST to a page that takes one, as far as it is allowed.
  std::string_view body = {};
  bool body_is_too_large = false;
};

// One header of an answer. Both texts live as long as whoever made it.
struct Header {
  const char* name = nullptr;  // null: none
  const char* value = nullptr;
};

struct Answer {
  unsigned int status = 200;
  std::array<Header, 4> headers = {};
  // Either a text that lives as long as whoever made the answer, or a page.
  std::string_view text = {};
  std::unique_ptr<Body> page = {};
  bool is_metrics = false;  // `page` is a rendered one
};

inline constexpr Header kPlainText{"Content-Type", "text/plain; charset=utf-8"};

}  // namespace vllm_metrics::inline v0::http
