#include "vllm_metrics/testing/lint.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0::testing {
namespace {

// What is looked at of a family.
struct Linted {
  std::string name;
  std::string_view help;
  PageKind kind;
  std::set<std::string> label_names = {};
};

struct Unit {
  std::string_view name;
  std::string_view base;
};
constexpr Unit kUnits[] = {
    {"amperes", "amperes"}, {"bytes", "bytes"},        {"celsius", "celsius"},
    {"grams", "grams"},     {"joules", "joules"},      {"kelvin", "kelvin"},
    {"meters", "meters"},   {"metres", "metres"},      {"seconds", "seconds"},
    {"volts", "volts"},     {"minutes", "seconds"},    {"hours", "seconds"},
    {"days", "seconds"},    {"weeks", "seconds"},      {"kelvins", "kelvin"},
    {"rankine", "celsius"}, {"fahrenheit", "celsius"}, {"inches", "meters"},
    {"yards", "meters"},    {"miles", "meters"},       {"bits", "bytes"},
    {"calories", "joules"}, {"pounds", "grams"},       {"ounces", "grams"},
};
// promtool has `mibi` where it means `mebi`.
constexpr std::string_view kPrefixes[] = {
    "",     "pico",  "nano", "micro", "milli", "centi", "deci",
    "deca", "hecto", "kilo", "kibi",  "mega",  "mebi",  "mibi",
    "giga", "gibi",  "tera", "tebi",  "peta",  "pebi"};
constexpr std::string_view kAbbreviations[] = {"s",  "ms", "us", "ns", "sec",
                                               "b",  "kb", "mb", "gb", "tb",
                                               "pb", "m",  "h",  "d"};
constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram",
                                       "summary", "gauge_histogram"};
constexpr std::string_view kPercents[] = {"percent", "percentage", "perc"};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

// Has `word` between underscores, or at the end behind one.
bool has_word(std::string_view name, std::string_view word) {
  for (auto at = name.find(word); at != name.npos;
       at = name.find(word, at + 1)) {
    const auto end = at + word.size();
    if (at > 0 && name[at - 1] == '_' &&
        (end == name.size() || name[end] == '_')) {
      return true;
    }
  }
  return false;
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (;;) {
    const auto end = name.find('_');
    words.push_back(name.substr(0, end));
    if (end == name.npos) return words;
    name.remove_prefix(end + 1);
  }
}

bool is_camel_case(std::string_view name) {
  return std::ranges::adjacent_find(name, [](char a, char b) {
           return a >= 'a' && a <= 'z' && b >= 'A' && b <= 'Z';
         }) != name.end();
}

class Linter {
 public:
  explicit Linter(std::span<const LintException> exceptions)
      : exceptions_(exceptions) {}

  void look_at(const Linted& family) {
    name_ = family.name;
    if (family.help.empty())
      remark("help", "has no help; expected: a sentence");
    check_suffix(family);
    check_words(family);
    check_labels(family);
  }
  std::vector<LintRemark> take() { return std::move(remarks_); }

 private:
  void remark(std::string_view rule, std::string text) {
    const auto is_allowed = [&](const LintException& exception) {
      return exception.metric == name_ &&
             (exception.rule.empty() || exception.rule == rule);
    };
    if (std::ranges::any_of(exceptions_, is_allowed)) return;
    remarks_.push_back(
        {name_, std::string(rule), name_ + " " + std::move(text)});
  }

  void check_suffix(const Linted& family) {
    if (family.kind == PageKind::kUntyped) return;
    const bool ends_in_total = family.name.ends_with("_total");
    if ((family.kind == PageKind::kCounter) != ends_in_total) {
      remark("total", ends_in_total
                          ? "ends in _total; expected: only counters do"
                          : "is a counter; expected: _total at its end");
    }
    const bool is_histogram = family.kind == PageKind::kHistogram ||
                              family.kind == PageKind::kGaugeHistogram;
    const bool has_count = is_histogram || family.kind == PageKind::kSummary;
    for (const std::string_view suffix : {"_bucket", "_count", "_sum"}) {
      const bool has_it = suffix == "_bucket" ? is_histogram : has_count;
      if (!has_it && family.name.ends_with(suffix)) {
        remark("suffix", "ends in " + std::string(suffix) +
                             ", as samples of other kinds do");
      }
    }
  }

