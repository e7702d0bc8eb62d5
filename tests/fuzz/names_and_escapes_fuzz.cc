// Any bytes as the name and HELP of a family and as a label: refused, or on the
// page and read back as they were.
// Covers: src/registry/labels.cc src/registry/family.cc
// Covers: src/exposition/text_escape.cc

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/require.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/registry/registry.h"

namespace {

using namespace vllm_metrics;

// Four texts with a zero byte between them; the last may have more.
std::array<std::string, 4> split(std::string_view input) {
  std::array<std::string, 4> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end =
        i + 1 == parts.size() ? std::string_view::npos : input.find('\0');
    parts[i] = input.substr(0, end);
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
  }
  return parts;
}

void check_page(const Family& family, const Label& label) {
  const auto registry = Registry::create();
  const auto gauge = registry->add_gauge(family, {label, {"another", "value"}});
  if (!gauge.ok()) return;
  const std::string text(TextFormat().render(*registry));
  const auto page = parse_page(text, {.format = PageFormat::kText});
  require(page.ok());
  require(page->families.size() == 1);
  require(page->families[0].name == family.name);
  require(page->families[0].help == valid_utf8(family.help));
  const PageSeries& series = page->families[0].series.at(0);
  bool found = false;
  for (const PageLabel& read : series.labels)
    found = found ||
            (read.name == label.name && read.value == valid_utf8(label.value));
  require(found);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto [name, help, label_name, label_value] =
      split({reinterpret_cast<const char*>(data), size});
  require(valid_utf8(valid_utf8(help)) == valid_utf8(help));
  const Label label{label_name, label_value};
  for (const MetricKind kind :
       {MetricKind::kCounter, MetricKind::kGauge, MetricKind::kHistogram}) {
    const Family family{.name = name, .help = help, .kind = kind, .info = true};
    const auto status = check_family(family);
    const std::string text = status.ToString();
    require(valid_utf8(text) == text);
    require(!name_of(kind).empty());
    const Family once = normalized(family);
    require(check_family(family).ok() || !status.ok());
    require(once.help == valid_utf8(help));
    const auto labels = check_labels(name, {label, label}, "le");
    require(!labels.ok());
    require(valid_utf8(labels.ToString()) == labels.ToString());
  }
  check_page({.name = name, .help = help}, label);
  return 0;
}
