#pragma once

namespace vllm_metrics::bench {

// What a step takes of an engine that is pushed to an OpenTelemetry collector,
// as a multiple of the same step without. Two requests end in each step; one in
// a hundred becomes a span.
struct PushedStep {
  double metrics = 0.0;  // the metrics exporter alone
  double spans = 0.0;    // both exporters
  // Both, with a collector that takes requests and never answers, and more
  // spans than the queue holds.
  double blocked = 0.0;
  // Its 99th percentile, as a multiple of that with a collector that answers.
  double blocked_p99 = 0.0;
};

// Over HTTP on loopback, ten exports a second. Ends the program when the
// collector was not reached.
PushedStep time_pushed_step();

}  // namespace vllm_metrics::bench
