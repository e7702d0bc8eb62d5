#include "vllm_metrics/exposition/text_parser.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "src/exposition/page_builder.h"
#include "src/exposition/page_faults.h"
#include "src/exposition/page_line.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::string_view kEndOfOpenMetrics = "# EOF";

PageFormat format_of(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const bool ends = text.ends_with(kEndOfOpenMetrics) &&
                    (text.size() == kEndOfOpenMetrics.size() ||
                     text[text.size() - kEndOfOpenMetrics.size() - 1] == '\n');
  return ends ? PageFormat::kOpenMetrics : PageFormat::kText;
}

bool is_ascii(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  std::uint64_t found = 0;
  std::uint64_t words[4];  // at a time, which do not wait for each other
  for (; text.size() >= sizeof words; text.remove_prefix(sizeof words)) {
    std::memcpy(words, text.data(), sizeof words);
    found |= (words[0] | words[1]) | (words[2] | words[3]);
  }
  for (const char c : text) found |= static_cast<unsigned char>(c);
  return (found & kHighBits) == 0;
}

class PageReader {
 public:
  PageReader(Page& page, PageFaults& faults)
      : page_(page),
        faults_(faults),
        lines_(page.format, *page.storage, faults),
        builder_(page, faults) {}

  void read(std::string_view text) {
    const bool ascii = is_ascii(text);
    while (!text.empty() && !faults_.ended()) {
      ++number_;
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      if (end == std::string_view::npos) {
        faults_.note(number_, line.size() + 1,
                     "the page ends here; allowed: behind a line feed");
      }
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      // A HELP may well end in one.
      if (line.ends_with('\r') && !line.starts_with("# HELP ")) [[unlikely]] {
        line.remove_suffix(1);
        faults_.note(number_, line.size() + 1,
                     "a carriage return; allowed: a line feed alone");
      }
      if (!ascii) line = valid(line);
      read_line(line);
    }
    if (faults_.ended()) return;
    if (page_.format == PageFormat::kOpenMetrics && !has_end_)
      faults_.note(number_ + 1, 1, "the page ends without # EOF");
    builder_.finish();
  }

 private:
  void read_line(std::string_view line) {
    NextBucket bucket;
    if (builder_.expects_bucket() && lines_.read_next_bucket(line, bucket) &&
        builder_.add(bucket)) {
      return;
    }
    const std::size_t start = line.find_first_not_of(" \t");
    const bool open_metrics = page_.format == PageFormat::kOpenMetrics;
    if (has_end_) {
      if (!std::exchange(told_end_, true))
        faults_.note(number_, 1, "a line after # EOF; allowed: none");
    }
    if (start == std::string_view::npos) {
      if (open_metrics)
        faults_.note(number_, 1, "an empty line; OpenMetrics has none");
    } else if (line[start] != '#') {
      if (lines_.read_sample(line, number_, sample_)) builder_.add(sample_);
    } else if (lines_.read_comment(line, number_, comment_)) {
      has_end_ = has_end_ || comment_.kind == CommentLine::Kind::kEnd;
      builder_.add(comment_);
    }
  }

  // `line` if it is UTF-8, otherwise a copy that is.
  std::string_view valid(std::string_view line) {
    if (is_ascii(line)) return line;
    const std::string repaired = valid_utf8(line);
    if (repaired == line) return line;
    const auto wrong = static_cast<std::size_t>(
        std::ranges::mismatch(line, repaired).in1 - line.begin());
    faults_.note(number_, wrong + 1, "not UTF-8");
    auto* const copy =
        static_cast<char*>(page_.storage->allocate(repaired.size(), 1));
    std::memcpy(copy, repaired.data(), repaired.size());
    return {copy, repaired.size()};
  }

  Page& page_;
  PageFaults& faults_;
  PageLineReader lines_;
  PageBuilder builder_;
  SampleLine sample_;
  CommentLine comment_;
  std::size_t number_ = 0;
  bool has_end_ = false;
  bool told_end_ = false;
};

}  // namespace

std::string_view name_of(PageKind kind) {
  switch (kind) {
    case PageKind::kUntyped:
      return "untyped";
    case PageKind::kCounter:
      return "counter";
    case PageKind::kGauge:
      return "gauge";
    case PageKind::kHistogram:
      return "histogram";
    case PageKind::kSummary:
      return "summary";
    case PageKind::kInfo:
      return "info";
    case PageKind::kStateSet:
      return "stateset";
    case PageKind::kGaugeHistogram:
      return "gaugehistogram";
  }
  return "untyped";
}

const PageFamily* Page::find(std::string_view name) const {
  constexpr std::string_view kTotal = "_total";
  const auto is_it = [&](const PageFamily& family) {
    if (family.name == name) return true;
    if (family.kind != PageKind::kCounter) return false;
    const auto [shorter, longer] = family.name.size() < name.size()
                                       ? std::pair(family.name, name)
                                       : std::pair(name, family.name);
    return longer.starts_with(shorter) &&
           longer.substr(shorter.size()) == kTotal;
  };
  const auto found = std::ranges::find_if(families, is_it);
  return found == families.end() ? nullptr : &*found;
}

absl::StatusOr<Page> parse_page(std::string_view text, ParseOptions options) {
  const bool strict = options.mode == ParseOptions::Mode::kStrict;
  Page page{.format = options.format.value_or(format_of(text)),
            .storage = std::make_unique<std::pmr::monotonic_buffer_resource>()};
  PageFaults faults(page, strict);
  PageReader(page, faults).read(text);
  if (!faults.ended()) return page;
  const PageFault& first = page.faults.front();
  return absl::InvalidArgumentError(
      message("line ", std::to_string(first.line), ", column ",
              std::to_string(first.column), ": ", first.message));
}

}  // namespace vllm_metrics::inline v0
