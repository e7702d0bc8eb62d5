#include "vllm_metrics/protobuf/protobuf_format.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/exposition/exemplar_text.h"
#include "src/protobuf/backward_writer.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::protobuf {
namespace {

// Fields of metrics.proto.
namespace family_field {
enum : std::uint32_t { kName = 1, kHelp = 2, kType = 3, kMetric = 4 };
}
namespace metric_field {
enum : std::uint32_t { kLabel = 1, kGauge = 2, kCounter = 3, kHistogram = 7 };
}
namespace label_field {
enum : std::uint32_t { kName = 1, kValue = 2 };
}
namespace value_field {  // of Counter and Gauge
enum : std::uint32_t { kValue = 1, kCreated = 3 };
}
namespace histogram_field {
enum : std::uint32_t {
  kCount = 1,
  kSum = 2,
  kBucket = 3,
  kSchema = 5,
  kZeroThreshold = 6,
  kZeroCount = 7,
  kPositiveSpan = 12,
  kPositiveDelta = 13,
  kCreated = 15
};
}
namespace bucket_field {
enum : std::uint32_t { kCumulativeCount = 1, kUpperBound = 2, kExemplar = 3 };
}
namespace exemplar_field {
enum : std::uint32_t { kLabel = 1, kValue = 2, kTimestamp = 3 };
}
namespace span_field {
enum : std::uint32_t { kOffset = 1, kLength = 2 };
}
namespace time_field {
enum : std::uint32_t { kSeconds = 1, kNanos = 2 };
}

constexpr std::size_t kMostVarint = 10;
constexpr std::size_t kMostReal = 9;  // with its key
// Keys, lengths and numbers of one of these at the most.
constexpr std::size_t kMostBucket = 2 + 1 + kMostVarint + kMostReal;
constexpr std::size_t kMostNativeBucket = 1 + kMostVarint + 16;
constexpr std::size_t kMostHistogram = 128;
constexpr std::size_t kMostExemplar = 192;

int type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return 0;
    case MetricKind::kGauge:
      return 1;
    case MetricKind::kHistogram:
      return 4;
  }
  return 3;
}

std::string labels_of(const Series& series) {
  std::string bytes;
  protozero::pbf_writer metric(bytes);
  for (const Label& label : series.labels) {
    protozero::pbf_writer pair(metric, metric_field::kLabel);
    pair.add_string(label_field::kName, label.name);
    pair.add_string(label_field::kValue, label.value);
  }
  return bytes;
}

// Nothing for a series that does not know its time.
std::string created_of(std::uint32_t field, double created) {
  std::string bytes;
  if (created == 0.0) return bytes;
  protozero::pbf_writer of(bytes);
  protozero::pbf_writer time(of, field);
  const double seconds = std::floor(created);
  time.add_int64(time_field::kSeconds, static_cast<std::int64_t>(seconds));
  time.add_int32(time_field::kNanos,
                 static_cast<std::int32_t>((created - seconds) * 1e9));
  return bytes;
}

}  // namespace

struct ProtobufFormat::State {
  // A counter or gauge of `fixed`: where its eight bytes are, and its word.
  struct Hole {
    std::size_t at;
    std::uint32_t word;
    bool is_integer;
  };
  // Families follow each other in `bytes`: those of counters and gauges whole,
  // of histograms name, help and type, with the series in `histograms`.
  struct Part {
    std::size_t end;  // in `bytes`
    std::size_t holes_end;
    std::size_t histograms_end;
    bool is_histogram;
  };
  struct HistogramSeries {
    std::size_t labels_end;   // in `bytes`, from where the last one ended
    std::size_t created_end;  // the same
    Series series;
  };

  void prepare(std::shared_ptr<const Schema> of);
  void prepare_scalars(const SchemaFamily& family, std::string family_bytes);
  void prepare_histograms(const SchemaFamily& family);
  std::string_view write(const Snapshot& from);
  void write_histogram(BackwardWriter& out, const Snapshot& from,
                       std::size_t index) const;

  std::shared_ptr<const Schema> schema;
  std::string bytes;
  std::vector<Hole> holes;
  std::vector<HistogramSeries> histograms;
  std::vector<Part> parts;
  std::string histogram_bytes;
  std::unique_ptr<char[]> page;
  std::size_t page_size = 0;
  Snapshot snapshot;
};

void ProtobufFormat::State::prepare(std::shared_ptr<const Schema> of) {
  schema = nullptr;  // until the end: a page half prepared is no page
  bytes.clear();
  histogram_bytes.clear();
  holes.clear();
  histograms.clear();
  parts.clear();
  page_size = 0;
  for (const SchemaFamily& family : of->families) {
    const bool is_histogram = family.family.kind == MetricKind::kHistogram;
    const bool is_counter = family.family.kind == MetricKind::kCounter;
    std::string head;
    protozero::pbf_writer writer(head);
    writer.add_string(family_field::kName,
                      family.family.name + (is_counter ? "_total" : ""));
    writer.add_string(family_field::kHelp, family.family.help);
    writer.add_enum(family_field::kType, type_of(family.family.kind));
    // A family without a sample is none: decoders refuse it.
    if (family.series.empty()) continue;
    if (is_histogram) {
      bytes += head;
      prepare_histograms(family);
    } else {
      prepare_scalars(family, std::move(head));
    }
    parts.push_back(
        {bytes.size(), holes.size(), histograms.size(), is_histogram});
  }
  page_size += bytes.size() + parts.size() * kMostVarint;
  page = std::make_unique_for_overwrite<char[]>(page_size);
  schema = std::move(of);
}

