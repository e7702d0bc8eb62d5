#include "src/exposition/page_plan.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <numeric>
#include <utility>

#include "src/exposition/exemplar_text.h"
#include "src/exposition/text_escape.h"
#include "vllm_metrics/exposition/number_text.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::string_view kTotal = "_total";

// Texts of some dozens of bytes are copied in blocks, without a call: there is
// room for a part of a block behind all that is read or written.
constexpr std::size_t kBlock = 64;
static_assert(kBlock >= kMaxNumberText);

// Register by register, so it is no matter if the two overlap behind the bytes
// that are asked for.
template <std::size_t size>
inline void copy_registers(char* out, const char* from) {
  constexpr std::size_t kRegister = 16;
  std::memmove(out, from, kRegister);
  if constexpr (size > kRegister) {
    copy_registers<size - kRegister>(out + kRegister, from + kRegister);
  }
}

inline char* copy(char* out, const char* from, std::size_t size) {
  std::size_t done = 0;
  do {
    copy_registers<kBlock>(out + done, from + done);
    done += kBlock;
  } while (done < size);
  return out + size;
}

void append_label(std::string& out, const Label& label) {
  if (out.back() != '{') out += ',';
  out.append(label.name).append("=\"");
  append_escaped_label_value(out, label.value);
  out += '"';
}

// `{a="1",b="2"} `, or one blank when there is no label.
void append_labels(std::string& out, const LabelSet& labels) {
  if (!labels.empty()) {
    out += '{';
    for (const Label& label : labels) append_label(out, label);
    out += '}';
  }
  out += ' ';
}

std::string number_text(double value) {
  char text[kMaxNumberText];
  return {text, write_number(text, value)};
}

std::uint32_t bucket_count(const Series& series) {
  return static_cast<std::uint32_t>(series.bounds->bucket_count());
}

// ` # {trace_id="...",span_id="...",request_id="..."} 0.25 1700000000.250`
constexpr std::string_view kTraceId = " # {trace_id=\"";
constexpr std::string_view kSpanId = "\",span_id=\"";
constexpr std::string_view kRequestId = "\",request_id=\"";
constexpr std::string_view kExemplarEnd = "\"} ";
constexpr std::size_t kMaxExemplarText =
    kTraceId.size() + kSpanId.size() + kRequestId.size() + kExemplarEnd.size() +
    3 * kWordDigits + 2 * sizeof Exemplar::request_id + 2 * kMaxNumberText + 1;

char* append(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// In plain digits: some readers take a time apart at its point, and are misled
// by an exponent.
char* append_time(char* out, double seconds) {
  const auto ms = milliseconds(seconds);
  if (!ms) return out;
  *out++ = ' ';
  out = std::to_chars(out, out + kMaxNumberText, *ms / 1000).ptr;
  *out++ = '.';
  for (std::uint64_t unit = 100; unit != 0; unit /= 10)
    *out++ = static_cast<char>('0' + *ms / unit % 10);
  return out;
}

char* append_escaped(char* out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') *out++ = '\\';
    *out++ = c;
  }
  return out;
}

char* write_exemplar(char* out, const Exemplar& exemplar) {
  out = append(out, kTraceId);
  out = append_hex(out, exemplar.trace_id[0]);
  out = append_hex(out, exemplar.trace_id[1]);
  out = append(out, kSpanId);
  out = append_hex(out, exemplar.span_id);
  if (exemplar.request_id[0] != '\0') {
    out = append(out, kRequestId);
    out = append_escaped(out, RequestIdText(exemplar).view());
  }
  out = append(out, kExemplarEnd);
  out = write_number(out, exemplar.value);
  return append_time(out, exemplar.timestamp);
}

bool ends_in_unit(std::string_view name, std::string_view unit) {
  return !unit.empty() && name.size() > unit.size() && name.ends_with(unit) &&
         name[name.size() - unit.size() - 1] == '_';
}

}  // namespace

PagePlan::PagePlan(const Dialect& dialect, bool created_series,
                   std::vector<std::string> names)
    : dialect_(&dialect),
      created_series_(created_series),
      names_(std::move(names)) {
  std::ranges::sort(names_);
}

std::string_view PagePlan::write(const Snapshot& snapshot) {
  if (snapshot.schema == nullptr) return {};
  if (snapshot.schema != schema_) prepare(snapshot.schema);
  const char* text = text_.data();
  char* out = page_.get();
  for (const Step& step : steps_) {
    const std::uint64_t* const words = snapshot.words.data() + step.word;
    std::memcpy(out, text, step.text_size);
    out += step.text_size;
    text += step.text_size;
    switch (step.kind) {
      case NumberKind::kInteger:
        out = write_number(out, *words);
        break;
      case NumberKind::kReal:
        out = write_number(out, std::bit_cast<double>(*words));
        break;
      case NumberKind::kCount:
        out =
            write_number(out, std::accumulate(words, words + step.bucket_count,
                                              std::uint64_t{0}));
        break;
      case NumberKind::kBuckets:
        out = write_buckets(out, step, text, words);
        text += step.tail_size;
        continue;
      case NumberKind::kExemplars:
        out = write_exemplar_buckets(out, step, text, words);
        text += step.tail_size;
        continue;
    }
    *out++ = '\n';
  }
  // What is left belongs to no number.
  const auto rest =
      static_cast<std::size_t>(text_.data() + text_.size() - kBlock - text);
  std::memcpy(out, text, rest);
  out += rest;
  return {page_.get(), static_cast<std::size_t>(out - page_.get())};
}

