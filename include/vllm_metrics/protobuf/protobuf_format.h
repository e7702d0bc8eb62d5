#pragma once

#include <memory>
#include <string_view>

#include "vllm_metrics/export.h"
#include "vllm_metrics/exposition/page_writer.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {
class Registry;
}

namespace vllm_metrics::inline v0::protobuf {

// Writes snapshots as protobuf: a MetricFamily message of io.prometheus.client
// for each family, each with its length in front.
//
// It is the only format that has native histograms; the classic buckets of such
// a series are there too, and exemplars at them. Times of creation are field 3
// of Counter and 15 of Histogram. Names, labels and values are those of the
// text page, but for a counter's family, which is called as its samples are
// (`_total` at the end).
//
// Prometheus asks for it with --enable-feature=native-histograms. Up to 2.44 it
// then drops the classic buckets of a series that has native ones, so that
// dashboards with `_bucket` in their queries see nothing of it. From 2.45 on
// `scrape_classic_histograms: true` in the scrape configuration keeps both; in
// 3.x it is called `always_scrape_classic_histograms`.
//
// Everything that is the same from page to page is prepared when the set of
// series changes. Pages after the first allocate nothing.
//
// Thread-safety: one thread at a time; make one for each scraping thread.
// Definition: metrics.proto of Prometheus's client_model.
class VLLM_METRICS_EXPORT ProtobufFormat final : public PageWriter {
 public:
  static constexpr std::string_view kContentType =
      "application/vnd.google.protobuf; "
      "proto=io.prometheus.client.MetricFamily; encoding=delimited";

  ProtobufFormat();
  ProtobufFormat(ProtobufFormat&&) noexcept;
  ProtobufFormat& operator=(ProtobufFormat&&) noexcept;
  ~ProtobufFormat() override;

  // The page; valid until the next call.
  std::string_view render(const Snapshot& snapshot) override;

  // The same of what `registry` knows now.
  std::string_view render(const Registry& registry);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A new ProtobufFormat, for http::ExposerOptions::protobuf.
VLLM_METRICS_EXPORT std::unique_ptr<PageWriter> page_writer();

}  // namespace vllm_metrics::inline v0::protobuf