// All bytes but those of the values, which are eight each.
void ProtobufFormat::State::prepare_scalars(const SchemaFamily& family,
                                            std::string family_bytes) {
  const bool is_counter = family.family.kind == MetricKind::kCounter;
  std::vector<std::size_t> places;
  for (const Series& series : family.series) {
    std::string value;
    protozero::pbf_writer(value).add_double(value_field::kValue, 0.0);
    const std::size_t behind_key = value.size() - sizeof(double);
    if (is_counter) value += created_of(value_field::kCreated, series.created);
    std::string metric = labels_of(series);
    protozero::pbf_writer(metric).add_message(
        is_counter ? metric_field::kCounter : metric_field::kGauge, value);
    const std::size_t in_metric = metric.size() - value.size() + behind_key;
    protozero::pbf_writer(family_bytes)
        .add_message(family_field::kMetric, metric);
    places.push_back(family_bytes.size() - metric.size() + in_metric);
  }
  protozero::add_varint_to_buffer(&bytes, family_bytes.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    holes.push_back(
        {bytes.size() + places[i], family.series[i].offset,
         is_counter && family.family.number == CounterNumber::kInteger});
  }
  bytes += family_bytes;
}

void ProtobufFormat::State::prepare_histograms(const SchemaFamily& family) {
  for (const Series& series : family.series) {
    histogram_bytes += labels_of(series);
    const std::size_t labels_end = histogram_bytes.size();
    histogram_bytes += created_of(histogram_field::kCreated, series.created);
    const std::size_t before =
        histograms.empty() ? 0 : histograms.back().created_end;
    histograms.push_back({labels_end, histogram_bytes.size(), series});
    histograms.back().series.labels = {};
    page_size += histogram_bytes.size() - before +
                 series.bounds->bucket_count() * kMostBucket +
                 series.native_buckets * kMostNativeBucket +
                 series.exemplars * kMostExemplar + kMostHistogram;
  }
}

namespace {

// Spans and deltas, the last bucket first. Up to two empty buckets in a row are
// counts of 0, more are a gap between spans: that is the shorter way to say it.
void write_native(BackwardWriter& out, const NativeView& native) {
  using namespace histogram_field;
  constexpr std::size_t kGap = 2;
  struct Span {
    std::size_t begin;
    std::size_t end;
  };
  const auto& counts = native.counts;
  // The span that ends with the last bucket before `end` that is used.
  const auto span_before = [&counts](std::size_t end) {
    while (end > 0 && counts[end - 1] == 0) --end;
    std::size_t begin = end;
    for (std::size_t i = end, empty = 0; i > 0 && empty <= kGap; --i) {
      empty = counts[i - 1] == 0 ? empty + 1 : 0;
      if (empty == 0) begin = i - 1;
    }
    return Span{begin, end};
  };
  for (Span span = span_before(counts.size()); span.end > 0;) {
    const Span earlier = span_before(span.begin);
    for (std::size_t i = span.end; i > span.begin; --i) {
      std::uint64_t before = 0;
      if (i - 1 > span.begin) {
        before = counts[i - 2];
      } else if (earlier.end > 0) {
        before = counts[earlier.end - 1];
      }
      out.signed_number(kPositiveDelta,
                        static_cast<std::int64_t>(counts[i - 1] - before));
    }
    span = earlier;
  }
  const char* const deltas = out.at();
  for (Span span = span_before(counts.size()); span.end > 0;) {
    const Span earlier = span_before(span.begin);
    const char* const end = out.at();
    out.number(span_field::kLength, span.end - span.begin);
    // The first one's is the index of its bucket.
    const auto begin = static_cast<std::int64_t>(span.begin);
    out.signed_number(span_field::kOffset,
                      earlier.end > 0
                          ? begin - static_cast<std::int64_t>(earlier.end)
                          : begin + native.first_index);
    out.message(kPositiveSpan, end);
    span = earlier;
  }
  if (out.at() == deltas && native.zero_threshold == 0.0) {
    // Or it would be taken for a classic one.
    const char* const end = out.at();
    out.number(span_field::kLength, 0);
    out.signed_number(span_field::kOffset, 0);
    out.message(kPositiveSpan, end);
  }
  out.number(kZeroCount, native.zero_count);
  out.real(kZeroThreshold, native.zero_threshold);
  out.signed_number(kSchema, native.schema);
}

// Of a bucket, the last byte first.
void write_exemplar(BackwardWriter& out, const Exemplar& exemplar) {
  const char* const end = out.at();
  if (const auto ms = milliseconds(exemplar.timestamp)) {
    out.number(time_field::kNanos, *ms % 1000 * 1'000'000);
    out.number(time_field::kSeconds, *ms / 1000);
    out.message(exemplar_field::kTimestamp, end);
  }
  out.real(exemplar_field::kValue, exemplar.value);
  const auto label = [&out](std::string_view name, std::string_view value) {
    const char* const label_end = out.at();
    out.text(label_field::kValue, value);
    out.text(label_field::kName, name);
    out.message(exemplar_field::kLabel, label_end);
  };
  if (const RequestIdText id(exemplar); !id.view().empty())
    label("request_id", id.view());
  std::array<char, 2 * kWordDigits> hex;
  char* const behind = append_hex(hex.data(), exemplar.span_id);
  label("span_id", {hex.data(), behind});
  append_hex(append_hex(hex.data(), exemplar.trace_id[0]),
             exemplar.trace_id[1]);
  label("trace_id", {hex.data(), hex.size()});
  out.message(bucket_field::kExemplar, end);
}

}  // namespace