// `out` is behind the first line's head; `text` is at the tail.
char* PagePlan::write_buckets(char* out, const Step& step, const char* text,
                              const std::uint64_t* words) const {
  const std::uint8_t* le_size = le_sizes_.data() + step.le;
  const char* le = le_text_.data() + step.le_text;
  // From behind one `le` to the next one. Most buckets gain nothing on the one
  // before, and what that one wrote is there to copy.
  const char* between = nullptr;
  std::size_t between_size = 0;
  std::uint64_t count = 0;
  const std::uint64_t* const end = words + step.bucket_count;
  for (const std::uint64_t* word = words; word != end; ++word) {
    copy_registers<kMaxNumberText>(out, le);
    out += *le_size;
    le += *le_size++;
    if (*word == 0 && between != nullptr) {
      out = copy(out, between, between_size);
      continue;
    }
    between = out;
    out = copy(out, text, step.tail_size);
    out = write_number(out, count += *word);
    *out++ = '\n';
    out = copy(out, text - step.head_size, step.head_size);
    between_size = static_cast<std::size_t>(out - between);
  }
  return out - step.head_size;
}

// The same with an exemplar behind the number where there is one. Lines of a
// histogram of requests in no great hurry: nothing is copied from the last one.
char* PagePlan::write_exemplar_buckets(char* out, const Step& step,
                                       const char* text,
                                       const std::uint64_t* words) const {
  const std::uint8_t* le_size = le_sizes_.data() + step.le;
  const char* le = le_text_.data() + step.le_text;
  std::span<const std::uint64_t> exemplars(words + step.exemplars,
                                           kExemplarWords * step.bucket_count);
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < step.bucket_count; ++i) {
    copy_registers<kMaxNumberText>(out, le);
    out += *le_size;
    le += *le_size++;
    out = copy(out, text, step.tail_size);
    out = write_number(out, count += words[i]);
    const Exemplar exemplar = exemplar_of(exemplars.first<kExemplarWords>());
    exemplars = exemplars.subspan(kExemplarWords);
    if (exemplar.valid()) out = write_exemplar(out, exemplar);
    *out++ = '\n';
    out = copy(out, text - step.head_size, step.head_size);
  }
  return out - step.head_size;
}

void PagePlan::prepare(std::shared_ptr<const Schema> schema) {
  schema_ = nullptr;  // until the end: a page half prepared is no page
  text_.clear();
  steps_.clear();
  le_text_.clear();
  le_sizes_.clear();
  text_begin_ = 0;
  for (const SchemaFamily& family : schema->families) add_family(family);
  text_ += dialect_->end;

  std::size_t size = text_.size() + kBlock;
  for (const Step& step : steps_) {
    size += kMaxNumberText + 1;
    if (step.kind != NumberKind::kBuckets &&
        step.kind != NumberKind::kExemplars)
      continue;
    if (step.kind == NumberKind::kExemplars)
      size += step.bucket_count * kMaxExemplarText;
    const std::uint8_t* const le = le_sizes_.data() + step.le;
    size += step.bucket_count *
                (step.head_size + step.tail_size + kMaxNumberText + 1) +
            std::accumulate(le, le + step.bucket_count, std::size_t{0});
  }
  text_.append(kBlock, '\0');
  le_text_.append(kBlock, '\0');
  text_.shrink_to_fit();
  steps_.shrink_to_fit();
  le_text_.shrink_to_fit();
  le_sizes_.shrink_to_fit();
  known_bounds_ = {};
  page_ = std::make_unique_for_overwrite<char[]>(size);
  schema_ = std::move(schema);
}

void PagePlan::add_header(const Family& family, std::string_view name,
                          std::string_view type) {
  text_.append("# HELP ").append(name) += ' ';
  append_escaped_help(text_, family.help, dialect_->help_escapes_quote);
  text_.append("\n# TYPE ").append(name).append(" ").append(type) += '\n';
  if (dialect_->units && ends_in_unit(family.name, family.unit)) {
    text_.append("# UNIT ").append(name).append(" ").append(family.unit) +=
        '\n';
  }
}

bool PagePlan::is_wanted(const std::string& name) const {
  return std::ranges::binary_search(names_, name);
}

