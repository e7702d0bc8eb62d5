#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/registry/schema.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

// What differs between the formats that are lines of text.
struct Dialect {
  // Behind a counter's name in HELP and TYPE; its samples always have it.
  std::string_view counter_header_suffix;
  // HELP escapes the quote as well.
  bool help_escapes_quote;
  // `# UNIT` where the name ends in the unit.
  bool units;
  // `_created` samples are in the family of their series, not a family of
  // gauges behind it.
  bool created_within_family;
  // Bucket lines may have exemplars.
  bool exemplars;
  // Ends a page.
  std::string_view end;
};

// Writes snapshots in one dialect. All but the numbers is prepared when the
// schema changes: a page is then text after text and number after number.
//
// Bucket lines of one series differ by `le` and number only. Kept of them is
// what lies before and behind `le`, once a series, and the `le` texts, once for
// all series of equal bounds.
//
// Thread-safety: one thread at a time.
class PagePlan {
 public:
  // `names`: see TextFormat.
  PagePlan(const Dialect& dialect, bool created_series,
           std::vector<std::string> names);

  // The page; valid until the next call. Allocates when the schema changed.
  std::string_view write(const Snapshot& snapshot);

 private:
  enum class NumberKind : std::uint8_t {
    kInteger,    // one word
    kReal,       // one word, a double
    kBuckets,    // bucket_count words, a line each
    kExemplars,  // kBuckets whose lines may end in exemplars
    kCount,      // bucket_count words, their sum
  };
  // One text and the number, or the numbers, behind it.
  struct Step {
    NumberKind kind;
    std::uint32_t text_size;
    std::uint32_t word;
    std::uint32_t bucket_count = 0;
    // kBuckets, kExemplars: the last `head_size` bytes of the text lead up to
    // `le`, the `tail_size` bytes that follow in `text_` come behind it.
    std::uint32_t head_size = 0;
    std::uint32_t tail_size = 0;
    std::uint32_t le = 0;  // of its first bucket, in `le_sizes_`
    std::uint32_t le_text = 0;
    std::uint32_t exemplars = 0;  // kExemplars: from `word` to those words
  };
  // Bounds whose texts are there already.
  struct KnownBounds {
    const BucketBounds* bounds;
    std::uint32_t le;
    std::uint32_t le_text;
  };

  // What is wanted of a family.
  struct Samples {
    bool value = false;  // of a counter or gauge
    bool buckets = false;
    bool count = false;
    bool sum = false;
    bool created = false;

    bool any_but_created() const { return value || buckets || count || sum; }
  };

  bool is_wanted(const std::string& name) const;
  Samples wanted_of(const Family& family) const;
  void prepare(std::shared_ptr<const Schema> schema);
  void add_header(const Family& family, std::string_view name,
                  std::string_view type);
  void add_family(const SchemaFamily& family);
  void add_series(const Family& family, const Series& series,
                  const Samples& wanted);
  void add_number(NumberKind kind, std::uint32_t word,
                  std::uint32_t bucket_count = 0);
  void add_buckets(const Family& family, const Series& series);
  void add_created(const Family& family, const Series& series);
  KnownBounds find_bounds(const BucketBounds& bounds);
  char* write_buckets(char* out, const Step& step, const char* text,
                      const std::uint64_t* words) const;
  char* write_exemplar_buckets(char* out, const Step& step, const char* text,
                               const std::uint64_t* words) const;

  const Dialect* dialect_;
  bool created_series_;
  std::vector<std::string> names_;  // sorted

  std::shared_ptr<const Schema> schema_;
  std::string text_;
  std::vector<Step> steps_;
  std::string le_text_;
  std::vector<std::uint8_t> le_sizes_;
  std::vector<KnownBounds> known_bounds_;  // while preparing
  std::size_t text_begin_ = 0;             // of the step that is being prepared
  std::unique_ptr<char[]> page_;
};

}  // namespace vllm_metrics::inline v0
