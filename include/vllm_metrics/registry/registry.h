#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/primitives/counter.h"
#include "vllm_metrics/primitives/gauge.h"
#include "vllm_metrics/primitives/histogram.h"
#include "vllm_metrics/registry/family.h"
#include "vllm_metrics/registry/labels.h"
#include "vllm_metrics/registry/schema.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

class Banks;
class SeriesStore;

// Where the words of some series come from: a bank, a counter, the process.
class VLLM_METRICS_EXPORT SnapshotSource {
 public:
  virtual ~SnapshotSource();

  // Writes the current words, as many as were registered. From any thread,
  // several at once, also after the Registration has ended.
  virtual void read(std::span<std::uint64_t> words) const noexcept = 0;
};

// Where series come from whose label sets change while they are on the page,
// e.g. the names of the adapters that are loaded now.
class VLLM_METRICS_EXPORT ChangingSource {
 public:
  // The series of one moment. Immutable; `source` fills their words.
  struct State {
    std::vector<Series> series = {};
    std::shared_ptr<const SnapshotSource> source = {};
    std::size_t word_count = 0;
  };

  virtual ~ChangingSource();

  // The present state: the same pointer as before unless the series changed.
  // From any thread, one at a time for each registry it is in, under that
  // registry's lock, as old states are let go: do not call the registry there.
  virtual std::shared_ptr<const State> current() const = 0;
};

// Series on a page, for as long as it lives: destroying it takes them off.
// It may outlive the registry; then it does nothing.
class VLLM_METRICS_EXPORT Registration {
 public:
  Registration() noexcept = default;
  Registration(Registration&& other) noexcept;
  Registration& operator=(Registration&& other) noexcept;
  ~Registration();

 private:
  friend class Registry;
  struct State;
  Registration(std::weak_ptr<State> state, std::uint64_t id) noexcept
      : state_(std::move(state)), id_(id) {}
  void reset() noexcept;

  std::weak_ptr<State> state_;
  std::uint64_t id_ = 0;
};

// A user's own metric on the page: use it like a pointer, `tokens->inc(3)`.
// The series leaves the page when the last copy of the handle is gone. The
// metric outlives the registry: writing to it stays safe and goes nowhere.
template <class Metric>
class Handle {
 public:
  Metric* operator->() const noexcept { return metric_.get(); }
  Metric& operator*() const noexcept { return *metric_; }

 private:
  friend class Registry;
  Handle(std::shared_ptr<Metric> metric, Registration registration)
      : metric_(std::move(metric)),
        registration_(std::make_shared<Registration>(std::move(registration))) {
  }
  std::shared_ptr<Metric> metric_;
  std::shared_ptr<Registration> registration_;
};

// The families, label sets and series of one page, and the way to read them
// all. Pass it by shared_ptr to whoever adds to the page or serves it.
//
// Thread-safety: every member from any thread. Registration takes a lock;
// writing a metric never does; snapshot() holds the lock only to learn which
// series there are, and reads them outside it.
// Errors: registration returns InvalidArgument for a name or label that is not
// allowed and for a family that differs from the one registered under its
// name, AlreadyExists for a series that is on the page (listing the families).
// Nothing is registered then.
class VLLM_METRICS_EXPORT Registry {
 public:
  // With a store its own series lie there, and its page has those of all who
  // share the store. What others fill (add() with a source) stays its own.
  static std::shared_ptr<Registry> create(
      std::shared_ptr<SeriesStore> store = nullptr);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  [[nodiscard]] absl::StatusOr<Handle<Counter>> add_counter(Family family,
                                                            Labels labels = {});
  [[nodiscard]] absl::StatusOr<Handle<Gauge>> add_gauge(Family family,
                                                        Labels labels = {});
  [[nodiscard]] absl::StatusOr<Handle<Histogram>> add_histogram(
      Family family, std::span<const double> bounds, Labels labels = {});

  // The general form: `families` with series whose offsets point into the
  // words that `source` fills, `word_count` of them.
  [[nodiscard]] absl::StatusOr<Registration> add(
      std::vector<SchemaFamily> families,
      std::shared_ptr<const SnapshotSource> source, std::size_t word_count);

  // Banks for `families`, which an engine's steps then fill: where this
  // registry's series lie. Put them on the page with add(), when they show what
  // they are to show. `count` banks of `cell_count` cells; offsets count the
  // cells of all, one bank behind the other.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<Banks>> make_banks(
      const std::vector<SchemaFamily>& families, std::size_t count,
      std::size_t cell_count);
  [[nodiscard]] absl::StatusOr<Registration> add(
      std::vector<SchemaFamily> families, std::shared_ptr<const Banks> banks);

  // The same for `count` series of an info family whose labels change, each a
  // bank of text (src/registry/info_words.h). Null when the series are private:
  // then add() a ChangingSource.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<Banks>> make_info_banks(
      Family family, std::size_t count);

  // One family whose series change. `family` must be an info family; label
  // names and values of its series are the source's to get right.
  [[nodiscard]] absl::StatusOr<Registration> add(
      Family family, std::shared_ptr<const ChangingSource> source);

  // Reads every series into `out`, reusing its storage: no allocation while
  // the set of series stays the same.
  void snapshot(Snapshot& out) const;

 private:
  explicit Registry(std::shared_ptr<SeriesStore> store);
  template <class Metric>
  absl::StatusOr<Handle<Metric>> add_metric(Family family, Series series,
                                            std::shared_ptr<Metric> metric);
  template <class Metric>
  absl::StatusOr<Handle<Metric>> add_stored(Family family, Series series);
  absl::StatusOr<Handle<Histogram>> add_stored_histogram(Family family,
                                                         Series series,
                                                         BucketBounds bounds);
  absl::StatusOr<Registration> add_member(
      std::vector<SchemaFamily> families,
      std::shared_ptr<const SnapshotSource> source, std::size_t word_count,
      bool is_stored);

  std::shared_ptr<Registration::State> state_;
};

}  // namespace vllm_metrics::inline v0
