// Ways of using the library until the end, for endings_test.py.

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/shm/shared_registry.h"

namespace {

using namespace vllm_metrics;  // NOLINT

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  ::_exit(3);
}

template <class T>
T value_of(absl::StatusOr<T> made) {
  if (!made.ok()) give_up(made.status().ToString());
  return *std::move(made);
}

// An engine's process, whose series others may share.
struct Server {
  std::unique_ptr<shm::SharedRegistry> shared =
      value_of(shm::SharedRegistry::create());
  std::shared_ptr<Registry> registry = shared->registry();
  std::unique_ptr<StatLoggerManager> manager = [this] {
    StatLoggerOptions options;
    options.model_name = "m";
    options.max_model_len = 1024;
    options.registry = registry;
    return value_of(StatLoggerManager::create(std::move(options)));
  }();
  std::unique_ptr<http::Exposer> exposer =
      value_of(http::Exposer::start(registry, {.port = 0}));

  void step() const {
    IterationStats iteration;
    iteration.prompt_token_stats.total = 1;
    iteration.time_to_first_tokens_iter.push_back(0.1);
    manager->record(nullptr, &iteration);
  }
  double steps() const {
    const std::string page(TextFormat().render(*registry));
    constexpr std::string_view kName =
        "\nvllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} ";
    const std::size_t at = page.find(kName);
    return at == std::string::npos
               ? -1.0
               : std::strtod(page.c_str() + at + kName.size(), nullptr);
  }
};

int everything() {
  const Server server;
  const auto counter =
      value_of(server.registry->add_counter({.name = "c", .help = "A."}));
  server.step();
  const pid_t child = ::fork();
  if (child == 0) {
    server.step();
    counter->inc();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  server.manager->log();
  return server.steps() == 2.0 ? 0 : 1;
}

// Statics that use the library when it is on its way out: one that goes before
// the server, and one that goes after it.
int statics() {
  static struct After {
    std::optional<Handle<Counter>> counter;
    ~After() {
      (*counter)->inc();
      std::printf("after: %d\n", static_cast<int>((*counter)->value()));
    }
  } after;
  static Server server;
  after.counter =
      value_of(server.registry->add_counter({.name = "c", .help = "A."}));
  static struct Before {
    ~Before() {
      server.step();
      server.manager->log();
      std::printf("before: %g\n", server.steps());
    }
  } before;
  static_cast<void>(before);
  server.step();
  return 0;
}

// Exits, with clients at the endpoint, when standard input ends.
int exit_while_scraped(bool is_destroyed) {
  static std::unique_ptr<Server> destroyed;
  static Server* leaked = nullptr;
  auto server = std::make_unique<Server>();
  std::printf("%s\n", server->exposer->url().c_str());
  std::fflush(stdout);
  if (is_destroyed) {
    destroyed = std::move(server);
  } else {
    leaked = server.release();
    // Records beyond all destructors.
    std::thread([] {
      for (;;) leaked->step();
    }).detach();
  }
  while (std::getchar() != EOF) {
  }
  std::exit(0);
}

std::atomic<int> alarms{0};
std::optional<Handle<Counter>> counter;
std::optional<Handle<Histogram>> histogram;
std::optional<Handle<Gauge>> gauge;

void write_metrics() {
  (*counter)->inc();
  (*histogram)->observe(0.5);
  (*gauge)->set(1.0);
}

// A handler writes metrics, and interrupts all else every 0.2 ms.
int signals() {
  const Server server;
  const double bounds[] = {1.0};
  counter = value_of(server.registry->add_counter({.name = "c", .help = "A."}));
  gauge = value_of(server.registry->add_gauge({.name = "g", .help = "A."}));
  histogram = value_of(
      server.registry->add_histogram({.name = "h", .help = "A."}, bounds));
  struct sigaction action {};
  action.sa_handler = [](int) {
    write_metrics();
    alarms.fetch_add(1);
  };
  ::sigaction(SIGALRM, &action, nullptr);
  itimerval often{{0, 200}, {0, 200}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  int steps = 0;
  while (alarms < 300) {
    ++steps;
    server.step();
    write_metrics();
    if (server.steps() != steps) give_up("a page has not all steps");
    if (steps % 8 == 0) Server();
  }
  often = {};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  const auto wanted = static_cast<std::uint64_t>(alarms + steps);
  const std::string page(TextFormat().render(*server.registry));
  const bool has_all =
      (*counter)->value() == wanted &&
      page.find("\nh_count " + std::to_string(wanted) + ".0\n") !=
          std::string::npos &&
      page.find("\nh_sum " + std::to_string(wanted / 2)) != std::string::npos;
  counter.reset();
  histogram.reset();
  gauge.reset();
  if (!has_all) give_up(page);
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int run_mode(
    const char* mode) {
  const std::string_view wanted = mode;
  if (wanted == "everything") return everything();
  if (wanted == "statics") return statics();
  if (wanted == "exit_destroyed") return exit_while_scraped(true);
  if (wanted == "exit_leaked") return exit_while_scraped(false);
  if (wanted == "signals") return signals();
  return 2;
}
