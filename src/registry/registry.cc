#include "vllm_metrics/registry/registry.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/registry/mutex.h"

namespace vllm_metrics::inline v0 {
namespace {

// One registration: some series, and who fills their words.
struct Member {
  std::uint64_t id = 0;
  std::vector<SchemaFamily> families;
  std::shared_ptr<const SnapshotSource> source;
  std::size_t word_count = 0;
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

std::string text(const Labels& labels) {
  return absl::StrCat("{",
                      absl::StrJoin(labels, ",",
                                    [](std::string* out, const Label& label) {
                                      absl::StrAppend(out, label.name, "=\"",
                                                      label.value, "\"");
                                    }),
                      "}");
}

// Equal for equal label sets only: 0xFF is not a byte of valid UTF-8.
std::string key(const Labels& labels) {
  std::string out;
  for (const Label& label : labels)
    absl::StrAppend(&out, label.name, "\xFF", label.value, "\xFF");
  return out;
}

// The names a family's samples take on a page; no other family may use them.
std::vector<std::string> sample_names(const Family& family) {
  const auto with = [&](std::initializer_list<std::string_view> suffixes) {
    std::vector<std::string> names{family.name};
    for (const auto suffix : suffixes)
      names.push_back(family.name + std::string(suffix));
    return names;
  };
  switch (family.kind) {
    case MetricKind::kCounter:
      return with({"_total", "_created"});
    case MetricKind::kHistogram:
      return with({"_bucket", "_count", "_sum", "_created"});
    case MetricKind::kGauge:
      return with({});
  }
  return {};
}

bool same_label_names(const Labels& a, const Labels& b) {
  return std::ranges::equal(a, b, {}, &Label::name, &Label::name);
}

double unix_seconds_now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Registration::State {
  absl::Status check(const std::vector<SchemaFamily>& families,
                     std::size_t word_count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status check_against_page(const SchemaFamily& added) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::shared_ptr<const Layout> current_layout()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // The registered series of a family; the first one speaks for its form.
  struct OnPage {
    const Family* family = nullptr;
    std::vector<const Series*> series;
  };
  OnPage find(std::string_view family) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Mutex mutex;
  std::vector<Member> members ABSL_GUARDED_BY(mutex);
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
  if (state == nullptr || id_ == 0) return;
  Member gone;  // destroyed after the lock is released: its
  std::shared_ptr<const Layout> old_layout;  // source may be anything
  {
    const MutexLock lock(state->mutex);
    const auto it = std::ranges::find(state->members, id_, &Member::id);
    if (it != state->members.end()) {
      gone = std::move(*it);
      state->members.erase(it);
      old_layout = std::exchange(state->layout, nullptr);
    }
  }
  id_ = 0;
}

Registration::State::OnPage Registration::State::find(
    std::string_view family) const {
  OnPage found;
  for (const Member& member : members) {
    for (const SchemaFamily& on_page : member.families) {
      if (on_page.family.name != family) continue;
      if (found.family == nullptr) found.family = &on_page.family;
      for (const Series& series : on_page.series)
        found.series.push_back(&series);
    }
  }
  return found;
}

absl::Status Registration::State::check_against_page(
    const SchemaFamily& added) const {
  const Family& family = added.family;
  const OnPage on_page = find(family.name);
  if (on_page.family != nullptr && !(*on_page.family == family)) {
    const Family& old = *on_page.family;
    const auto why =
        old.kind != family.kind
            ? absl::StrCat("as a ", std::string(name_of(old.kind)))
        : old.help != family.help
            ? absl::StrCat("with the help \"", old.help, "\"")
            : std::string("with another number type or merge mode");
    return absl::InvalidArgumentError(
        absl::StrCat("family ", family.name, " is already registered ", why));
  }
  for (const Series& series : added.series) {
    const Series* first = !on_page.series.empty() ? on_page.series.front()
                                                  : &added.series.front();
    if (!family.info && !same_label_names(series.labels, first->labels)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "family ", family.name, ": the labels of ", text(series.labels),
          " differ in name from those of ", text(first->labels)));
    }
  }
  const auto names = sample_names(family);
  for (const Member& member : members) {
    for (const SchemaFamily& other : member.families) {
      if (other.family.name == family.name) continue;
      for (const auto& taken : sample_names(other.family)) {
        if (std::ranges::find(names, taken) != names.end()) {
          return absl::InvalidArgumentError(
              absl::StrCat("family ", family.name, ": the name ", taken,
                           " belongs to family ", other.family.name));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Registration::State::check(
    const std::vector<SchemaFamily>& families, std::size_t words) const {
  for (const SchemaFamily& added : families) {
    const Family& family = added.family;
    if (auto status = check_family(family); !status.ok()) return status;
    for (const Series& series : added.series) {
      const auto reserved = family.kind == MetricKind::kHistogram ? "le" : "";
      if (auto status = check_labels(family.name, series.labels, reserved);
          !status.ok())
        return status;
      if (family.kind == MetricKind::kHistogram && series.bounds == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "family ", family.name, " is a histogram without bounds"));
      }
      if (series.offset + word_count(family.kind, series.bounds.get()) >
          words) {
        return absl::InvalidArgumentError(
            absl::StrCat("family ", family.name, ": offset ", series.offset,
                         " of ", text(series.labels), " lies past the ", words,
                         " words of its source"));
      }
    }
    if (auto status = check_against_page(added); !status.ok()) return status;
  }
  std::vector<std::string> clashing;
  for (const SchemaFamily& added : families) {
    if (added.family.info) continue;
    std::unordered_set<std::string> keys;
    for (const Series* series : find(added.family.name).series)
      keys.insert(key(series->labels));
    const auto is_new = [&](const Series& series) {
      return keys.insert(key(series.labels)).second;
    };
    if (!std::ranges::all_of(added.series, is_new))
      clashing.push_back(added.family.name);
  }
  if (!clashing.empty()) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the same series (name and labels) are already registered in ",
        clashing.size(), clashing.size() == 1 ? " family: " : " families: ",
        absl::StrJoin(clashing, ", ")));
  }
  return absl::OkStatus();
}

std::shared_ptr<const Layout> Registration::State::current_layout() {
  if (layout != nullptr) return layout;
  auto made = std::make_shared<Layout>();
  auto schema = std::make_shared<Schema>();
  std::unordered_map<std::string_view, std::size_t> index;
  for (const Member& member : members) {
    const std::size_t base = schema->word_count;
    made->parts.push_back({member.source, base, member.word_count});
    schema->word_count += member.word_count;
    for (const SchemaFamily& added : member.families) {
      const auto [it, is_new] =
          index.try_emplace(added.family.name, schema->families.size());
      if (is_new) schema->families.push_back({added.family, {}});
      auto& shown = schema->families[it->second].series;
      for (Series series : added.series) {
        series.offset += static_cast<std::uint32_t>(base);
        const auto twin =
            added.family.info
                ? std::ranges::find(shown, series.labels, &Series::labels)
                : shown.end();
        if (twin != shown.end()) {
          made->duplicates.push_back({twin->offset, series.offset});
        } else {
          shown.push_back(std::move(series));
        }
      }
    }
  }
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
  const double now = unix_seconds_now();
  for (SchemaFamily& added : families) {
    added.family = normalized(std::move(added.family));
    for (Series& series : added.series) {
      series.labels = normalized(std::move(series.labels));
      if (series.created == 0.0) series.created = now;
    }
  }
  const MutexLock lock(state_->mutex);
  if (auto status = state_->check(families, word_count); !status.ok())
    return status;
  const auto id = state_->next_id++;
  state_->members.push_back(
      {id, std::move(families), std::move(source), word_count});
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
