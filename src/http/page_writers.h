#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/exposition/negotiation.h"
#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/page_writer.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0::http {

// Those of ExposerOptions.
struct Formats {
  TextFormatOptions text = {};
  OpenMetricsOptions open_metrics = {};
  std::function<std::unique_ptr<PageWriter>()> protobuf = {};
};

// Writes the page, or what has certain names of it, in every format. A writer
// is made when its format is asked for first.
//
// Thread-safety: one thread.
class PageWriters {
 public:
  // `names`: of samples and families, as of TextFormat; none for the page.
  explicit PageWriters(Formats formats, std::vector<std::string> names = {});

  const Formats& formats() const { return formats_; }
  const std::vector<std::string>& names() const { return names_; }

  // Valid until the next call. Throws when there is no memory.
  std::string_view render(const Snapshot& snapshot, WireFormat format);

 private:
  std::string_view protobuf(const Snapshot& snapshot);
  void select_families(const Snapshot& snapshot);

  const Formats formats_;
  const std::vector<std::string> names_;  // in the client's order
  std::optional<TextFormat> text_;
  std::optional<OpenMetrics> open_metrics_;
  std::unique_ptr<PageWriter> protobuf_;

  // A PageWriter knows no names. It gets the families that have them.
  std::shared_ptr<const Schema> schema_;
  Snapshot selected_;
};

}  // namespace vllm_metrics::inline v0::http
