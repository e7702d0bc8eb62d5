#pragma once

#include <memory>

#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/primitives/counter.h"
#include "vllm_metrics/registry/registry.h"

inline constexpr auto kType = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr auto kPage =
    "# HELP tokens_total Tokens.\n"
    "# TYPE tokens_total counter\n"
    "tokens_total 3.0\n";

// A registry with one counter at 3, and its endpoint on a free port.
struct Served {
  explicit Served(vllm_metrics::http::ExposerOptions options = {})
      : tokens(*registry->add_counter({.name = "tokens", .help = "Tokens."})) {
    options.port = 0;
    options.process_metrics = false;
    options.self_metrics = false;
    tokens->inc(3);
    exposer = *vllm_metrics::http::Exposer::start(registry, options);
  }
  int port() const { return exposer->port(); }

  std::shared_ptr<vllm_metrics::Registry> registry =
      vllm_metrics::Registry::create();
  vllm_metrics::Handle<vllm_metrics::Counter> tokens;
  std::unique_ptr<vllm_metrics::http::Exposer> exposer;
};
