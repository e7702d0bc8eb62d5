#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace vllm_metrics::inline v0::http {

// What a client asks of an ExtraPage. Valid during the call.
struct PageRequest {
  std::string_view method;  // GET or POST; a HEAD is asked as a GET
  std::string_view body = {};

  // Headers, empty without one: with them a page that changes something can
  // tell its own requests from those that another site makes a browser send.
  std::string_view host = {};
  std::string_view origin = {};
  std::string_view content_type = {};
};

struct PageAnswer {
  int status = 200;  // 200 to 599
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
};

// A path that an Exposer answers beside its metrics, under the same logins and
// limits: a program's own status page, say.
struct ExtraPage {
  // `/` and up to 255 printable ASCII characters, none of them a blank, ?, # or
  // %; matched exactly.
  std::string path = {};

  // Whether POST is a method of it, besides GET and HEAD.
  bool takes_post = false;

  // Of a POST, in bytes, up to 1 MiB; a larger body is answered 413.
  std::size_t max_body_bytes = 65536;

  // Called on the endpoint's thread, one call at a time: scrapers wait until it
  // returns. The body is sent as gzip to who accepts that. What it throws is
  // the client's 503.
  std::function<PageAnswer(const PageRequest&)> answer = {};
};

}  // namespace vllm_metrics::inline v0::http
