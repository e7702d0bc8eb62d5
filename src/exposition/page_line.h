#pragma once

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/exposition/page_faults.h"
#include "vllm_metrics/exposition/page.h"

namespace vllm_metrics::inline v0 {

// `name{label="value"} 1.0 [time] [# {label="value"} 0.5 [time]]`
struct SampleLine {
  struct Exemplar {
    std::vector<PageLabel> labels = {};
    double value = 0.0;
    std::optional<double> timestamp = {};
  };

  std::size_t line = 0;
  std::string_view name = {};
  bool repeats_name = false;           // of the sample that was read before
  std::vector<PageLabel> labels = {};  // by name
  double value = 0.0;
  std::optional<double> timestamp = {};
  bool has_exemplar = false;
  Exemplar exemplar = {};
};

// A line that is the sample before but for its `le` and its value.
struct NextBucket {
  std::string_view le;
  double value = 0.0;
};

// `# TYPE name text`
struct CommentLine {
  enum class Kind { kOther, kHelp, kType, kUnit, kEnd };

  std::size_t line = 0;
  Kind kind = Kind::kOther;
  std::string_view name = {};
  std::string_view text = {};  // HELP's without escapes
};

// Reads single lines of a page, without their line feed. Knows the grammar,
// and nothing of families.
class PageLineReader {
 public:
  // What had an escape in it is stored in `storage` without.
  PageLineReader(PageFormat format, std::pmr::memory_resource& storage,
                 PageFaults& faults) noexcept
      : open_metrics_(format == PageFormat::kOpenMetrics),
        storage_(storage),
        faults_(faults) {}

  // False, and a fault, when it is none that can be used. `out` is reused.
  bool read_sample(std::string_view line, std::size_t number, SampleLine& out);
  // False, without a fault, when it is no such line or has anything unusual:
  // most of a page is buckets, which need not be read label by label.
  bool read_next_bucket(std::string_view line, NextBucket& out) const noexcept;
  bool read_comment(std::string_view line, std::size_t number,
                    CommentLine& out);

 private:
  void begin(std::string_view line, std::size_t number) noexcept;
  void note(const char* at, std::string message);
  bool fail(const char* at, std::string message);
  bool at(char c) const noexcept { return p_ != end_ && *p_ == c; }
  std::string_view rest() const noexcept { return {p_, end_}; }
  std::string here() const { return excerpt(rest().substr(0, 20)); }

  // Between two tokens; and where OpenMetrics has no blank.
  void separate() {
    if (p_ != end_ && *p_ == ' ' && !(++p_ != end_ && is_blank(*p_))) return;
    separate_slowly();
  }
  void skip_blanks() {
    if (p_ != end_ && is_blank(*p_)) skip_blanks_slowly();
  }
  static bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
  void separate_slowly();
  void skip_blanks_slowly();
  std::string_view token() noexcept;

  // A label as it was read last at its place among the labels. Most lines
  // repeat most labels of the line before: one compare instead of reading.
  struct KnownLabel {
    std::string_view text;  // `name="value"`
    PageLabel label;
  };
  bool read_labels(std::vector<PageLabel>& out, std::vector<KnownLabel>& known);
  void frame_le(const SampleLine& sample, const char* value) noexcept;
  bool read_label(PageLabel& out);
  bool read_label_value(std::string_view& out);
  bool sort_labels(std::vector<PageLabel>& labels, const char* where);
  bool read_number(std::string_view what, double& out);
  bool read_timestamp(std::optional<double>& out);
  bool read_exemplar(SampleLine::Exemplar& out);
  std::string_view unescaped(std::string_view raw, bool quote);

  const bool open_metrics_;
  std::pmr::memory_resource& storage_;
  PageFaults& faults_;
  const char* begin_ = nullptr;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  std::size_t number_ = 0;
  std::vector<KnownLabel> known_labels_;
  std::vector<KnownLabel> known_exemplar_labels_;
  // The sample before, without the value of `le` and without its own.
  std::string_view before_le_;
  std::string_view behind_le_;
};

// A number as Go's and Python's parsers take it. False when it is none.
bool parse_number(std::string_view text, double& out) noexcept;

}  // namespace vllm_metrics::inline v0
