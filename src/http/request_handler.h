#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/http/answer.h"
#include "src/http/body_pool.h"
#include "src/http/gzip.h"
#include "src/http/page_writers.h"
#include "vllm_metrics/exposition/negotiation.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/http/extra_page.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0::http {

// Decides what is answered; how it gets to the client is the server's matter.
//
// Thread-safety: one thread; give the answers' bodies back on it, before the
// handler ends.
class RequestHandler {
 public:
  RequestHandler(std::shared_ptr<Registry> registry,
                 const ExposerOptions& options);

  // Null: there is none of this path.
  const ExtraPage* find_extra_page(std::string_view path) const noexcept;

  // 503 with a type when the page cannot be made.
  Answer answer(const Request& request) noexcept;

  // Puts them on the page, unless they are there or are not wanted.
  void add_process_metrics();
  void remove_process_metrics() { process_metrics_.reset(); }

 private:
  Answer page(const Request& request) noexcept;
  Answer extra_page(const ExtraPage& page, const Request& request) noexcept;
  bool compress(const Request& request, std::string_view text, Body& body);
  std::string_view render(const Request& request, WireFormat format);
  PageWriters& writers_of(std::span<const std::string_view> names);
  bool add_missing_process_metrics();

  const std::shared_ptr<Registry> registry_;
  const std::string health_path_;
  const std::vector<ExtraPage> extra_pages_;
  const bool wants_process_metrics_;
  const bool may_compress_;
  BodyPool bodies_;
  Gzip gzip_;
  PageWriters whole_;
  // Of the last selection: a scraper asks for the same one each time.
  std::optional<PageWriters> selected_;
  Snapshot snapshot_;

  // Ours once we could register them; another endpoint may have done it.
  std::optional<Registration> process_metrics_;
  std::shared_ptr<const Schema> last_schema_;
};

}  // namespace vllm_metrics::inline v0::http
