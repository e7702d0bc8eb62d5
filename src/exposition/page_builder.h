#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/exposition/page_faults.h"
#include "src/exposition/page_line.h"
#include "vllm_metrics/exposition/page.h"

namespace vllm_metrics::inline v0 {

// Sorts the lines of a page into families and series.
class PageBuilder {
 public:
  // `page.format` and `page.storage` are set.
  PageBuilder(Page& page, PageFaults& faults);

  void add(const CommentLine& comment);
  void add(SampleLine& sample);  // takes its labels apart

  // Whether the sample before was a bucket, so that this may be its next.
  bool expects_bucket() const noexcept { return bucket_series_ != kNowhere; }
  // False, without a fault, when it cannot be one.
  bool add(const NextBucket& bucket);

  // After the last line: what only a whole family can tell.
  void finish();

 private:
  // What a sample is to its family.
  enum class Part : std::uint8_t {
    kNone,
    kValue,
    kQuantile,
    kBucket,
    kCount,
    kSum,
    kCreated,
  };
  // What is known of a family beside its content.
  struct State {
    bool has_help = false;
    bool has_type = false;
    bool has_unit = false;
    bool left = false;   // samples of others came after its own
    bool moved = false;  // its samples are another family's
    std::vector<std::uint8_t> parts = {};  // of each series, a bit for each
  };
  struct Place {
    std::size_t family;
    Part part;
  };
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  Part part_of(PageKind kind, std::string_view suffix) const;
  Place place_of(std::string_view name);
  std::size_t family_of(std::string_view name);  // made when there is none
  void set_unit(PageFamily& family, const CommentLine& comment);
  void set_type(std::size_t family, const CommentLine& comment);
  void adopt(std::size_t family, std::size_t line);
  void enter(std::size_t family, std::size_t line);
  void place(SampleLine& sample, Place place);
  std::size_t series_of(std::size_t family, std::span<const PageLabel> labels,
                        std::size_t line);
  void add_bucket(SampleLine& sample, std::size_t family);
  bool read_bound(std::string_view text, std::size_t index, double& out);
  void add_quantile(SampleLine& sample, std::size_t family);
  const PageExemplar* exemplar_of(const SampleLine& sample);
  // False, and a fault, when the series has that part.
  bool claim(std::size_t family, std::size_t series, Part part,
             const SampleLine& sample);
  void finish_series(const PageFamily& family, PageSeries& series,
                     std::uint8_t parts);
  void note(std::size_t line, std::string message);

  Page& page_;
  PageFaults& faults_;
  const bool open_metrics_;
  std::pmr::monotonic_buffer_resource scratch_;
  std::vector<State> states_;  // as page_.families
  std::pmr::unordered_map<std::string_view, std::size_t> by_name_;
  struct SeriesPlace {
    std::size_t family, series;
  };
  std::pmr::unordered_multimap<std::size_t, SeriesPlace> by_labels_;
  std::size_t current_ = kNowhere;        // the family of the sample before
  std::optional<Place> place_;            // of it, while its name says the same
  std::size_t bucket_series_ = kNowhere;  // of it, if it was a bucket
  // The text of `le` and what it says, by its place among the buckets: that of
  // the series before is usually the same.
  struct KnownBound {
    std::string_view text;
    double bound;
  };
  std::vector<KnownBound> known_bounds_;
};

}  // namespace vllm_metrics::inline v0
