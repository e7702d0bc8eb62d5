#include "vllm_metrics/registry/native_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vllm_metrics/primitives/native_words.h"

namespace vllm_metrics::inline v0 {
namespace {

std::int32_t index_at(const NativeView& view, std::size_t slot) {
  return view.first_index + static_cast<std::int32_t>(slot);
}

NativeQuantile without_error(double value) { return {value, value, value}; }

// `threshold`, or the end of the bucket of `view` that has values on both sides
// of it.
double past_bucket(double threshold, const NativeView& view) {
  if (threshold <= view.zero_threshold) return threshold;
  const std::int32_t index = native::index_of(threshold, view.schema);
  const std::int64_t slot = std::int64_t{index} - view.first_index;
  const bool used = slot >= 0 &&
                    slot < static_cast<std::int64_t>(view.counts.size()) &&
                    view.counts[static_cast<std::size_t>(slot)] != 0;
  return used ? native::upper_bound(index, view.schema) : threshold;
}

// The words of a histogram with room for all that `view` and others hold.
std::vector<std::uint64_t> roomy_copy(const NativeView& view) {
  std::vector<std::uint64_t> words(
      kNativeHeaderWords +
      std::max<std::size_t>(kMaxNativeBuckets, view.counts.size()));
  words[0] = std::bit_cast<std::uint64_t>(std::int64_t{view.schema});
  words[1] = std::bit_cast<std::uint64_t>(std::int64_t{view.first_index});
  words[2] = std::bit_cast<std::uint64_t>(view.zero_threshold);
  words[3] = view.zero_count;
  std::ranges::copy(view.counts, words.begin() + kNativeHeaderWords);
  return words;
}

}  // namespace

absl::Status check_native(const NativeHistogramOptions& options) {
  const auto invalid = [](const char* field, auto value, auto lowest,
                          auto highest) {
    return absl::InvalidArgumentError(absl::StrCat("native ", field, " = ",
                                                   value, "; allowed: ", lowest,
                                                   " to ", highest));
  };
  if (options.schema < kMinNativeSchema || options.schema > kMaxNativeSchema) {
    return invalid("schema", options.schema, kMinNativeSchema,
                   kMaxNativeSchema);
  }
  if (options.max_buckets < kMinNativeBuckets ||
      options.max_buckets > kMaxNativeBuckets) {
    return invalid("max_buckets", options.max_buckets, kMinNativeBuckets,
                   kMaxNativeBuckets);
  }
  if (!(options.zero_threshold >= 0.0 && options.zero_threshold <= 1.0))
    return invalid("zero_threshold", options.zero_threshold, 0, 1);
  return absl::OkStatus();
}

NativeQuantile native_quantile(const NativeView& view, double q) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::uint64_t count = view.zero_count;
  for (const std::uint64_t n : view.counts) count += n;
  if (count == 0 || std::isnan(q)) return without_error(std::nan(""));
  if (q < 0.0) return without_error(-kInfinity);
  if (q > 1.0) return without_error(kInfinity);

  const double rank = q * static_cast<double>(count);
  double below = 0.0;
  const auto part = [&](std::uint64_t n) {
    return std::clamp((rank - below) / static_cast<double>(n), 0.0, 1.0);
  };
  if (view.zero_count != 0) {
    if (rank <= static_cast<double>(view.zero_count))
      return {part(view.zero_count) * view.zero_threshold, 0.0,
              view.zero_threshold};
    below = static_cast<double>(view.zero_count);
  }
  std::size_t slot = 0;
  std::size_t last = 0;  // rounding may leave the rank above all buckets
  for (; slot < view.counts.size(); ++slot) {
    if (view.counts[slot] == 0) continue;
    last = slot;
    const double reached = below + static_cast<double>(view.counts[slot]);
    if (rank <= reached) break;
    below = reached;
  }
  if (slot == view.counts.size()) {
    slot = last;
    below = rank - static_cast<double>(view.counts[slot]);
  }
  const double lower =
      std::max(native::upper_bound(index_at(view, slot) - 1, view.schema),
               view.zero_threshold);
  const double upper = native::upper_bound(index_at(view, slot), view.schema);
  const double value =
      lower > 0.0 ? lower * std::pow(upper / lower, part(view.counts[slot]))
                  : upper * part(view.counts[slot]);
  return {std::clamp(value, lower, upper), lower, upper};
}

NativeQuantile native_quantile(const Snapshot& snapshot,
                               std::string_view family, double q,
                               const Labels& where) {
  std::vector<std::uint64_t> words;
  const auto add = [&](const Series& series) {
    const auto has = [&series](const Label& label) {
      return std::ranges::find(series.labels, label) != series.labels.end();
    };
    if (series.native_buckets == 0 || !std::ranges::all_of(where, has)) return;
    if (words.empty()) {
      words = roomy_copy(snapshot.native(series));
    } else {
      merge_native(words, snapshot.native(series));
    }
  };
  if (snapshot.schema != nullptr) {
    for (const SchemaFamily& candidate : snapshot.schema->families) {
      if (candidate.family.name == family)
        std::ranges::for_each(candidate.series, add);
    }
  }
  return native_quantile(native_view(words), q);
}

void merge_native(std::span<std::uint64_t> into, const NativeView& from) {
  if (into.size() < kNativeHeaderWords) return;
  NativeWords<std::uint64_t> own(
      into.data(),
      static_cast<std::uint32_t>(into.size() - kNativeHeaderWords));
  // What is not ours may be anything.
  const NativeView checked = native_view(into);
  into[0] = std::bit_cast<std::uint64_t>(std::int64_t{checked.schema});
  into[1] = std::bit_cast<std::uint64_t>(std::int64_t{checked.first_index});
  into[2] = std::bit_cast<std::uint64_t>(checked.zero_threshold);
  while (own.schema() > from.schema) own.halve_resolution();

  double threshold = std::max(own.zero_threshold(), from.zero_threshold);
  for (double before = -1.0; before < threshold;) {
    before = threshold;
    threshold = past_bucket(past_bucket(threshold, native_view(into)), from);
  }
  if (threshold > own.zero_threshold()) own.raise_threshold(threshold);

  own.add_zeros(from.zero_count);
  for (std::size_t i = 0; i < from.counts.size(); ++i) {
    if (from.counts[i] == 0) continue;
    const std::int32_t index = index_at(from, i);
    if (native::upper_bound(index, from.schema) <= threshold) {
      own.add_zeros(from.counts[i]);
    } else {
      // The last of the finest buckets in it stands for all of them.
      own.add_finest(index * (1 << (kMaxNativeSchema - from.schema)),
                     from.counts[i]);
    }
  }
}

}  // namespace vllm_metrics::inline v0
