#include "src/http/request_handler.h"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "vllm_metrics/registry/process_collector.h"

namespace vllm_metrics::inline v0::http {
namespace {

Answer healthy() { return {.headers = {kPlainText}, .text = "ok\n"}; }

Answer not_found() {
  return {.status = 404,
          .headers = {kPlainText},
          .text = "Not found. The metrics are at /metrics.\n"};
}

Answer method_not_allowed(bool takes_post = false) {
  if (takes_post) {
    return {.status = 405,
            .headers = {kPlainText, {"Allow", "GET, HEAD, POST"}},
            .text = "Method not allowed. Allowed: GET, HEAD, POST.\n"};
  }
  return {.status = 405,
          .headers = {kPlainText, {"Allow", "GET, HEAD"}},
          .text = "Method not allowed. Allowed: GET, HEAD.\n"};
}

Answer too_large() {
  return {.status = 413,
          .headers = {kPlainText},
          .text = "The body is larger than this page takes.\n"};
}

Answer bad_names() {
  static_assert(kMaxNames == 256 && kMaxNameSize == 256);
  return {.status = 400,
          .headers = {kPlainText},
          .text = "Bad request. Allowed: 256 name[] of up to 256 bytes.\n"};
}

bool are_allowed(std::span<const std::string_view> names) {
  return names.size() <= kMaxNames &&
         std::ranges::all_of(names, [](std::string_view name) {
           return name.size() <= kMaxNameSize;
         });
}

// The first line is for programs.
Answer unavailable(std::string_view text) {
  return {.status = 503, .headers = {kPlainText}, .text = text};
}

Answer out_of_memory() {
  return unavailable(
      "type: out_of_memory\nThe page could not be made. Try again.\n");
}

Answer render_failed() {
  return unavailable(
      "type: render_failed\nThe page could not be made. Try again.\n");
}

}  // namespace

RequestHandler::RequestHandler(std::shared_ptr<Registry> registry,
                               const ExposerOptions& options)
    : registry_(std::move(registry)),
      health_path_(options.health_path),
      extra_pages_(options.extra_pages),
      wants_process_metrics_(options.process_metrics),
      may_compress_(options.gzip),
      whole_({.text = options.text_format,
              .open_metrics = options.open_metrics,
              .protobuf = options.protobuf}) {}

Answer RequestHandler::answer(const Request& request) noexcept {
  const bool is_page =
      request.path == "/metrics" || request.path == "/metrics/";
  const bool is_health = !health_path_.empty() && request.path == health_path_;
  if (!is_page && !is_health) {
    const ExtraPage* const extra = find_extra_page(request.path);
    return extra == nullptr ? not_found() : extra_page(*extra, request);
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return method_not_allowed();
  }
  if (is_health) return healthy();
  return are_allowed(request.names) ? page(request) : bad_names();
}

// A source of series may be a user's own, and throw whatever it likes.
Answer RequestHandler::page(const Request& request) noexcept {
  const WireFormatChoice choice = choose_wire_format(
      request.accept, {.protobuf = whole_.formats().protobuf != nullptr});
  try {
    const std::string_view text = render(request, choice.format);
    auto body = bodies_.take();
    const bool compressed = compress(request, text, *body);
    return {.headers = {{{"Content-Type", choice.content_type.data()},
                         {"Vary", "Accept, Accept-Encoding"},
                         compressed ? Header{"Content-Encoding", "gzip"}
                                    : Header{}}},
            .page = std::move(body),
            .is_metrics = true};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {
    return out_of_memory();
  } catch (...) {
    return render_failed();
  }
}

bool RequestHandler::compress(const Request& request, std::string_view text,
                              Body& body) {
  if (may_compress_ && accepts_gzip(request.accept_encoding) &&
      gzip_.compress(text, body.text)) {
    return true;
  }
  body.text = text;
  return false;
}

const ExtraPage* RequestHandler::find_extra_page(
    std::string_view path) const noexcept {
  for (const ExtraPage& page : extra_pages_) {
    if (page.path == path) return &page;
  }
  return nullptr;
}

Answer RequestHandler::extra_page(const ExtraPage& page,
                                  const Request& request) noexcept {
  const bool is_post = request.method == "POST" && page.takes_post;
  if (request.method != "GET" && request.method != "HEAD" && !is_post) {
    return method_not_allowed(page.takes_post);
  }
  if (request.body_is_too_large) return too_large();
  try {
    PageAnswer made = page.answer({.method = is_post ? "POST" : "GET",
                                   .body = request.body,
                                   .host = request.host,
                                   .origin = request.origin,
                                   .content_type = request.content_type});
    if (made.status < 200 || made.status > 599) return render_failed();
    auto body = bodies_.take();
    const bool compressed = compress(request, made.body, *body);
    body->content_type = std::move(made.content_type);
    Answer answer{.status = static_cast<unsigned int>(made.status),
                  .headers = {{{"Content-Type", body->content_type.c_str()},
                               {"Vary", "Accept-Encoding"},
                               {"X-Content-Type-Options", "nosniff"},
                               compressed ? Header{"Content-Encoding", "gzip"}
                                          : Header{}}}};
    answer.page = std::move(body);
    return answer;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (...) {
    return render_failed();
  }
}

std::string_view RequestHandler::render(const Request& request,
                                        WireFormat format) {
  registry_->snapshot(snapshot_);
  if (add_missing_process_metrics()) registry_->snapshot(snapshot_);
  return writers_of(request.names).render(snapshot_, format);
}

PageWriters& RequestHandler::writers_of(
    std::span<const std::string_view> names) {
  if (names.empty()) return whole_;
  if (!selected_ || !std::ranges::equal(selected_->names(), names)) {
    selected_.emplace(whole_.formats(),
                      std::vector<std::string>(names.begin(), names.end()));
  }
  return *selected_;
}

void RequestHandler::add_process_metrics() {
  if (!wants_process_metrics_ || process_metrics_) return;
  auto added = vllm_metrics::add_process_metrics(*registry_);
  if (added.ok()) process_metrics_ = *std::move(added);
}

// Another endpoint had them when we started; when the page has changed since,
// that one may have gone.
bool RequestHandler::add_missing_process_metrics() {
  if (!wants_process_metrics_ || process_metrics_ ||
      snapshot_.schema == last_schema_) {
    return false;
  }
  last_schema_ = snapshot_.schema;
  add_process_metrics();
  return process_metrics_.has_value();
}

}  // namespace vllm_metrics::inline v0::http
