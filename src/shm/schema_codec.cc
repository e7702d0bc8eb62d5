#include "src/shm/schema_codec.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "vllm_metrics/primitives/native_buckets.h"
#include "vllm_metrics/registry/family.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

class Writer {
 public:
  template <class Number>
  void put(Number value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    const std::size_t at = out.size();
    out.resize(at + sizeof value);
    std::memcpy(out.data() + at, &value, sizeof value);
  }
  void put_size(std::size_t n) { put(static_cast<std::uint32_t>(n)); }
  void put_text(std::string_view text) {
    put_size(text.size());
    out.append(text);
  }

  std::string out;
};

// Reads what may be anything: past the end all is 0, and `failed` is set.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number take() {
    Number value{};
    const std::string_view bytes = take_bytes(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string take_text() {
    return std::string(take_bytes(take<std::uint32_t>()));
  }
  // A number of things that take `least` bytes each at least.
  std::size_t take_size(std::size_t least) {
    const auto n = take<std::uint32_t>();
    if (n > rest_.size() / least) failed = true;
    return failed ? 0 : n;
  }
  bool is_at_end() const { return rest_.empty(); }

  bool failed = false;

 private:
  std::string_view take_bytes(std::size_t n) {
    if (n > rest_.size()) {
      failed = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  std::string_view rest_;
};

std::uint32_t pack(const Family& family) {
  return static_cast<std::uint32_t>(family.kind) |
         static_cast<std::uint32_t>(family.number) << 8 |
         static_cast<std::uint32_t>(family.mode) << 16 |
         static_cast<std::uint32_t>(family.info ? 1 : 0) << 24;
}

bool unpack(std::uint32_t packed, Family& out) {
  const std::uint32_t kind = packed & 0xFF;
  const std::uint32_t number = packed >> 8 & 0xFF;
  const std::uint32_t mode = packed >> 16 & 0xFF;
  out.kind = static_cast<MetricKind>(kind);
  out.number = static_cast<CounterNumber>(number);
  out.mode = static_cast<GaugeMode>(mode);
  out.info = packed >> 24 != 0;
  return kind <= static_cast<std::uint32_t>(MetricKind::kHistogram) &&
         number <= static_cast<std::uint32_t>(CounterNumber::kReal) &&
         mode <= static_cast<std::uint32_t>(GaugeMode::kLiveAll) &&
         packed >> 24 <= 1;
}

using AllBounds = std::vector<std::shared_ptr<const BucketBounds>>;

AllBounds take_bounds(Reader& in) {
  AllBounds all(in.take_size(sizeof(std::uint32_t)));
  for (auto& made : all) {
    std::vector<double> values(in.take_size(sizeof(double)));
    for (double& value : values) value = in.take<double>();
    auto checked = BucketBounds::create(values);
    if (!checked.has_value()) {
      in.failed = true;
      return all;
    }
    made = std::make_shared<const BucketBounds>(*std::move(checked));
  }
  return all;
}

// A gauge has its time behind its value.
std::size_t cells_of(MetricKind kind, const Series& series) {
  return kind == MetricKind::kGauge
             ? 2
             : word_count(kind, series.bounds.get(), series.native_buckets,
                          series.exemplars);
}

void put_family(Writer& out, const SchemaFamily& family) {
  out.put_text(family.family.name);
  out.put_text(family.family.help);
  out.put_text(family.family.unit);
  out.put(pack(family.family));
  out.put_size(family.series.size());
}

void put_labels(Writer& out, const LabelSet& labels) {
  out.put_size(labels.size());
  for (const Label& label : labels) {
    out.put_text(label.name);
    out.put_text(label.value);
  }
}

void take_series(Reader& in, const Family& family, const AllBounds& bounds,
                 std::size_t cell_count, Series& out) {
  Labels labels(in.take_size(2 * sizeof(std::uint32_t)));
  for (Label& label : labels) {
    label.name = in.take_text();
    label.value = in.take_text();
  }
  out.labels = std::move(labels);
  out.offset = in.take<std::uint32_t>();
  const auto index = in.take<std::uint32_t>();
  if (index < bounds.size()) out.bounds = bounds[index];
  out.native_buckets = in.take<std::uint32_t>();
  out.exemplars = in.take<std::uint32_t>();
  const bool is_histogram = family.kind == MetricKind::kHistogram;
  const bool is_sized =
      out.native_buckets == 0 ||
      (is_histogram && out.native_buckets >= kMinNativeBuckets &&
       out.native_buckets <= kMaxNativeBuckets);
  const bool has_exemplars = out.exemplars != 0;
  if (has_exemplars &&
      (out.bounds == nullptr || out.exemplars != out.bounds->bucket_count()))
    in.failed = true;
  if (in.failed || !is_sized || is_histogram != (out.bounds != nullptr) ||
      !check_labels(family.name, out.labels, is_histogram ? "le" : "").ok()) {
    in.failed = true;
    return;
  }
  out.labels = normalized(std::move(out.labels));
  if (out.offset + cells_of(family.kind, out) > cell_count) in.failed = true;
}

void take_family(Reader& in, const AllBounds& bounds, std::size_t cell_count,
                 SchemaFamily& out) {
  out.family.name = in.take_text();
  out.family.help = in.take_text();
  out.family.unit = in.take_text();
  const bool fits = unpack(in.take<std::uint32_t>(), out.family);
  if (in.failed || !fits || !check_family(out.family).ok()) {
    in.failed = true;
    return;
  }
  out.family = normalized(std::move(out.family));
  out.series.resize(in.take_size(5 * sizeof(std::uint32_t)));
  for (Series& series : out.series) {
    take_series(in, out.family, bounds, cell_count, series);
    if (in.failed) return;
  }
}

}  // namespace

std::string encode(const std::vector<SchemaFamily>& families,
                   const std::vector<SchemaFamily>& past) {
  AllBounds bounds;
  const auto index_of = [&](const std::shared_ptr<const BucketBounds>& wanted) {
    if (wanted == nullptr) return kNone;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      if (bounds[i] == wanted || *bounds[i] == *wanted)
        return static_cast<std::uint32_t>(i);
    }
    bounds.push_back(wanted);
    return static_cast<std::uint32_t>(bounds.size() - 1);
  };
  Writer body;
  for (const auto* const list : {&families, &past}) {
    body.put_size(list->size());
    for (const SchemaFamily& family : *list) {
      put_family(body, family);
      for (const Series& series : family.series) {
        put_labels(body, series.labels);
        body.put(series.offset);
        body.put(index_of(series.bounds));
        body.put(series.native_buckets);
        body.put(series.exemplars);
      }
    }
  }
  Writer head;
  head.put_size(bounds.size());
  for (const auto& made : bounds) {
    head.put_size(made->size());
    for (const double value : made->values()) head.put(value);
  }
  return head.out + body.out;
}

std::uint64_t hash_of(std::string_view bytes) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  return hash;
}

std::shared_ptr<const BlockSchema> SchemaDecoder::decode(
    std::string_view bytes, std::size_t cell_count) {
  std::erase_if(known_,
                [](const auto& entry) { return entry.second.expired(); });
  auto& known = known_[std::string(bytes)];
  if (auto same = known.lock();
      same != nullptr && same->cell_count == cell_count)
    return same;
  auto made = std::make_shared<BlockSchema>();
  made->cell_count = cell_count;
  Reader in(bytes);
  const AllBounds bounds = take_bounds(in);
  for (auto* const list : {&made->families, &made->past}) {
    list->resize(in.take_size(4 * sizeof(std::uint32_t)));
    for (SchemaFamily& family : *list) {
      if (in.failed) return nullptr;
      take_family(in, bounds, cell_count, family);
    }
  }
  if (in.failed || !in.is_at_end()) return nullptr;
  known = made;
  return made;
}

}  // namespace vllm_metrics::inline v0::shm
