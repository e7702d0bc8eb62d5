#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/shm/schema_codec.h"
#include "vllm_metrics/registry/schema.h"

namespace vllm_metrics::inline v0::shm {

// Whose cells they are, which decides about gauges.
enum class Standing {
  kLive,    // a process at work
  kEnded,   // of a process, or a metric of it, that is no more
  kFolded,  // sums of processes that ended; they have their `pid` label
};

// The cells of a block as they were at one moment.
struct Source {
  std::shared_ptr<const BlockSchema> schema;
  Standing standing = Standing::kLive;
  std::int32_t pid = 0;
  std::span<const std::uint64_t> cells = {};
  std::span<const double> lows = {};  // kFolded: what sums lost in rounding
};

// The sum of all sources: series of one name and label set become one.
//
//   counters, histograms  added; of histograms with different bounds, the
//                         bounds that all have
//   exemplars             the newest of each bucket
//   gauges                by their mode; one that was never set is no sample
//
// Sums of doubles are kept to twice their precision: in whatever order they
// are added, whoever ends meanwhile, a counter does not fall by a rounding.
//
// Thread-safety: none.
class Merge {
 public:
  // Prepares for sources of this kind and order, if they are not those of the
  // last call, and adds them up.
  void run(std::span<const Source> sources);

  // The series of the last run, except gauges that nobody has set: the same
  // pointer as long as they are the same. Offsets point into cells().
  const std::shared_ptr<const Schema>& schema() const { return schema_; }
  // Info series of the past that are not on the page.
  std::vector<SchemaFamily> past() const;
  std::span<const std::uint64_t> cells() const { return cells_; }
  std::span<const double> lows() const { return lows_; }

  // Series that did not fit others of their name: of another kind, or a
  // histogram without a common bound.
  std::size_t misfits() const { return misfits_; }

 private:
  enum class Op {
    kAddIntegers,
    kAddReal,
    kAddNative,
    kNewestExemplar,
    kNewest,
    kMax,
    kMin,
    kSum
  };
  // What to do with `count` cells of a source.
  struct Step {
    Op op;
    std::uint32_t from;
    std::uint32_t to;
    std::uint32_t count;
    std::uint32_t room = 0;  // kAddNative: cells of the target
  };
  struct Kind {  // of a source: what its steps depend on
    std::shared_ptr<const BlockSchema> schema;
    Standing standing;
    std::int32_t pid;
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  struct Target {
    std::size_t family;
    std::size_t series;
  };

  void plan(std::span<const Source> sources);
  void place(const Source& source, const SchemaFamily& added, bool is_past);
  void place_series(const Source& source, const Family& family,
                    std::size_t into, const Series& series, bool is_past);
  void give_offsets();
  void make_steps(const Source& source, const SchemaFamily& from,
                  std::vector<Step>& out);
  void add_histogram(const Series& from, const Series& to,
                     std::vector<Step>& out);
  static void add_exemplars(const Series& from, const Series& to,
                            std::vector<Step>& out);
  void add(const Source& source, std::span<const Step> steps);
  static void keep_newer(const std::uint64_t* from, std::uint64_t* to);
  static void add_native(std::span<const std::uint64_t> from,
                         std::span<std::uint64_t> to);
  void make_schema();
  template <class IsWanted>
  std::vector<SchemaFamily> series_that(IsWanted is_wanted) const;
  static Op op_of(const Family& family);
  const Series* target_of(const std::string& family,
                          const LabelSet& labels) const;

  std::vector<Kind> kinds_;
  std::vector<std::vector<Step>> steps_;  // one list for each source
  std::vector<SchemaFamily> families_;
  std::vector<std::vector<char>> is_past_;  // as the series of families_
  std::unordered_map<std::string, std::size_t> family_places_;
  std::unordered_map<std::string, Target> targets_;  // by family and labels
  std::vector<std::uint32_t> gauges_;                // offsets
  std::vector<char> was_set_;                        // of each, in schema_
  std::vector<std::uint64_t> cells_;
  std::vector<double> lows_;
  std::shared_ptr<const Schema> schema_;
  std::size_t misfits_ = 0;
};

}  // namespace vllm_metrics::inline v0::shm
