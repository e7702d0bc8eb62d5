// Writes the page in file argv[1] as protobuf, for tests that let others read
// it. With --native instead: a page with native histograms, and what is in
// them to standard error, a line each:
//   COUNT SUM SCHEMA THRESHOLD ZEROS INDEX:COUNT ...
// With --exemplars: a page with exemplars, some of series with native buckets,
// and the same as OpenMetrics to standard error.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/exposition/traced_requests.h"
#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/page_snapshot.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/primitives/native_words.h"
#include "vllm_metrics/protobuf/protobuf_format.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

// A histogram with these values, in both kinds of buckets.
class Source final : public SnapshotSource {
 public:
  explicit Source(const std::vector<double>& values,
                  const NativeHistogramOptions& options)
      : options_(options),
        bounds_(std::make_shared<const BucketBounds>(
            *BucketBounds::create(std::vector<double>{0.5, 2.0}))),
        words_(4 + native_word_count(options.max_buckets)) {
    NativeWords<std::uint64_t> native(words_.data() + 4, options.max_buckets);
    native.reset(options);
    double sum = 0.0;
    for (const double v : values) {
      native.add(v, 1);
      ++words_[bounds_->bucket_of(v)];
      sum += v;
    }
    words_[3] = std::bit_cast<std::uint64_t>(sum);
  }
  void read(std::span<std::uint64_t> words) const noexcept override {
    std::copy(words_.begin(), words_.end(), words.begin());
  }
  Series series() const {
    return {.bounds = bounds_, .native_buckets = options_.max_buckets};
  }
  std::size_t size() const { return words_.size(); }
  void print() const {
    const NativeView view = native_view(std::span(words_).subspan(4));
    std::fprintf(
        stderr, "%llu %.17g %d %.17g %llu",
        static_cast<unsigned long long>(words_[0] + words_[1] + words_[2]),
        std::bit_cast<double>(words_[3]), view.schema, view.zero_threshold,
        static_cast<unsigned long long>(view.zero_count));
    for (std::size_t i = 0; i < view.counts.size(); ++i) {
      if (view.counts[i] == 0) continue;
      std::fprintf(stderr, " %d:%llu",
                   view.first_index + static_cast<std::int32_t>(i),
                   static_cast<unsigned long long>(view.counts[i]));
    }
    std::fprintf(stderr, "\n");
  }

 private:
  NativeHistogramOptions options_;
  std::shared_ptr<const BucketBounds> bounds_;
  std::vector<std::uint64_t> words_;
};

int write_native() {
  const auto registry = Registry::create();
  std::vector<double> many;
  for (int i = 0; i < 3000; ++i) many.push_back(0.01 * (i % 300));
  std::vector<Registration> registrations;
  const auto add = [&](const char* name, const std::vector<double>& values,
                       const NativeHistogramOptions& options) {
    auto source = std::make_shared<Source>(values, options);
    source->print();
    registrations.push_back(*registry->add(
        {{{.name = name, .help = "Help.", .kind = MetricKind::kHistogram},
          {source->series()}}},
        source, source->size()));
  };
  add("empty", {}, {});
  add("empty_without_threshold", {}, {.zero_threshold = 0.0});
  add("zeros", {0.0, 0.0}, {});
  add("one", {1.0}, {.schema = 0});
  add("gaps", {0.001, 1.0, 1.1, 1.4, 2.0, 3.5, 100.0}, {});
  add("many", many, {.schema = 5, .max_buckets = 400});
  add("coarse", {1e-30, 1e30, 1.0}, {.zero_threshold = 0.25});
  std::cout << protobuf::ProtobufFormat().render(*registry);
  return 0;
}

int write_exemplars() {
  const Snapshot snapshot =
      snapshot_of_traced_requests(NativeHistogramOptions{});
  std::cout << protobuf::ProtobufFormat().render(snapshot);
  std::cerr << OpenMetrics().render(snapshot);
  return 0;
}

int run(const char* path) {
  if (path == std::string_view("--exemplars")) return write_exemplars();
  if (path == std::string_view("--native")) return write_native();
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto page = parse_page(text);
  if (!page.ok()) {
    std::cerr << path << ": " << page.status().message() << '\n';
    return 1;
  }
  const auto snapshot = snapshot_of(*page);
  if (!snapshot.ok()) {
    std::cerr << path << ": " << snapshot.status().message() << '\n';
    return 1;
  }
  std::cout << protobuf::ProtobufFormat().render(*snapshot);
  return 0;
}

}  // namespace
}  // namespace vllm_metrics

int main(int argc, char** argv) {
  return argc > 1 ? vllm_metrics::run(argv[1]) : 2;
}
