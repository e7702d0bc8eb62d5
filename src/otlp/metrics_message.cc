#include "src/otlp/metrics_message.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <utility>
#include <vector>

#include "src/otlp/message_parts.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/catalogue/otlp_names.h"
#include "vllm_metrics/registry/native_histogram.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

using Words = std::span<const std::uint64_t>;

// Highest byte first.
void append_bytes(std::string& out, std::uint64_t word) {
  for (int shift = 56; shift >= 0; shift -= 8)
    out += static_cast<char>(word >> shift & 0xff);
}

// Exemplar: time_unix_nano = 2, as_double = 3, span_id = 4, trace_id = 5,
// filtered_attributes = 7.
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
  if (const RequestIdText request(exemplar); !request.view().empty())
    add_attribute(message, 7, "request_id", request.view());
}

class Encoder {
 public:
  explicit Encoder(const MetricsMessage& message)
      : message_(message),
        delta_(message.temporality == Temporality::kDelta),
        zeros_(message.snapshot.words.size(), 0) {}

  EncodedMetrics encode() {
    EncodedMetrics out;
    protozero::pbf_writer request(out.bytes);
    {
      protozero::pbf_writer resource_metrics(request, 1);
      add_resource(resource_metrics, 1, message_.resource);
      protozero::pbf_writer scope_metrics(resource_metrics, 2);
      add_scope(scope_metrics, 1);
      for (const SchemaFamily& family : message_.snapshot.schema->families) {
        if (!family.series.empty()) add_metric(scope_metrics, family);
        number_ += family.series.size();
      }
      if (message_.gen_ai) add_gen_ai(scope_metrics);
    }
    out.points = points_;
    return out;
  }

 private:
  void add_metric(protozero::pbf_writer& out, const SchemaFamily& family) {
    const Family& f = family.family;
    protozero::pbf_writer metric(out, 2);
    add_head(metric, otlp_name(f), f.help, otlp_unit(f.unit));
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

  static void add_head(protozero::pbf_writer& metric, std::string_view name,
                       std::string_view help, std::string_view unit) {
    add_text(metric, 1, name);
    add_text(metric, 2, help);
    add_text(metric, 3, unit);
  }

  // The metrics of the conventions that have a source here.
  void add_gen_ai(protozero::pbf_writer& out) {
    for (const GenAiMetric& wanted : gen_ai_metrics()) {
      std::vector<std::pair<const GenAiSource*, const SchemaFamily*>> found;
      for (const GenAiSource& source : wanted.sources) {
        const auto family =
            std::ranges::find(message_.snapshot.schema->families,
                              spec_of(source.id).name, [](const auto& known) {
                                return std::string_view(known.family.name);
                              });
        if (family != message_.snapshot.schema->families.end() &&
            family->family.kind == MetricKind::kHistogram &&
            !family->series.empty())
          found.emplace_back(&source, &*family);
      }
      if (found.empty()) continue;
      protozero::pbf_writer metric(out, 2);
      add_head(metric, wanted.name, wanted.help, wanted.unit);
      protozero::pbf_writer histogram(metric, 9);
      for (const auto& [source, family] : found)
        add_gen_ai_points(histogram, wanted, *source, *family);
      add_temporality(histogram);
    }
  }

  void add_gen_ai_points(protozero::pbf_writer& histogram,
                         const GenAiMetric& wanted, const GenAiSource& source,
                         const SchemaFamily& family) {
    number_ = 0;
    for (const SchemaFamily& before : message_.snapshot.schema->families) {
      if (&before == &family) break;
      number_ += before.series.size();
    }
    add_points(
        histogram, family,
        [&](auto& point, const Series& series) {
          add_explicit(point, series, wanted.buckets);
        },
        [&](auto& point, const Series& series) {
          add_gen_ai_attributes(point, series.labels, source.token_type);
        });
  }

  void add_gen_ai_attributes(protozero::pbf_writer& point,
                             const LabelSet& labels,
                             std::string_view token_type) {
    const auto add = [&](std::string_view name, std::string_view value) {
      add_attribute(point, kOfExplicit, name, value);
    };
    add("gen_ai.operation.name", message_.gen_ai->operation);
    add("gen_ai.provider.name", message_.gen_ai->provider);
    if (!token_type.empty()) add("gen_ai.token.type", token_type);
    for (const Label& label : labels) {
      if (label.name == "model_name") {
        add("gen_ai.request.model", label.value);
        add("gen_ai.response.model", label.value);
      } else {
        add("vllm_metrics." + label.name, label.value);
      }
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

  // Attributes are the labels, in field `attributes`.
  template <class Fill>
  void add_points(protozero::pbf_writer& data, const SchemaFamily& family,
                  std::uint32_t attributes, Fill fill) {
    add_points(data, family, fill, [&](auto& point, const Series& series) {
      for (const Label& label : series.labels)
        add_attribute(point, attributes, label.name, label.value);
    });
  }

  template <class Fill, class Describe>
  void add_points(protozero::pbf_writer& data, const SchemaFamily& family,
                  Fill fill, Describe describe) {
    std::size_t number = number_;
    for (const Series& series : family.series) {
      before_ = delta_ && !fell(message_.snapshot, family, series,
                                message_.state.words())
                    ? Words(message_.state.words())
                    : Words(zeros_);
      protozero::pbf_writer point(data, 1);
      fill(point, series);
      describe(point, series);
      if (family.family.kind != MetricKind::kGauge)
        point.add_fixed64(2, nanoseconds(message_.state.start(number)));
      point.add_fixed64(3, nanoseconds(message_.time));
      ++number;
      ++points_;
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

  // With the bounds `wanted` where the series has all of them, so that its
  // buckets make theirs.
  void add_explicit(protozero::pbf_writer& point, const Series& series,
                    std::span<const double> wanted = {}) {
    const auto own = series.bounds->values();
    const bool fit =
        !wanted.empty() &&
        std::includes(own.begin(), own.end(), wanted.begin(), wanted.end());
    const auto bounds = fit ? wanted : own;
    const auto buckets = message_.snapshot.buckets(series);
    std::vector<std::uint64_t> counts(bounds.size() + 1, 0);
    for (std::size_t i = 0, into = 0; i < buckets.size(); ++i) {
      while (into < bounds.size() && (i == own.size() || own[i] > bounds[into]))
        ++into;
      counts[into] += buckets[i] - before_[series.offset + i];
    }
    point.add_fixed64(
        4, std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
    point.add_double(5, sum_of(series));
    point.add_packed_fixed64(6, counts.begin(), counts.end());
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
  std::uint64_t points_ = 0;
};

}  // namespace

EncodedMetrics encode(const MetricsMessage& message) {
  return Encoder(message).encode();
}

}  // namespace vllm_metrics::inline v0::otlp
