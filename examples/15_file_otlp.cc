// How do I write OpenTelemetry's data into a file?
//
// For machines without a way to a collector, and for tests: each export is a
// line of JSON at the end of a file.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/otlp/metrics_exporter.h"

int main() {
  using namespace vllm_metrics;
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.default_loggers = false;
  const auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }
  std::string folder =
      (std::filesystem::temp_directory_path() / "otlp-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;

  // [file]
  otlp::Options write;
  write.metrics_file = folder + "/metrics.jsonl";  // its folder is there
  write.file_max_bytes = 64 << 20;                 // then metrics.jsonl.1
  write.service_name = "tiny-1b-server";
  auto exporter = otlp::MetricsExporter::start((*manager)->registry(), write);
  // [/file]
  if (!exporter.ok()) {
    std::cerr << exporter.status() << '\n';
    return 1;
  }
  const IterationStats step{.num_generation_tokens = 8};
  (*manager)->record(nullptr, &step);
  const bool written = (*exporter)->flush();
  (*exporter)->shutdown();

  std::ifstream file(*write.metrics_file);
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  std::cout << "written: " << written << ", lines: " << lines << '\n';
  std::filesystem::remove_all(folder);
  return written && lines == 2 ? 0 : 1;
}
