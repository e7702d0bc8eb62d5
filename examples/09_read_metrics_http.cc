// How do I read a value back, here or from somebody's page?
//
// In the process from the registry; from another server by fetching its page,
// with libcurl here. `example_09_read_metrics_http URL` looks twice at that
// page, a second apart; without URL the program serves one and reads that.

#include <curl/curl.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "vllm_metrics/exposition/metric_reader.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace {

using namespace vllm_metrics;

// The body of `url`; empty when it cannot be had.
std::string fetch(const std::string& url) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(
      curl_easy_init(), curl_easy_cleanup);
  std::string body;
  if (curl == nullptr) return body;
  const auto append =
      +[](char* data, std::size_t, std::size_t size, std::string* out) {
        out->append(data, size);
        return size;
      };
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 10L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  if (curl_easy_perform(curl.get()) != CURLE_OK) body.clear();
  return body;
}

// [read_page]
// Any server's page, text or OpenMetrics. The reader's values are its own, so
// `body` may go.
absl::StatusOr<MetricReader> read(const std::string& url) {
  const std::string body = fetch(url);
  if (body.empty()) return absl::UnavailableError("no page at " + url);
  const auto page = parse_page(body, {.mode = ParseOptions::Mode::kTolerant});
  for (const PageFault& fault : page->faults)
    std::cerr << url << ':' << fault.line << ": " << fault.message << '\n';
  return MetricReader(*page, "vllm:");
}
// [/read_page]

// [between]
void print_between(const MetricReader& before, const MetricReader& after,
                   double seconds) {
  const Labels engine = {{"engine", "0"}};
  const auto first = before.counter("vllm:generation_tokens", engine);
  const auto last = after.counter("vllm:generation_tokens", engine);
  if (first && last)
    std::cout << "tokens per second " << rate(*first, *last, seconds) << '\n';

  constexpr auto kLatency = "vllm:inter_token_latency_seconds";
  const HistogramValue* const then = before.histogram(kLatency, engine);
  const HistogramValue* const now = after.histogram(kLatency, engine);
  if (then == nullptr || now == nullptr) return;
  const HistogramValue between = increase(*then, *now);
  std::cout << "latency mean " << mean(between) << " s, p50 "
            << quantile(0.5, between) << " s, p99 " << quantile(0.99, between)
            << " s\n";
}
// [/between]

void decode_steps(StatLoggerManager& manager, int steps, double latency) {
  const SchedulerStats scheduler{.num_running_reqs = 8};
  IterationStats iteration{.num_generation_tokens = 8};
  iteration.inter_token_latencies_iter.assign(8, latency);
  for (int i = 0; i < steps; ++i) manager.record(&scheduler, &iteration);
}

int read_own() {
  const auto manager = StatLoggerManager::create(
      {.model_name = "tiny-1b", .max_model_len = 4096});
  if (!manager.ok()) return 1;
  const auto endpoint = http::Exposer::start(
      (*manager)->registry(), {.address = "127.0.0.1", .port = 0});
  if (!endpoint.ok()) {
    std::cerr << endpoint.status() << '\n';
    return 1;
  }
  decode_steps(**manager, 100, 0.3);  // a slow start
  const auto before = read((*endpoint)->url());
  decode_steps(**manager, 50, 0.02);
  const auto after = read((*endpoint)->url());
  if (!before.ok() || !after.ok()) return 1;
  print_between(*before, *after, 2.0);

  // [read_registry]
  const MetricReader here(*(*manager)->registry());
  if (const auto running = here.gauge("vllm:num_requests_running"))
    std::cout << "running " << *running << '\n';
  for (const MetricValue* reason : here.select("vllm:request_success")) {
    std::cout << "ended by " << reason->labels[1].value << ": "
              << std::get<CounterValue>(reason->value).whole << '\n';
  }
  // [/read_registry]
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return read_own();
  const auto before = read(argv[1]);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto after = read(argv[1]);
  if (!before.ok() || !after.ok()) {
    std::cerr << (before.ok() ? after : before).status() << '\n';
    return 1;
  }
  print_between(*before, *after, 1.0);
  return 0;
}
