// vllm-metrics-docgen: the reference of all metrics, from the catalogue.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "src/tools/docgen/otlp_reference.h"
#include "src/tools/docgen/reference.h"
#include "vllm_metrics/version.h"

namespace {

constexpr std::string_view kHelp =
    R"(vllm-metrics-docgen [--json | --otlp | --check FILE]

Writes the reference of all metrics to standard output: Markdown, which is
docs/metrics.md, or with --json the same for programs.

  --otlp         Markdown, which is docs/opentelemetry_metrics.md: what they are
                 called in OpenTelemetry
  --json         JSON: {"metrics": [...], "gone": [...]}
  --check FILE   write nothing; exit with 1 when FILE is not the Markdown that
                 would be written
  --version      print the version
  --help         print this

Exit status: 0 done; 1 FILE differs or cannot be read; 2 wrong arguments.
)";

int check(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "vllm-metrics-docgen: %s: cannot be read\n", path);
    return 1;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text == vllm_metrics::docgen::reference_page()) return 0;
  std::fprintf(stderr,
               "vllm-metrics-docgen: %s is stale; write it anew: "
               "vllm-metrics-docgen > %s\n",
               path, path);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view flag = argc > 1 ? argv[1] : "";
  if (argc == 1)
    return std::fputs(vllm_metrics::docgen::reference_page().c_str(), stdout) <
                   0
               ? 1
               : 0;
  if (argc == 2 && flag == "--otlp")
    return std::fputs(vllm_metrics::docgen::otlp_page().c_str(), stdout) < 0
               ? 1
               : 0;
  if (argc == 2 && flag == "--json")
    return std::puts(vllm_metrics::docgen::reference_json().dump(2).c_str()) < 0
               ? 1
               : 0;
  if (argc == 3 && flag == "--check") return check(argv[2]);
  if (argc == 2 && flag == "--version")
    return std::puts(VLLM_METRICS_VERSION) < 0 ? 1 : 0;
  if (argc == 2 && flag == "--help")
    return std::fputs(kHelp.data(), stdout) < 0 ? 1 : 0;
  std::fputs(kHelp.data(), stderr);
  return 2;
}
