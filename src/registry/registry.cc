#include "vllm_metrics/registry/registry.h"

#include <bit>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/registry/mutex.h"
#include "src/registry/page_index.h"

namespace vllm_metrics::inline v0 {
namespace {

// One registration: some series, and who fills their words.
struct Member {
  std::vector<IndexedFamily> families;
  std::shared_ptr<const SnapshotSource> source;
  std::size_t word_count = 0;
  std::shared_ptr<const ChangingSource> changing = {};      // or null
  std::shared_ptr<const ChangingSource::State> state = {};  // the latest seen
};

// What a scrape needs, made when it is first asked for after a change.
struct Layout {
  struct Part {
    std::shared_ptr<const SnapshotSource> source;
    std::size_t first_word = 0;
    std::size_t word_count = 0;
  };
  // An info series registered twice: both write one sample, the larger value
  // (the newer time) is shown.
  struct Duplicate {
    std::size_t shown = 0;
    std::size_t other = 0;
  };
  std::shared_ptr<const Schema> schema;
  std::vector<Part> parts;
  std::vector<Duplicate> duplicates;
};

// What can be said of each family without looking at the others.
absl::Status check_form(const SchemaFamily& added, std::size_t words) {
  const Family& family = added.family;
  if (auto status = check_family(family); !status.ok()) return status;
  const bool is_histogram = family.kind == MetricKind::kHistogram;
  for (const Series& series : added.series) {
    auto status =
        check_labels(family.name, series.labels, is_histogram ? "le" : "");
    if (!status.ok()) return status;
    if (is_histogram && series.bounds == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "family ", family.name, " is a histogram without bounds"));
    }
    const std::size_t size =
        word_count(family.kind, series.bounds.get(), series.native_buckets);
    if (series.offset + size > words) {
      return absl::InvalidArgumentError(absl::StrCat(
          "family ", family.name, ": offset ", series.offset, " with ", size,
          " words lies past the ", words, " words of its source"));
    }
  }
  return absl::OkStatus();
}

double unix_seconds_now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

SnapshotSource::~SnapshotSource() = default;
ChangingSource::~ChangingSource() = default;

struct Registration::State {
  void refresh_changing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::shared_ptr<const Layout> current_layout()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Mutex mutex;
  // By id, which is the order of registration and so that of the page.
  std::map<std::uint64_t, Member> members ABSL_GUARDED_BY(mutex);
  // Of them, those with a ChangingSource.
  std::vector<Member*> changing ABSL_GUARDED_BY(mutex);
  PageIndex index ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const Layout> layout ABSL_GUARDED_BY(mutex);
  std::uint64_t next_id ABSL_GUARDED_BY(mutex) = 1;
};

Registration::Registration(Registration&& other) noexcept
    : state_(std::move(other.state_)), id_(std::exchange(other.id_, 0)) {}

Registration& Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
    id_ = std::exchange(other.id_, 0);
  }
  return *this;
}

Registration::~Registration() { reset(); }

void Registration::reset() noexcept {
  const auto state = state_.lock();
  const auto id = std::exchange(id_, 0);
  if (state == nullptr || id == 0) return;
  // Destroyed after the lock is released: a source may be anything.
  std::map<std::uint64_t, Member>::node_type gone;
  std::shared_ptr<const Layout> old_layout;
  const MutexLock lock(state->mutex);
  gone = state->members.extract(id);
  std::erase(state->changing, &gone.mapped());
  state->index.remove(gone.mapped().families);
  old_layout = std::exchange(state->layout, nullptr);
}

// The index holds a changing family without its series, so that they can come
// and go without it.
void Registration::State::refresh_changing() {
  for (Member* member : changing) {
    auto now = member->changing->current();
    if (now == member->state) continue;
    member->state = std::move(now);
    layout = nullptr;
  }
}

std::shared_ptr<const Layout> Registration::State::current_layout() {
  refresh_changing();
  if (layout != nullptr) return layout;
  auto made = std::make_shared<Layout>();
  auto schema = std::make_shared<Schema>();
  std::unordered_map<const Family*, std::size_t> places;
  std::unordered_map<SeriesKey, std::size_t, SeriesKeyHash> info_offsets;
  schema->families.reserve(index.family_count());
  for (const auto& [id, member] : members) {
    const std::size_t base = schema->word_count;
    const bool changes = member.state != nullptr;
    made->parts.push_back(
        {changes ? member.state->source : member.source, base,
         changes ? member.state->word_count : member.word_count});
    schema->word_count += made->parts.back().word_count;
    for (const auto& [family, own_series] : member.families) {
      const auto [place, is_new] =
          places.try_emplace(family, schema->families.size());
      if (is_new) schema->families.push_back({*family, {}});
      for (Series series : changes ? member.state->series : own_series) {
        series.offset += static_cast<std::uint32_t>(base);
        if (family->info) {
          const auto [twin, is_first] = info_offsets.try_emplace(
              SeriesKey{family, series.labels}, series.offset);
          if (!is_first) {
            made->duplicates.push_back({twin->second, series.offset});
            continue;
          }
        }
        schema->families[place->second].series.push_back(std::move(series));
      }
    }
  }
  for (SchemaFamily& family : schema->families) family.series.shrink_to_fit();
  made->schema = std::move(schema);
  layout = std::move(made);
  return layout;
}

std::shared_ptr<Registry> Registry::create() {
  return std::shared_ptr<Registry>(new Registry());
}
Registry::Registry() : state_(std::make_shared<Registration::State>()) {}
Registry::~Registry() = default;

