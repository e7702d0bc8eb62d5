// vllm-metrics-doctor: reads two metrics pages of a server and tells what holds
// it back.
//
// Exit status: 0 healthy or idle, 1 something was found, 2 cannot tell.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "src/tools/doctor/diagnosis.h"
#include "src/tools/doctor/doctor_options.h"
#include "src/tools/doctor/page_pair.h"
#include "src/tools/doctor/page_source.h"
#include "src/tools/doctor/report_json.h"
#include "src/tools/doctor/report_text.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/version.h"

namespace vllm_metrics::doctor {
namespace {

constexpr int kHealthy = 0;
constexpr int kFound = 1;
constexpr int kCannotTell = 2;

// A page and the bytes it points into.
struct SavedPage {
  std::string text;
  Page page;
};

absl::StatusOr<std::unique_ptr<SavedPage>> parsed(const std::string& name,
                                                  std::string text) {
  auto saved = std::make_unique<SavedPage>();
  saved->text = std::move(text);
  if (!saved->text.empty() && saved->text.back() != '\n')
    return absl::InvalidArgumentError(
        name +
        ": the page ends in the middle of a line: it is cut short, or "
        "is no metrics page");
  auto page = parse_page(saved->text);
  if (!page.ok())
    return absl::InvalidArgumentError(fmt::format(
        "{}: no metrics page: {}", name, std::string(page.status().message())));
  saved->page = *std::move(page);
  return saved;
}

absl::StatusOr<std::unique_ptr<SavedPage>> scraped(const std::string& url) {
  auto text = fetch(url);
  if (!text.ok()) return text.status();
  return parsed(url, *std::move(text));
}

// The pages of one moment.
struct Moment {
  std::unique_ptr<SavedPage> server = {};
  std::unique_ptr<SavedPage> gpus = {};
  std::chrono::steady_clock::time_point time = {};

  const Page* page() const { return server ? &server->page : nullptr; }
  const Page* gpu_page() const { return gpus ? &gpus->page : nullptr; }
};

absl::StatusOr<Moment> scrape(const DoctorOptions& options) {
  Moment moment;
  auto server = scraped(options.url);
  if (!server.ok()) return server.status();
  moment.time = std::chrono::steady_clock::now();
  moment.server = *std::move(server);
  if (!options.dcgm.empty()) {
    auto gpus = scraped(options.dcgm);
    if (!gpus.ok()) return gpus.status();
    moment.gpus = *std::move(gpus);
  }
  return moment;
}

absl::StatusOr<Moment> load(const std::string& path) {
  Moment moment;
  if (path.empty()) return moment;
  auto text = read_file(path);
  if (!text.ok()) return text.status();
  auto server = parsed(path, *std::move(text));
  if (!server.ok()) return server.status();
  moment.server = *std::move(server);
  return moment;
}

TextStyle terminal_style() {
  TextStyle style;
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0) return style;
  style.color = std::getenv("NO_COLOR") == nullptr;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = size.ws_col;
  return style;
}

int complain(const absl::Status& status) {
  std::cerr << "vllm-metrics-doctor: " << std::string(status.message()) << '\n';
  return kCannotTell;
}

// Writes what two moments say. The exit status is the gravest of the models'.
int report(const DoctorOptions& options, const Moment& before,
           const Moment& after, std::optional<double> measured) {
  const auto readings = read_pages({.before = before.page(),
                                    .after = after.page(),
                                    .stated_elapsed = options.elapsed,
                                    .measured_elapsed = measured,
                                    .gpus_before = before.gpu_page(),
                                    .gpus_after = after.gpu_page()});
  if (!readings.ok()) return complain(readings.status());
  int status = kHealthy;
  std::string text;
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const Reading& reading : *readings) {
    const Diagnosis diagnosis = diagnose(reading, options.objectives);
    if (diagnosis.state == State::kUnknown) status = kCannotTell;
    if (diagnosis.state == State::kFindings && status == kHealthy)
      status = kFound;
    if (options.json) {
      models.push_back(report_json(reading, diagnosis));
    } else {
      if (!text.empty()) text += '\n';
      text += report_text(reading, diagnosis, terminal_style());
    }
  }
  if (options.json) {
    text = nlohmann::ordered_json{{"models", std::move(models)}}.dump(
               options.watch ? -1 : 2) +
           '\n';
  } else if (options.watch && isatty(STDOUT_FILENO) != 0) {
    std::cout << "\033[H\033[2J";
  } else if (options.watch) {
    text += '\n';
  }
  std::cout << text << std::flush;
  return status;
}

// Sleeps; false when a signal came.
bool wait(double seconds) {
  const timespec time = {
      static_cast<time_t>(seconds),
      static_cast<long>(
          (seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
  return nanosleep(&time, nullptr) == 0;
}

int run_on_server(const DoctorOptions& options) {
  auto before = scrape(options);
  if (!before.ok()) return complain(before.status());
  for (;;) {
    if (!options.json && isatty(STDERR_FILENO) != 0 && !options.watch)
      std::cerr << fmt::format("Reading again in {} s ...\n", options.interval);
    if (!wait(options.interval)) return kHealthy;
    auto after = scrape(options);
    if (!after.ok()) return complain(after.status());
    const std::chrono::duration<double> elapsed = after->time - before->time;
    const int status = report(options, *before, *after, elapsed.count());
    if (!options.watch || !std::cout) return status;
    before = std::move(after);
  }
}

int run_on_files(const DoctorOptions& options) {
  auto before = load(options.from);
  if (!before.ok()) return complain(before.status());
  auto after = load(options.to);
  if (!after.ok()) return complain(after.status());
  return report(options, *before, *after, {});
}

int run(int argc, char** argv) {
  const auto options =
      parse_options(std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
  if (!options.ok()) {
    complain(options.status());
    std::cerr << "Try --help.\n";
    return kCannotTell;
  }
  if (options->help) {
    std::cout << kUsage;
    return kHealthy;
  }
  if (options->version) {
    std::cout << "vllm-metrics-doctor " << version() << '\n';
    return kHealthy;
  }
  return options->url.empty() ? run_on_files(*options)
                              : run_on_server(*options);
}

}  // namespace
}  // namespace vllm_metrics::doctor

int main(int argc, char** argv) {
  try {
    return vllm_metrics::doctor::run(argc, argv);
  } catch (const std::exception& error) {  // memory
    std::cerr << "vllm-metrics-doctor: " << error.what() << '\n';
    return vllm_metrics::doctor::kCannotTell;
  }
}
