#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

class Registry;

struct TextFormatOptions {
  // Behind each counter and histogram a gauge family `<name>_created` with the
  // time its series were registered, seconds since 1970. Doubles the page.
  bool created_series = false;
};

// Writes snapshots as the text exposition format 0.0.4, in vLLM's spelling:
// labels sorted by name, `le="1.0"`, `5.0`, `1e+06`.
//
// Everything but the numbers of a line is prepared when the set of series
// changes; a page is then prefix after prefix and number after number into one
// buffer that is kept. Pages after the first allocate nothing.
//
// Thread-safety: one thread at a time; make one for each scraping thread.
// No number or name depends on the process locale.
// Definition: Prometheus "Text-based format" 0.0.4; number form of
// client_python.
class VLLM_METRICS_EXPORT TextFormat {
 public:
  static constexpr std::string_view kContentType =
      "text/plain; version=0.0.4; charset=utf-8";

  // With names, only samples that are called so, e.g.
  // "vllm:e2e_request_latency_seconds_count", and families that are (a counter
  // without `_total`); nothing else, and no HELP or TYPE of it, is on the page.
  // A name that nothing has is no error.
  explicit TextFormat(TextFormatOptions options = {},
                      std::vector<std::string> names = {});
  TextFormat(TextFormat&&) noexcept;
  TextFormat& operator=(TextFormat&&) noexcept;
  ~TextFormat();

  // The page; valid until the next call.
  std::string_view render(const Snapshot& snapshot);

  // The same of what `registry` knows now.
  std::string_view render(const Registry& registry);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0
