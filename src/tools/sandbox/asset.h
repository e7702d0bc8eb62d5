#pragma once

#include <span>
#include <string_view>

namespace vllm_metrics::sandbox {

// A file of the page, built from web/ and compiled into the program.
struct Asset {
  std::string_view path;  // where it is served
  std::string_view content_type;
  std::string_view bytes;
};

std::span<const Asset> assets();

}  // namespace vllm_metrics::sandbox
