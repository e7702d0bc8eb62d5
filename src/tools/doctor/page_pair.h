#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "src/tools/doctor/reading.h"
#include "vllm_metrics/exposition/page.h"

namespace vllm_metrics::doctor {

// Two pages of one server, and what else is known of the time between them.
struct PagePair {
  const Page* before = nullptr;  // null: from the server's start
  const Page* after = nullptr;

  // Seconds between the pages, as the user says, and as they were measured; in
  // between comes the simulator's clock, which may run faster.
  std::optional<double> stated_elapsed = {};
  std::optional<double> measured_elapsed = {};

  // The GPUs' exporter (DCGM) at the same moments; null: not asked. The names
  // are also looked for on the pages themselves.
  const Page* gpus_before = nullptr;
  const Page* gpus_after = nullptr;
};

// A reading of each model, by name. Names of older versions of vLLM are known.
// A counter that fell was reset: it counts from 0 then, as in PromQL.
//
// Errors: InvalidArgument, saying why, for pages without a vllm: family, pages
// that are not of one server, and a page that is cut short.
absl::StatusOr<std::vector<Reading>> read_pages(const PagePair& pages);

}  // namespace vllm_metrics::doctor
