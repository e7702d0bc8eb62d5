#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/http/connection_table.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::http {

// What the endpoint says about itself, the families vllm_metrics_http_* of the
// catalogue. Label values come from closed sets and from the endpoint's own
// address, none from a client.
//
// Thread-safety: one thread.
class EndpointMetrics {
 public:
  // Nothing when the series are on the page already, as those of another
  // endpoint with that address.
  static std::optional<EndpointMetrics> add_to(Registry& registry,
                                               const std::string& address);

  void count_answer(unsigned int status) noexcept;
  void count_body(std::size_t bytes) noexcept { bytes_->inc(bytes); }
  void observe_render(std::chrono::duration<double> time) noexcept {
    render_->observe(time.count());
  }
  void count_end(ConnectionTable::End end) noexcept;
  void count_accept_error() noexcept { accept_errors_->inc(); }
  void connections(std::size_t open) noexcept {
    connections_->set(static_cast<double>(open));
  }

 private:
  using Counters = std::vector<Handle<Counter>>;
  EndpointMetrics(Counters answers, Handle<Counter> bytes,
                  Handle<Histogram> render, Handle<Gauge> connections,
                  Counters ends, Handle<Counter> accept_errors);

  Counters answers_;  // by the catalogue's codes
  Handle<Counter> bytes_;
  Handle<Histogram> render_;
  Handle<Gauge> connections_;
  Counters ends_;  // by the catalogue's reasons
  Handle<Counter> accept_errors_;
};

}  // namespace vllm_metrics::inline v0::http