// Prefixes and numbers of one series, the last first.
void ProtobufFormat::State::write_histogram(BackwardWriter& out,
                                            const Snapshot& from,
                                            std::size_t index) const {
  const HistogramSeries& histogram = histograms[index];
  const Series& series = histogram.series;
  const std::size_t labels_begin =
      index == 0 ? 0 : histograms[index - 1].created_end;
  const std::string_view all(histogram_bytes);
  const auto part = [all](std::size_t begin, std::size_t end) {
    return all.substr(begin, end - begin);
  };
  const auto buckets = from.buckets(series);
  const auto bounds = series.bounds->values();
  std::uint64_t count = 0;
  for (const std::uint64_t n : buckets) count += n;

  const char* const end = out.at();
  out.bytes(part(histogram.labels_end, histogram.created_end));
  if (series.native_buckets != 0) write_native(out, from.native(series));
  std::uint64_t cumulative = count;
  for (std::size_t b = buckets.size(); b-- > 0;) {
    const char* const bucket_end = out.at();
    const Exemplar exemplar = from.exemplar(series, b);
    if (exemplar.valid()) write_exemplar(out, exemplar);
    out.real(bucket_field::kUpperBound,
             b < bounds.size() ? bounds[b]
                               : std::numeric_limits<double>::infinity());
    out.number(bucket_field::kCumulativeCount, cumulative);
    out.message(histogram_field::kBucket, bucket_end);
    cumulative -= buckets[b];
  }
  out.real(histogram_field::kSum, from.sum(series));
  out.number(histogram_field::kCount, count);
  out.message(metric_field::kHistogram, end);
  out.bytes(part(labels_begin, histogram.labels_end));
  out.message(family_field::kMetric, end);
}

std::string_view ProtobufFormat::State::write(const Snapshot& from) {
  char* const end = page.get() + page_size;
  BackwardWriter out(end);
  const std::string_view all(bytes);
  for (std::size_t p = parts.size(); p-- > 0;) {
    const Part& part = parts[p];
    const Part before = p == 0 ? Part{} : parts[p - 1];
    const char* const family_end = out.at();
    for (std::size_t i = part.histograms_end; i > before.histograms_end; --i)
      write_histogram(out, from, i - 1);
    out.bytes(all.substr(before.end, part.end - before.end));
    for (std::size_t i = before.holes_end; i < part.holes_end; ++i) {
      const Hole& hole = holes[i];
      const std::uint64_t word = from.words[hole.word];
      BackwardWriter::put_real(out.at() + (hole.at - before.end),
                               hole.is_integer ? static_cast<double>(word)
                                               : std::bit_cast<double>(word));
    }
    if (part.is_histogram)
      out.varint(static_cast<std::uint64_t>(family_end - out.at()));
  }
  return {out.at(), static_cast<std::size_t>(end - out.at())};
}

std::unique_ptr<PageWriter> page_writer() {
  return std::make_unique<ProtobufFormat>();
}

ProtobufFormat::ProtobufFormat() : state_(std::make_unique<State>()) {}
ProtobufFormat::ProtobufFormat(ProtobufFormat&&) noexcept = default;
ProtobufFormat& ProtobufFormat::operator=(ProtobufFormat&&) noexcept = default;
ProtobufFormat::~ProtobufFormat() = default;

std::string_view ProtobufFormat::render(const Snapshot& snapshot) {
  if (snapshot.schema == nullptr) return {};
  if (snapshot.schema != state_->schema) state_->prepare(snapshot.schema);
  return state_->write(snapshot);
}

std::string_view ProtobufFormat::render(const Registry& registry) {
  registry.snapshot(state_->snapshot);
  return render(state_->snapshot);
}

}  // namespace vllm_metrics::inline v0::protobuf