PagePlan::Samples PagePlan::wanted_of(const Family& family) const {
  const bool all = names_.empty() || is_wanted(family.name);
  const auto sample = [&](std::string_view suffix) {
    return all || is_wanted(family.name + std::string(suffix));
  };
  const bool created = created_series_ && sample("_created");
  switch (family.kind) {
    case MetricKind::kCounter:
      return {.value = sample(kTotal), .created = created};
    case MetricKind::kGauge:
      return {.value = all};
    case MetricKind::kHistogram:
      return {.buckets = sample("_bucket"),
              .count = sample("_count"),
              .sum = sample("_sum"),
              .created = created};
  }
  return {};
}

void PagePlan::add_family(const SchemaFamily& added) {
  const Family& family = added.family;
  Samples wanted = wanted_of(family);
  // Series of several processes have no time of creation.
  if (std::ranges::find(added.series, 0.0, &Series::created) !=
      added.series.end())
    wanted.created = false;
  const bool created_within = wanted.created && dialect_->created_within_family;
  if (wanted.any_but_created() || created_within) {
    std::string name = family.name;
    if (family.kind == MetricKind::kCounter) {
      name += dialect_->counter_header_suffix;
    }
    add_header(family, name, name_of(family.kind));
    for (const Series& series : added.series) {
      add_series(family, series, wanted);
      if (created_within) add_created(family, series);
    }
  }
  if (wanted.created && !created_within) {
    add_header(family, family.name + "_created", name_of(MetricKind::kGauge));
    for (const Series& series : added.series) add_created(family, series);
  }
}

void PagePlan::add_series(const Family& family, const Series& series,
                          const Samples& wanted) {
  const auto add_text = [&](std::string_view suffix) {
    text_.append(family.name).append(suffix);
    append_labels(text_, series.labels);
  };
  if (wanted.value && family.kind == MetricKind::kCounter) {
    add_text(kTotal);
    add_number(family.number == CounterNumber::kInteger ? NumberKind::kInteger
                                                        : NumberKind::kReal,
               series.offset);
  } else if (wanted.value) {
    add_text("");
    add_number(NumberKind::kReal, series.offset);
  }
  if (wanted.buckets) add_buckets(family, series);
  if (wanted.count) {
    add_text("_count");
    add_number(NumberKind::kCount, series.offset, bucket_count(series));
  }
  if (wanted.sum) {
    add_text("_sum");
    add_number(NumberKind::kReal, series.offset + bucket_count(series));
  }
}

// Ends a text: a number comes here.
void PagePlan::add_number(NumberKind kind, std::uint32_t word,
                          std::uint32_t bucket_count) {
  steps_.push_back(
      {.kind = kind,
       .text_size = static_cast<std::uint32_t>(text_.size() - text_begin_),
       .word = word,
       .bucket_count = bucket_count});
  text_begin_ = text_.size();
}

// `le` takes its place in the order of the labels.
void PagePlan::add_buckets(const Family& family, const Series& series) {
  const std::size_t head = text_.size();
  text_.append(family.name).append("_bucket{");
  auto label = series.labels.begin();
  for (; label != series.labels.end() && label->name < "le"; ++label) {
    append_label(text_, *label);
  }
  if (text_.back() != '{') text_ += ',';
  text_ += "le=\"";
  const auto head_size = static_cast<std::uint32_t>(text_.size() - head);
  add_number(NumberKind::kBuckets, series.offset, bucket_count(series));
  text_ += '"';
  for (; label != series.labels.end(); ++label) append_label(text_, *label);
  text_ += "} ";
  const KnownBounds known = find_bounds(*series.bounds);
  Step& step = steps_.back();
  step.head_size = head_size;
  step.tail_size = static_cast<std::uint32_t>(text_.size() - text_begin_);
  if (dialect_->exemplars && series.exemplars == step.bucket_count) {
    step.kind = NumberKind::kExemplars;
    step.exemplars = static_cast<std::uint32_t>(word_count(
        MetricKind::kHistogram, series.bounds.get(), series.native_buckets));
  }
  step.le = known.le;
  step.le_text = known.le_text;
  text_begin_ = text_.size();
}

PagePlan::KnownBounds PagePlan::find_bounds(const BucketBounds& bounds) {
  for (const KnownBounds& known : known_bounds_) {
    if (known.bounds == &bounds || *known.bounds == bounds) return known;
  }
  known_bounds_.push_back({&bounds,
                           static_cast<std::uint32_t>(le_sizes_.size()),
                           static_cast<std::uint32_t>(le_text_.size())});
  const auto add = [&](std::string_view le) {
    le_text_ += le;
    le_sizes_.push_back(static_cast<std::uint8_t>(le.size()));
  };
  for (const double bound : bounds.values()) add(number_text(bound));
  add("+Inf");
  return known_bounds_.back();
}

// Times of creation never change: the whole line is text.
void PagePlan::add_created(const Family& family, const Series& series) {
  text_.append(family.name).append("_created");
  append_labels(text_, series.labels);
  text_.append(number_text(series.created)) += '\n';
}

}  // namespace vllm_metrics::inline v0
