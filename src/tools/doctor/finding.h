#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm_metrics::doctor {

// What speaks for a finding: a number from the pages and what it is held
// against.
struct Evidence {
  std::string metric = {};  // the family it comes from, or several
  std::string text = {};    // the number in words, with its unit
  double value = 0.0;       // the same, bare
};

// A parameter of the engine, its change, and what will move.
struct Lever {
  std::string_view parameter;
  std::string_view change;
  std::string_view moves;
};

enum class Confidence { kMedium, kHigh };

struct Finding {
  std::string_view id = {};     // of a classic case, e.g. "preemption-storm"
  std::string_view title = {};  // a sentence
  Confidence confidence = Confidence::kMedium;
  std::vector<Evidence> evidence = {};
  std::string cause = {};
  std::span<const Lever> levers = {};  // the first thing to try first
};

std::string_view name_of(Confidence confidence);  // "medium", "high"

}  // namespace vllm_metrics::doctor
