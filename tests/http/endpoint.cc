// An endpoint for tests that are written in Python: its arguments are options
// of ExposerOptions as name=value. Prints its URL, or why there is none, and
// serves until its standard input ends.

#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

namespace http = vllm_metrics::http;

int main(int argc, char** argv) {
  http::ExposerOptions options{.port = 0};
  int series = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    const auto name = argument.substr(0, equals);
    const auto value = argument.substr(equals + 1);
    if (name == "address") options.address = value;
    if (name == "tls_certificate.file") options.tls_certificate.file = value;
    if (name == "tls_certificate.text") options.tls_certificate.text = value;
    if (name == "tls_key.file") options.tls_key.file = value;
    if (name == "tls_key.text") options.tls_key.text = value;
    if (name == "bearer_token")
      options.bearer_tokens.push_back({.text = value});
    if (name == "user") options.basic_logins.push_back({.user = value});
    if (name == "password") options.basic_logins.back().password.text = value;
    if (name == "series") series = std::stoi(value);
    if (name == "request_timeout_ms") {
      options.request_timeout = std::chrono::milliseconds(std::stoi(value));
    }
  }
  const auto registry = vllm_metrics::Registry::create();
  const auto tokens =
      *registry->add_counter({.name = "tokens", .help = "Tokens."});
  tokens->inc(3);
  std::vector<vllm_metrics::Handle<vllm_metrics::Counter>> large;
  for (int i = 0; i < series; ++i) {
    large.push_back(
        *registry->add_counter({.name = "large", .help = "A large family."},
                               {{"id", std::to_string(i)}}));
  }
  const auto exposer = http::Exposer::start(registry, options);
  if (!exposer.ok()) {
    std::cout << exposer.status().message() << std::endl;
    return 1;
  }
  std::cout << (*exposer)->url() << std::endl;
  std::cin.ignore(1'000'000, '\0');
}
