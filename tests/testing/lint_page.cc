// Prints what lint() has to say of the page in file argv[1], a line each:
// metric, rule and text, with tabs between.

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/testing/lint.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto page = vllm_metrics::parse_page(text);
  if (!page.ok()) {
    std::cerr << page.status().message() << '\n';
    return 1;
  }
  for (const auto& remark : vllm_metrics::testing::lint(*page)) {
    std::cout << remark.metric << '\t' << remark.rule << '\t' << remark.text
              << '\n';
  }
}
