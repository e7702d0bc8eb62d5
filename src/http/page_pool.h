#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0::http {

class PagePool;

// What one scrape needs: its snapshot, and the writer that owns its text. Lent
// to the answer until the last byte is sent.
struct Page {
  PagePool* pool;
  TextFormat format;
  Snapshot snapshot = {};
};

// Keeps the pages of the last scrapes, so that the next ones find their memory
// and their prepared prefixes. Thread-safety: one thread.
class PagePool {
 public:
  explicit PagePool(TextFormatOptions options) : options_(options) {
    idle_.reserve(kKept);
  }

  std::unique_ptr<Page> take() {
    if (idle_.empty()) {
      return std::make_unique<Page>(Page{this, TextFormat(options_)});
    }
    auto page = std::move(idle_.back());
    idle_.pop_back();
    return page;
  }

  // The form MHD calls when an answer is sent or given up.
  static void give_back(void* lent) noexcept {
    std::unique_ptr<Page> page(static_cast<Page*>(lent));
    auto& idle = page->pool->idle_;
    if (idle.size() < kKept) idle.push_back(std::move(page));
  }

 private:
  // A pair of Prometheus servers scrapes at the same time; more are a peak
  // whose memory is not kept.
  static constexpr std::size_t kKept = 2;

  TextFormatOptions options_;
  std::vector<std::unique_ptr<Page>> idle_;
};

}  // namespace vllm_metrics::inline v0::http
