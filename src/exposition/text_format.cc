#include "vllm_metrics/exposition/text_format.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/exposition/text_escape.h"
#include "vllm_metrics/exposition/number_text.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0 {
namespace {

void append_label(std::string& out, std::string_view name,
                  std::string_view value) {
  if (out.back() != '{') out += ',';
  out.append(name).append("=\"");
  append_escaped_label_value(out, value);
  out += '"';
}

// `{a="1",b="2"} `, or one blank when there is no label; `le` (if not empty)
// takes its place in the order.
void append_labels(std::string& out, const Labels& labels,
                   std::string_view le) {
  if (labels.empty() && le.empty()) {
    out += ' ';
    return;
  }
  out += '{';
  bool le_done = le.empty();
  for (const Label& label : labels) {
    if (!le_done && label.name > "le") {
      append_label(out, "le", le);
      le_done = true;
    }
    append_label(out, label.name, label.value);
  }
  if (!le_done) append_label(out, "le", le);
  out += "} ";
}

std::string number_text(double value) {
  char text[kMaxNumberText];
  return {text, write_number(text, value)};
}

}  // namespace

struct TextFormat::State {
  // What to write for one series: how its words become numbers.
  struct Plan {
    MetricKind kind;
    CounterNumber number;
    std::uint32_t offset;
    std::uint32_t bucket_count;  // histograms
  };

  // Everything up to a number is a prefix: headers, names, labels. They lie in
  // one string, in the order of the page.
  void prepare(std::shared_ptr<const Schema> of);
  void prepare_family(const SchemaFamily& family);
  void prepare_series(const Family& family, const Series& series);
  void prepare_created(const SchemaFamily& family);
  void end_prefix() { prefix_ends.push_back(prefixes.size()); }

  std::string_view write(std::span<const std::uint64_t> words);

  TextFormatOptions options;
  std::shared_ptr<const Schema> schema;
  std::string prefixes;
  std::vector<std::size_t> prefix_ends;
  std::vector<Plan> plans;
  std::unique_ptr<char[]> page;
  Snapshot snapshot;
};

void TextFormat::State::prepare(std::shared_ptr<const Schema> of) {
  schema = nullptr;  // until the end: a page half prepared is no page
  prefixes.clear();
  prefix_ends.clear();
  plans.clear();
  for (const SchemaFamily& family : of->families) prepare_family(family);
  // What is left behind the last number (`_created` samples) is a prefix of
  // nothing.
  const std::size_t numbers = prefix_ends.size();
  end_prefix();
  prefixes.shrink_to_fit();
  prefix_ends.shrink_to_fit();
  plans.shrink_to_fit();
  page = std::make_unique_for_overwrite<char[]>(prefixes.size() +
                                                numbers * (kMaxNumberText + 1));
  schema = std::move(of);
}

void TextFormat::State::prepare_family(const SchemaFamily& family) {
  const std::string name =
      family.family.name +
      (family.family.kind == MetricKind::kCounter ? "_total" : "");
  prefixes.append("# HELP ").append(name) += ' ';
  append_escaped_help(prefixes, family.family.help);
  prefixes.append("\n# TYPE ")
      .append(name)
      .append(" ")
      .append(name_of(family.family.kind)) += '\n';
  for (const Series& series : family.series)
    prepare_series(family.family, series);
  if (options.created_series && family.family.kind != MetricKind::kGauge)
    prepare_created(family);
}

void TextFormat::State::prepare_series(const Family& family,
                                       const Series& series) {
  const auto add_line = [&](std::string_view suffix, std::string_view le = {}) {
    prefixes.append(family.name).append(suffix);
    append_labels(prefixes, series.labels, le);
    end_prefix();
  };
  Plan plan{family.kind, family.number, series.offset, 0};
  switch (family.kind) {
    case MetricKind::kCounter:
      add_line("_total");
      break;
    case MetricKind::kGauge:
      add_line("");
      break;
    case MetricKind::kHistogram:
      for (const double bound : series.bounds->values())
        add_line("_bucket", number_text(bound));
      add_line("_bucket", "+Inf");
      add_line("_count");
      add_line("_sum");
      plan.bucket_count =
          static_cast<std::uint32_t>(series.bounds->bucket_count());
      break;
  }
  plans.push_back(plan);
}

// Times of creation never change: the whole line is constant.
void TextFormat::State::prepare_created(const SchemaFamily& family) {
  const std::string name = family.family.name + "_created";
  prefixes.append("# HELP ").append(name) += ' ';
  append_escaped_help(prefixes, family.family.help);
  prefixes.append("\n# TYPE ").append(name).append(" gauge\n");
  for (const Series& series : family.series) {
    prefixes += name;
    append_labels(prefixes, series.labels, {});
    prefixes.append(number_text(series.created)) += '\n';
  }
}

std::string_view TextFormat::State::write(
    std::span<const std::uint64_t> words) {
  char* out = page.get();
  const char* prefix = prefixes.data();
  const std::size_t* prefix_end = prefix_ends.data();
  const auto write_prefix = [&] {
    const char* const end = prefixes.data() + *prefix_end++;
    const auto size = static_cast<std::size_t>(end - prefix);
    std::memcpy(out, prefix, size);
    prefix = end;
    out += size;
  };
  const char* number = nullptr;  // the latest one, with its newline
  std::size_t number_size = 0;
  const auto write_line = [&](auto value) {
    write_prefix();
    number = out;
    out = write_number(out, value);
    *out++ = '\n';
    number_size = static_cast<std::size_t>(out - number);
  };
  // Most buckets gain nothing on the one before, and its number is there to
  // copy: a fixed size, since behind every number there is room for the
  // longest.
  const auto repeat_line = [&] {
    write_prefix();
    char text[kMaxNumberText];
    std::memcpy(text, number, sizeof text);
    std::memcpy(out, text, sizeof text);
    out += number_size;
  };
  for (const Plan& plan : plans) {
    const std::uint64_t* word = words.data() + plan.offset;
    if (plan.kind == MetricKind::kHistogram) {
      std::uint64_t count = *word++;
      write_line(count);
      for (std::uint32_t b = 1; b < plan.bucket_count; ++b) {
        const std::uint64_t gained = *word++;
        if (gained == 0) {
          repeat_line();
        } else {
          write_line(count += gained);
        }
      }
      repeat_line();  // `_count` is the `+Inf` bucket
      write_line(std::bit_cast<double>(*word));
    } else if (plan.kind == MetricKind::kCounter &&
               plan.number == CounterNumber::kInteger) {
      write_line(*word);
    } else {
      write_line(std::bit_cast<double>(*word));
    }
  }
  write_prefix();
  return {page.get(), static_cast<std::size_t>(out - page.get())};
}

TextFormat::TextFormat(TextFormatOptions options)
    : state_(std::make_unique<State>()) {
  state_->options = options;
}
TextFormat::TextFormat(TextFormat&&) noexcept = default;
TextFormat& TextFormat::operator=(TextFormat&&) noexcept = default;
TextFormat::~TextFormat() = default;

std::string_view TextFormat::render(const Snapshot& snapshot) {
  if (snapshot.schema == nullptr) return {};
  if (snapshot.schema != state_->schema) state_->prepare(snapshot.schema);
  return state_->write(snapshot.words);
}

std::string_view TextFormat::render(const Registry& registry) {
  registry.snapshot(state_->snapshot);
  return render(state_->snapshot);
}

}  // namespace vllm_metrics::inline v0
