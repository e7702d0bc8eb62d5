#include "src/http/page_writers.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

namespace vllm_metrics::inline v0::http {
namespace {

constexpr std::string_view kOfCounter[] = {"", "_total", "_created"};
constexpr std::string_view kOfGauge[] = {""};
constexpr std::string_view kOfHistogram[] = {"", "_bucket", "_count", "_sum",
                                             "_created"};

std::span<const std::string_view> suffixes_of(MetricKind kind) {
  if (kind == MetricKind::kCounter) return kOfCounter;
  if (kind == MetricKind::kHistogram) return kOfHistogram;
  return kOfGauge;
}

bool has_any(const Family& family, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return name.starts_with(family.name) &&
           std::ranges::count(suffixes_of(family.kind),
                              name.substr(family.name.size())) != 0;
  });
}

}  // namespace

PageWriters::PageWriters(Formats formats, std::vector<std::string> names)
    : formats_(std::move(formats)), names_(std::move(names)) {}

std::string_view PageWriters::render(const Snapshot& snapshot,
                                     WireFormat format) {
  if (format == WireFormat::kProtobuf) return protobuf(snapshot);
  if (format == WireFormat::kOpenMetrics) {
    if (!open_metrics_) open_metrics_.emplace(formats_.open_metrics, names_);
    return open_metrics_->render(snapshot);
  }
  if (!text_) text_.emplace(formats_.text, names_);
  return text_->render(snapshot);
}

std::string_view PageWriters::protobuf(const Snapshot& snapshot) {
  if (protobuf_ == nullptr) protobuf_ = formats_.protobuf();
  if (protobuf_ == nullptr) throw std::runtime_error("no protobuf writer");
  if (names_.empty()) return protobuf_->render(snapshot);
  select_families(snapshot);
  return protobuf_->render(selected_);
}

void PageWriters::select_families(const Snapshot& snapshot) {
  selected_.words = snapshot.words;
  if (snapshot.schema == schema_) return;
  auto families = std::make_shared<Schema>();
  families->word_count = snapshot.schema->word_count;
  for (const SchemaFamily& family : snapshot.schema->families) {
    if (has_any(family.family, names_)) families->families.push_back(family);
  }
  selected_.schema = std::move(families);
  schema_ = snapshot.schema;
}

}  // namespace vllm_metrics::inline v0::http
