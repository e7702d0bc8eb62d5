#include "ratio_table.h"

#include <cstdio>

namespace vllm_metrics::bench {

bool tell(const Ratios& ratios, const char* file_name) {
  std::printf("\n%-32s %8s    %s\n", "ratio", "value", "target");
  for (const Ratio& ratio : ratios) {
    std::printf("%-32.*s %8.2f    %s %g%s\n",
                static_cast<int>(ratio.name.size()), ratio.name.data(),
                ratio.value, ratio.at_least ? ">=" : "<=", ratio.target,
                ratio.met() ? "" : "    missed");
  }
  std::printf("\n");
  std::FILE* file = file_name != nullptr ? std::fopen(file_name, "w") : nullptr;
  for (const Ratio& ratio : ratios) {
    for (std::FILE* out : {stdout, file}) {
      if (out == nullptr) continue;
      std::fprintf(out, "ratio %.*s %.3f\n",
                   static_cast<int>(ratio.name.size()), ratio.name.data(),
                   ratio.value);
    }
  }
  if (file_name == nullptr) return true;
  if (file == nullptr || std::fclose(file) != 0) {
    std::perror(file_name);
    return false;
  }
  return true;
}

}  // namespace vllm_metrics::bench