absl::StatusOr<Registration> Registry::add(
    std::vector<SchemaFamily> families,
    std::shared_ptr<const SnapshotSource> source, std::size_t word_count) {
  if (source == nullptr) {
    return absl::InvalidArgumentError(
        "source is null; allowed: what fills the "
        "words of the families");
  }
  const double now = unix_seconds_now();
  for (SchemaFamily& added : families) {
    if (auto status = check_form(added, word_count); !status.ok())
      return status;
    added.family = normalized(std::move(added.family));
    for (Series& series : added.series) {
      series.labels = normalized(std::move(series.labels));
      if (series.created == 0.0) series.created = now;
    }
  }
  const MutexLock lock(state_->mutex);
  auto indexed = state_->index.add(std::move(families));
  if (!indexed.ok()) return indexed.status();
  const auto id = state_->next_id++;
  state_->members.emplace(
      id, Member{*std::move(indexed), std::move(source), word_count});
  state_->layout = nullptr;
  return Registration(state_, id);
}

absl::StatusOr<Registration> Registry::add(
    Family family, std::shared_ptr<const ChangingSource> source) {
  if (source == nullptr) {
    return absl::InvalidArgumentError(
        "source is null; allowed: what tells the series of the family");
  }
  if (auto status = check_family(family); !status.ok()) return status;
  if (!family.info) {
    return absl::InvalidArgumentError(
        absl::StrCat("family ", family.name,
                     " has changing series; allowed: an info family"));
  }
  std::vector<SchemaFamily> families{{normalized(std::move(family)), {}}};
  const MutexLock lock(state_->mutex);
  auto indexed = state_->index.add(std::move(families));
  if (!indexed.ok()) return indexed.status();
  const auto id = state_->next_id++;
  Member& member = state_->members[id];
  member.families = *std::move(indexed);
  member.changing = std::move(source);
  state_->changing.push_back(&member);
  state_->layout = nullptr;
  return Registration(state_, id);
}

void Registry::snapshot(Snapshot& out) const {
  std::shared_ptr<const Layout> layout;
  {
    const MutexLock lock(state_->mutex);
    layout = state_->current_layout();
  }
  out.words.resize(layout->schema->word_count);
  for (const Layout::Part& part : layout->parts) {
    if (part.source == nullptr) continue;
    part.source->read(
        std::span(out.words).subspan(part.first_word, part.word_count));
  }
  for (const auto& [shown, other] : layout->duplicates) {
    if (std::bit_cast<double>(out.words[other]) >
        std::bit_cast<double>(out.words[shown])) {
      out.words[shown] = out.words[other];
    }
  }
  out.schema = layout->schema;
}

namespace {

// Reads one stand-alone metric into the words of its series.
void read_metric(const Counter& counter, std::span<std::uint64_t> words) {
  words[0] = counter.value();
}
void read_metric(const Gauge& gauge, std::span<std::uint64_t> words) {
  words[0] = std::bit_cast<std::uint64_t>(gauge.value());
}
void read_metric(const Histogram& histogram, std::span<std::uint64_t> words) {
  const double sum = histogram.read(words.first(words.size() - 1));
  words.back() = std::bit_cast<std::uint64_t>(sum);
}

template <class Metric>
class MetricSource : public SnapshotSource {
 public:
  explicit MetricSource(std::shared_ptr<const Metric> metric)
      : metric_(std::move(metric)) {}
  void read(std::span<std::uint64_t> words) const noexcept override {
    read_metric(*metric_, words);
  }

 private:
  std::shared_ptr<const Metric> metric_;
};

}  // namespace

template <class Metric>
absl::StatusOr<Handle<Metric>> Registry::add_metric(
    Family family, Series series, std::shared_ptr<Metric> metric) {
  const std::size_t words = word_count(family.kind, series.bounds.get());
  std::vector<SchemaFamily> families;
  families.push_back({std::move(family), {std::move(series)}});
  auto registration =
      add(std::move(families), std::make_shared<MetricSource<Metric>>(metric),
          words);
  if (!registration.ok()) return registration.status();
  return Handle<Metric>(std::move(metric), *std::move(registration));
}

absl::StatusOr<Handle<Counter>> Registry::add_counter(Family family,
                                                      Labels labels) {
  family.kind = MetricKind::kCounter;
  family.number = CounterNumber::kInteger;
  return add_metric(std::move(family), Series{.labels = std::move(labels)},
                    std::make_shared<Counter>());
}

absl::StatusOr<Handle<Gauge>> Registry::add_gauge(Family family,
                                                  Labels labels) {
  family.kind = MetricKind::kGauge;
  return add_metric(std::move(family), Series{.labels = std::move(labels)},
                    std::make_shared<Gauge>());
}

absl::StatusOr<Handle<Histogram>> Registry::add_histogram(
    Family family, std::span<const double> bounds, Labels labels) {
  family.kind = MetricKind::kHistogram;
  std::string why;
  auto checked = BucketBounds::create(bounds, &why);
  if (!checked.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("family ", valid_utf8(family.name), ": ", why));
  }
  Series series{.labels = std::move(labels),
                .bounds = std::make_shared<const BucketBounds>(*checked)};
  auto metric = std::make_shared<Histogram>(*std::move(checked));
  return add_metric(std::move(family), std::move(series), std::move(metric));
}

}  // namespace vllm_metrics::inline v0
