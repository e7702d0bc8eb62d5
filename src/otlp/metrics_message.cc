#include "src/otlp/metrics_message.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <vector>

#include "src/otlp/message_parts.h"
#include "vllm_metrics/registry/native_histogram.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

using Words = std::span<const std::uint64_t>;

// The UCUM code of a unit of the catalogue; what it does not know is an
// annotation there.
std::string unit_code(std::string_view unit) {
  if (unit.empty() || unit == "1") return std::string(unit);
  if (unit == "seconds") return "s";
  if (unit == "bytes") return "By";
  return "{" + std::string(unit) + "}";
}

// Highest byte first.
void append_bytes(std::string& out, std::uint64_t word) {
  for (int shift = 56; shift >= 0; shift -= 8)
    out += static_cast<char>(word >> shift & 0xff);
}

// Exemplar: time_unix_nano = 2, as_double = 3, span_id = 4, trace_id = 5.
void add_exemplar(protozero::pbf_writer& point, std::uint32_t field,
                  const Exemplar& exemplar) {
  protozero::pbf_writer message(point, field);
  message.add_fixed64(2, nanoseconds(exemplar.timestamp));
  message.add_double(3, exemplar.value);
  std::string id;
  if (exemplar.span_id != 0) {
    append_bytes(id, exemplar.span_id);
    message.add_bytes(4, id);
    id.clear();
  }
  append_bytes(id, exemplar.trace_id[0]);
  append_bytes(id, exemplar.trace_id[1]);
  message.add_bytes(5, id);
}

class Encoder {
 public:
  explicit Encoder(const MetricsMessage& message)
      : message_(message),
        delta_(message.temporality == Temporality::kDelta),
        zeros_(message.snapshot.words.size(), 0) {}

  std::string encode() {
    std::string out;
    protozero::pbf_writer request(out);
    {
      protozero::pbf_writer resource_metrics(request, 1);
      add_resource(resource_metrics, 1, message_.resource);
      protozero::pbf_writer scope_metrics(resource_metrics, 2);
      add_scope(scope_metrics, 1);
      for (const SchemaFamily& family : message_.snapshot.schema->families) {
        if (!family.series.empty()) add_metric(scope_metrics, family);
        number_ += family.series.size();
      }
    }
    return out;
  }

 private:
  void add_metric(protozero::pbf_writer& out, const SchemaFamily& family) {
    const Family& f = family.family;
    protozero::pbf_writer metric(out, 2);
    add_text(metric, 1,
             f.kind == MetricKind::kCounter ? f.name + "_total" : f.name);
    add_text(metric, 2, f.help);
    add_text(metric, 3, unit_code(f.unit));
    switch (f.kind) {
      case MetricKind::kGauge: {
        protozero::pbf_writer gauge(metric, 5);
        add_points(gauge, family, kOfNumber,
                   [&](auto& point, const Series& series) {
                     point.add_double(4, message_.snapshot.real(series));
                   });
        break;
      }
      case MetricKind::kCounter: {
        protozero::pbf_writer sum(metric, 7);
        add_points(sum, family, kOfNumber,
                   [&](auto& point, const Series& series) {
                     add_number(point, f, series);
                   });
        add_temporality(sum);
        sum.add_bool(3, true);
        break;
      }
      case MetricKind::kHistogram:
        add_histograms(metric, family);
        break;
    }
  }

  void add_histograms(protozero::pbf_writer& metric,
                      const SchemaFamily& family) {
    // A metric is of one kind.
    const bool exponential =
        message_.exponential &&
        std::ranges::all_of(family.series, [](const Series& series) {
          return series.native_buckets > 0;
        });
    protozero::pbf_writer histogram(metric, exponential ? 10 : 9);
    add_points(histogram, family, exponential ? kOfExponential : kOfExplicit,
               [&](auto& point, const Series& series) {
                 if (exponential) {
                   add_exponential(point, series);
                 } else {
                   add_explicit(point, series);
                 }
               });
    add_temporality(histogram);
  }

  void add_temporality(protozero::pbf_writer& data) {
    data.add_enum(2, delta_ ? 1 : 2);
  }

  // The field of a point's attributes.
  static constexpr std::uint32_t kOfNumber = 7;
  static constexpr std::uint32_t kOfExplicit = 9;
  static constexpr std::uint32_t kOfExponential = 1;

