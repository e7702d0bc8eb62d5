#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "engines.h"
#include "step_data.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {

// Some engines after 200 steps each, on our page and on prometheus-cpp's.
class PageUnderTest {
 public:
  explicit PageUnderTest(std::size_t engines)
      : manager_(make_manager(prometheus_only(engines))) {
    const auto steps = make_steps({});
    Snapshot snapshot;
    registry().snapshot(snapshot);
    prometheus_cpp_ =
        std::make_unique<PrometheusCppPage>(*snapshot.schema, engines);
    for (std::size_t engine = 0; engine < engines; ++engine) {
      for (std::size_t i = 0; i < 200; ++i) {
        const Step& step = steps[(i + engine) % steps.size()];
        record(*manager_, step, engine);
        prometheus_cpp_->record(step.flat, engine);
      }
    }
    text_ = TextFormat().render(registry());
  }

  const Registry& registry() const { return *manager_->registry(); }
  const PrometheusCppPage& prometheus_cpp() const { return *prometheus_cpp_; }
  const std::string& text() const { return text_; }

 private:
  std::unique_ptr<StatLoggerManager> manager_;
  std::unique_ptr<PrometheusCppPage> prometheus_cpp_;
  std::string text_;
};

// What no reader of a page can do without: its bytes moved once, and the end of
// each line found. `copy` is as long as `page`.
inline std::size_t copy_and_count_lines(std::string_view page,
                                        std::string& copy) {
  std::memcpy(copy.data(), page.data(), page.size());
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = copy.find('\n', at)) != std::string::npos;
       ++at)
    ++lines;
  return lines;
}

}  // namespace vllm_metrics::bench
