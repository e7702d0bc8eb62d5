#include "vllm_metrics/registry/registry.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <map>
#include <new>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/registry/info_words.h"
#include "src/registry/mutex.h"
#include "src/registry/page_index.h"
#include "vllm_metrics/registry/banks.h"
#include "vllm_metrics/registry/series_store.h"

namespace vllm_metrics::inline v0 {
namespace {

// One registration: some series, and who fills their words.
struct Member {
  std::vector<IndexedFamily> families;
  std::shared_ptr<const SnapshotSource> source;
  std::size_t word_count = 0;
  bool is_stored = false;  // its series are in what the store shows
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
        word_count(family.kind, series.bounds.get(), series.native_buckets,
                   series.exemplars);
    if (series.offset + size > words) {
      return absl::InvalidArgumentError(absl::StrCat(
          "family ", family.name, ": offset ", series.offset, " with ", size,
          " words lies past the ", words, " words of its source"));
    }
  }
  return absl::OkStatus();
}

// Well-formed and normalized, or what is wrong.
absl::Status prepare(std::vector<SchemaFamily>& families, std::size_t words) {
  for (SchemaFamily& added : families) {
    if (auto status = check_form(added, words); !status.ok()) return status;
    added.family = normalized(std::move(added.family));
    for (Series& series : added.series)
      series.labels = normalized(std::move(series.labels));
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
  explicit State(std::shared_ptr<SeriesStore> given)
      : store(std::move(given)) {}

  void refresh_changing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::shared_ptr<const Layout> current_layout()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::shared_ptr<const Schema> behind(std::shared_ptr<const Schema> stored,
                                       const Layout& own)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const std::shared_ptr<SeriesStore> store;  // or null
  Mutex mutex;
  // By id, which is the order of registration and so that of the page.
  std::map<std::uint64_t, Member> members ABSL_GUARDED_BY(mutex);
  // Of them, those with a ChangingSource.
  std::vector<Member*> changing ABSL_GUARDED_BY(mutex);
  PageIndex index ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const Layout> layout ABSL_GUARDED_BY(mutex);
  std::uint64_t next_id ABSL_GUARDED_BY(mutex) = 1;
  // The latest page of a store with our own series behind it.
  std::shared_ptr<const Schema> joined ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const Schema> joined_from[2] ABSL_GUARDED_BY(mutex);
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
    if (member.is_stored) continue;
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

std::shared_ptr<const Schema> Registration::State::behind(
    std::shared_ptr<const Schema> stored, const Layout& own) {
  if (joined_from[0] == stored && joined_from[1] == own.schema) return joined;
  auto made = std::make_shared<Schema>(*stored);
  for (const SchemaFamily& added : own.schema->families) {
    auto place = std::ranges::find(
        made->families, added.family.name,
        [](const SchemaFamily& known) { return known.family.name; });
    if (place == made->families.end())
      place = made->families.insert(place, {added.family, {}});
    for (Series series : added.series) {
      series.offset += static_cast<std::uint32_t>(stored->word_count);
      place->series.push_back(std::move(series));
    }
  }
  made->word_count += own.schema->word_count;
  joined = std::move(made);
  joined_from[0] = std::move(stored);
  joined_from[1] = own.schema;
  return joined;
}

std::shared_ptr<Registry> Registry::create(std::shared_ptr<SeriesStore> store) {
  return std::shared_ptr<Registry>(new Registry(std::move(store)));
}
Registry::Registry(std::shared_ptr<SeriesStore> store)
    : state_(std::make_shared<Registration::State>(std::move(store))) {}
Registry::~Registry() = default;

absl::StatusOr<Registration> Registry::add(
    std::vector<SchemaFamily> families,
    std::shared_ptr<const SnapshotSource> source, std::size_t word_count) {
  return add_member(std::move(families), std::move(source), word_count,
                    /*is_stored=*/false);
}

absl::StatusOr<Registration> Registry::add(std::vector<SchemaFamily> families,
                                           std::shared_ptr<const Banks> banks) {
  const std::size_t words = banks == nullptr ? 0 : banks->word_count();
  const bool is_stored = banks != nullptr && banks->is_stored();
  return add_member(std::move(families), std::move(banks), words, is_stored);
}

absl::StatusOr<Registration> Registry::add_member(
    std::vector<SchemaFamily> families,
    std::shared_ptr<const SnapshotSource> source, std::size_t word_count,
    bool is_stored) {
  if (source == nullptr) {
    return absl::InvalidArgumentError(
        "source is null; allowed: what fills the "
        "words of the families");
  }
  if (auto status = prepare(families, word_count); !status.ok()) return status;
  const double now = unix_seconds_now();
  for (SchemaFamily& added : families) {
    for (Series& series : added.series) {
      if (series.created == 0.0) series.created = now;
    }
  }
  const MutexLock lock(state_->mutex);
  auto indexed = state_->index.add(std::move(families));
  if (!indexed.ok()) return indexed.status();
  const auto id = state_->next_id++;
  state_->members.emplace(id, Member{*std::move(indexed), std::move(source),
                                     word_count, is_stored});
  state_->layout = nullptr;
  return Registration(state_, id);
}

absl::StatusOr<std::shared_ptr<Banks>> Registry::make_banks(
    const std::vector<SchemaFamily>& families, std::size_t count,
    std::size_t cell_count) {
  if (state_->store == nullptr)
    return std::make_shared<Banks>(count, cell_count);
  auto stored = families;
  if (auto status = prepare(stored, count * cell_count); !status.ok())
    return status;
  auto place = state_->store->claim({.families = stored,
                                     .form = SeriesStore::Form::kBanks,
                                     .banks = count,
                                     .cell_count = cell_count});
  if (!place.ok()) return place.status();
  return std::make_shared<Banks>(*std::move(place), count, cell_count);
}

absl::StatusOr<std::shared_ptr<Banks>> Registry::make_info_banks(
    Family family, std::size_t count) {
  if (state_->store == nullptr) return nullptr;
  std::vector<SchemaFamily> families{{std::move(family), {}}};
  if (auto status = prepare(families, 0); !status.ok()) return status;
  auto place = state_->store->claim({.families = families,
                                     .form = SeriesStore::Form::kInfo,
                                     .banks = count,
                                     .cell_count = InfoWords::kCellCount});
  if (!place.ok()) return place.status();
  return std::make_shared<Banks>(*std::move(place), count,
                                 InfoWords::kCellCount);
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
  const bool is_shared = state_->store != nullptr;
  if (is_shared) state_->store->snapshot(out);
  const std::size_t base = is_shared ? out.schema->word_count : 0;
  std::shared_ptr<const Layout> layout;
  {
    const MutexLock lock(state_->mutex);
    layout = state_->current_layout();
    out.schema = is_shared ? state_->behind(std::move(out.schema), *layout)
                           : layout->schema;
  }
  out.words.resize(out.schema->word_count);
  const auto words = std::span(out.words).subspan(base);
  for (const Layout::Part& part : layout->parts) {
    if (part.source == nullptr) continue;
    part.source->read(words.subspan(part.first_word, part.word_count));
  }
  for (const auto& [shown, other] : layout->duplicates) {
    if (std::bit_cast<double>(words[other]) >
        std::bit_cast<double>(words[shown])) {
      words[shown] = words[other];
    }
  }
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

template <class Metric>
Metric* new_stored(void* memory) {
  if constexpr (std::is_same_v<Metric, Gauge>) {
    return new (memory) Gauge(Gauge::Timed{});
  } else {
    return new (memory) Metric;
  }
}

}  // namespace

// Such a metric lies in the store as it is, and all bytes zero it is a new one.
template <class Metric>
absl::StatusOr<Handle<Metric>> Registry::add_stored(Family family,
                                                    Series series) {
  static_assert(sizeof(Metric) == 2 * sizeof(std::uint64_t));
  static_assert(std::is_trivially_destructible_v<Metric>);
  std::vector<SchemaFamily> families;
  families.push_back({std::move(family), {std::move(series)}});
  if (auto status = prepare(families, 1); !status.ok()) return status;
  auto place = state_->store->claim({.families = families,
                                     .form = SeriesStore::Form::kWords,
                                     .cell_count = 2});
  if (!place.ok()) return place.status();
  Metric* const metric = place->is_new
                             ? new_stored<Metric>(place->memory.get())
                             : static_cast<Metric*>(place->memory.get());
  std::shared_ptr<Metric> owned(std::move(place->memory), metric);
  auto registration = add_member(
      std::move(families), std::make_shared<MetricSource<Metric>>(owned), 1,
      /*is_stored=*/true);
  if (!registration.ok()) return registration.status();
  return Handle<Metric>(std::move(owned), *std::move(registration));
}

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
  if (state_->store != nullptr)
    return add_stored<Counter>(std::move(family),
                               Series{.labels = std::move(labels)});
  return add_metric(std::move(family), Series{.labels = std::move(labels)},
                    std::make_shared<Counter>());
}

absl::StatusOr<Handle<Gauge>> Registry::add_gauge(Family family,
                                                  Labels labels) {
  family.kind = MetricKind::kGauge;
  if (state_->store != nullptr)
    return add_stored<Gauge>(std::move(family),
                             Series{.labels = std::move(labels)});
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
  if (state_->store != nullptr) {
    return add_stored_histogram(std::move(family), std::move(series),
                                *std::move(checked));
  }
  auto metric = std::make_shared<Histogram>(*std::move(checked));
  return add_metric(std::move(family), std::move(series), std::move(metric));
}

absl::StatusOr<Handle<Histogram>> Registry::add_stored_histogram(
    Family family, Series series, BucketBounds bounds) {
  struct Stored {
    std::shared_ptr<void> memory;
    Histogram histogram;
  };
  using Word = std::atomic<std::uint64_t>;
  const std::size_t words = word_count(family.kind, &bounds);
  const std::size_t stored_words = Histogram::stored_words(bounds);
  std::vector<SchemaFamily> families;
  families.push_back({std::move(family), {std::move(series)}});
  if (auto status = prepare(families, words); !status.ok()) return status;
  auto place = state_->store->claim({.families = families,
                                     .form = SeriesStore::Form::kHistogram,
                                     .cell_count = stored_words});
  if (!place.ok()) return place.status();
  void* const memory = place->memory.get();
  Word* const stored = place->is_new ? new (memory) Word[stored_words]
                                     : static_cast<Word*>(memory);
  std::shared_ptr<Stored> owned(
      new Stored{std::move(place->memory), {std::move(bounds), stored}});
  std::shared_ptr<Histogram> metric(owned, &owned->histogram);
  auto registration = add_member(
      std::move(families), std::make_shared<MetricSource<Histogram>>(metric),
      words, /*is_stored=*/true);
  if (!registration.ok()) return registration.status();
  return Handle<Histogram>(std::move(metric), *std::move(registration));
}

}  // namespace vllm_metrics::inline v0
