#pragma once

#include <string>
#include <vector>

namespace vllm_metrics::bench {

// A quotient of two costs, and what it is held to.
struct Ratio {
  std::string name;
  double value;
  double target;
  bool at_least = false;

  bool met() const { return at_least ? value >= target : value <= target; }
};
using Ratios = std::vector<Ratio>;

// Prints the table, then a line `ratio NAME VALUE` each, which also go to a
// file, if it has a name. False: it could not be written.
bool tell(const Ratios& ratios, const char* file_name);

}  // namespace vllm_metrics::bench