  void check_words(const Linted& family) {
    const std::string lower = lower_case(family.name);
    for (const std::string_view type : kTypes) {
      if (has_word(lower, type)) {
        remark("type_in_name",
               "says " + std::string(type) + "; expected: TYPE alone does");
      }
    }
    for (const std::string_view word : words_of(family.name)) check_unit(word);
    for (const std::string_view unit : kAbbreviations) {
      if (has_word(lower, unit)) {
        remark("abbreviation", "has the unit " + std::string(unit) +
                                   "; expected: units in full");
      }
    }
    for (const std::string_view percent : kPercents) {
      if (has_word(lower, percent)) {
        remark("ratio", "is in percent; expected: a ratio of 0 to 1");
      }
    }
    if (family.name.find(':') != std::string::npos) {
      remark("colon", "has a colon; expected: only recording rules have");
    }
    if (is_camel_case(family.name)) {
      remark("case", "is in camelCase; expected: snake_case");
    }
  }

  void check_unit(std::string_view word) {
    for (const Unit& unit : kUnits) {
      if (!word.ends_with(unit.name)) continue;
      const std::string_view prefix =
          word.substr(0, word.size() - unit.name.size());
      if (std::ranges::count(kPrefixes, prefix) == 0) continue;
      if (prefix.empty() && unit.base == unit.name) continue;
      remark("base_unit", "is in " + std::string(word) +
                              "; expected: " + std::string(unit.base));
    }
  }

  void check_labels(const Linted& family) {
    for (const std::string& label : family.label_names) {
      const bool is_others = family.kind != PageKind::kUntyped &&
                             (label == "le" || label == "quantile");
      if (is_others || label.starts_with("__")) {
        remark("label", "has the label " + label +
                            "; expected: a name that is not reserved");
      }
      if (is_camel_case(label)) {
        remark("case", "has the label " + label + "; expected: snake_case");
      }
    }
  }

  std::span<const LintException> exceptions_;
  std::string name_;
  std::vector<LintRemark> remarks_;
};

PageKind page_kind(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return PageKind::kCounter;
    case MetricKind::kGauge:
      return PageKind::kGauge;
    case MetricKind::kHistogram:
      return PageKind::kHistogram;
  }
  return PageKind::kUntyped;
}

std::string text_name(std::string_view name, bool is_counter) {
  return std::string(name) + (is_counter ? "_total" : "");
}

}  // namespace

std::vector<LintRemark> lint(const Page& page,
                             std::span<const LintException> exceptions) {
  Linter linter(exceptions);
  for (const PageFamily& family : page.families) {
    // OpenMetrics has no `_total` in a family's name, but in its samples'.
    const bool adds_total = page.format == PageFormat::kOpenMetrics &&
                            family.kind == PageKind::kCounter;
    Linted linted{.name = text_name(family.name, adds_total),
                  .help = family.help,
                  .kind = family.kind};
    for (const PageSeries& series : family.series) {
      for (const PageLabel& label : series.labels)
        linted.label_names.emplace(label.name);
    }
    linter.look_at(linted);
  }
  return linter.take();
}

std::vector<LintRemark> lint(const Registry& registry,
                             std::span<const LintException> exceptions) {
  Linter linter(exceptions);
  Snapshot snapshot;
  registry.snapshot(snapshot);
  for (const auto& [family, all_series] : snapshot.schema->families) {
    Linted linted{
        .name = text_name(family.name, family.kind == MetricKind::kCounter),
        .help = family.help,
        .kind = page_kind(family.kind)};
    for (const Series& series : all_series) {
      for (const Label& label : series.labels)
        linted.label_names.insert(std::string(label.name));
    }
    linter.look_at(linted);
  }
  return linter.take();
}

std::vector<LintException> vllm_exceptions() {
  std::vector<LintException> exceptions;
  for (const MetricSpec& spec : catalogue()) {
    const std::string name =
        text_name(spec.name, spec.kind == MetricKind::kCounter);
    if (spec.name.starts_with("vllm:")) {
      exceptions.push_back({name, "colon", "vLLM's names begin with vllm:"});
    }
    if (!spec.note.empty()) {
      exceptions.push_back({name, "", std::string(spec.note)});
    }
  }
  return exceptions;
}

}  // namespace vllm_metrics::inline v0::testing