  template <class Fill>
  void add_points(protozero::pbf_writer& data, const SchemaFamily& family,
                  std::uint32_t attributes, Fill fill) {
    std::size_t number = number_;
    for (const Series& series : family.series) {
      before_ = delta_ && !fell(message_.snapshot, family, series,
                                message_.state.words())
                    ? Words(message_.state.words())
                    : Words(zeros_);
      protozero::pbf_writer point(data, 1);
      fill(point, series);
      for (const Label& label : series.labels)
        add_attribute(point, attributes, label.name, label.value);
      if (family.family.kind != MetricKind::kGauge)
        point.add_fixed64(2, nanoseconds(message_.state.start(number)));
      point.add_fixed64(3, nanoseconds(message_.time));
      ++number;
    }
  }

  void add_number(protozero::pbf_writer& point, const Family& family,
                  const Series& series) {
    const std::uint64_t before = before_[series.offset];
    if (family.number == CounterNumber::kReal) {
      point.add_double(
          4, message_.snapshot.real(series) - std::bit_cast<double>(before));
      return;
    }
    const std::uint64_t value = message_.snapshot.integer(series) - before;
    if (value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      point.add_sfixed64(6, static_cast<std::int64_t>(value));
    } else {
      point.add_double(4, static_cast<double>(value));
    }
  }

  // The newest one of each bucket; of a delta point those that came since.
  void add_exemplars(protozero::pbf_writer& point, std::uint32_t field,
                     const Series& series) {
    auto before = before_.subspan(
        series.offset + word_count(MetricKind::kHistogram, series.bounds.get(),
                                   series.native_buckets));
    for (std::size_t i = 0; i < series.exemplars; ++i) {
      const Exemplar exemplar = message_.snapshot.exemplar(series, i);
      if (exemplar.valid() &&
          exemplar != exemplar_of(before.first<kExemplarWords>()))
        add_exemplar(point, field, exemplar);
      before = before.subspan(kExemplarWords);
    }
  }

  double sum_of(const Series& series) const {
    return message_.snapshot.sum(series) -
           std::bit_cast<double>(
               before_[series.offset + series.bounds->bucket_count()]);
  }

  void add_explicit(protozero::pbf_writer& point, const Series& series) {
    const auto buckets = message_.snapshot.buckets(series);
    std::vector<std::uint64_t> counts(buckets.begin(), buckets.end());
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts[i] -= before_[series.offset + i];
    point.add_fixed64(
        4, std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
    point.add_double(5, sum_of(series));
    point.add_packed_fixed64(6, counts.begin(), counts.end());
    const auto bounds = series.bounds->values();
    point.add_packed_double(7, bounds.begin(), bounds.end());
    add_exemplars(point, 8, series);
  }

  NativeView native_before(const Series& series) const {
    return native_view(before_.subspan(
        series.offset + word_count(MetricKind::kHistogram, series.bounds.get()),
        native_word_count(series.native_buckets)));
  }

  void add_exponential(protozero::pbf_writer& point, const Series& series) {
    const NativeView now = message_.snapshot.native(series);
    std::vector<std::uint64_t> counts(now.counts.begin(), now.counts.end());
    const NativeView before = native_before(series);
    for (std::size_t i = 0; i < before.counts.size(); ++i) {
      if (before.counts[i] == 0) continue;
      // The schema may have fallen meanwhile.
      const std::int32_t index =
          native::coarser_index(
              before.first_index + static_cast<std::int32_t>(i),
              std::max(before.schema - now.schema, 0)) -
          now.first_index;
      if (index < 0 || static_cast<std::size_t>(index) >= counts.size())
        continue;
      std::uint64_t& count = counts[static_cast<std::size_t>(index)];
      count -= std::min(count, before.counts[i]);
    }
    const std::uint64_t zeros =
        now.zero_count - std::min(now.zero_count, before.zero_count);

    // Without the empty ones at both ends.
    const auto used = [](std::uint64_t count) { return count != 0; };
    const auto first = std::ranges::find_if(counts, used);
    auto last = counts.end();
    while (last != first && *(last - 1) == 0) --last;

    point.add_fixed64(4, std::accumulate(first, last, zeros));
    point.add_double(5, sum_of(series));
    point.add_sint32(6, now.schema);
    point.add_fixed64(7, zeros);
    if (first != last) {
      protozero::pbf_writer positive(point, 8);
      // Bucket i ends where Prometheus's i + 1 does.
      positive.add_sint32(
          1, now.first_index +
                 static_cast<std::int32_t>(first - counts.begin()) - 1);
      positive.add_packed_uint64(2, first, last);
    }
    point.add_double(14, now.zero_threshold);
    add_exemplars(point, 11, series);
  }

  const MetricsMessage& message_;
  const bool delta_;
  const std::vector<std::uint64_t> zeros_;
  Words before_;            // what a point says is beyond this
  std::size_t number_ = 0;  // of the family's first series
};

}  // namespace

std::string encode(const MetricsMessage& message) {
  return Encoder(message).encode();
}

}  // namespace vllm_metrics::inline v0::otlp
