// vllm-metrics-replay: plays a recorded trace through the library and writes
// the page, the text records and the snapshot that an engine would have shown.
//
// Exit status: 0 done; 1 an output cannot be written; 2 the arguments or the
// trace are not as they should be.

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/tools/replay/log_file.h"
#include "src/tools/replay/snapshot_json.h"
#include "src/tools/replay/trace_player.h"
#include "src/tools/replay/trace_reader.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/registry/registry.h"
#ifdef VLLM_METRICS_HAS_SHM
#include "vllm_metrics/shm/shared_registry.h"
#endif
#include "vllm_metrics/version.h"

namespace vllm_metrics::replay {
namespace {

constexpr int kBadInput = 2;
constexpr int kFailure = 1;

constexpr std::string_view kUsage =
    R"(usage: vllm-metrics-replay [--page FILE] [--log FILE] [--snapshot FILE]
                           [--shared FOLDER] TRACE
       vllm-metrics-replay [--page FILE] --merge FOLDER

Plays TRACE (JSON Lines, trace format 1; - is standard input) through the
library and writes what an engine would have shown at its end.

  --page FILE      the text exposition; without it, to standard output
  --log FILE       the text records, `LEVEL text` a line, DEBUG ones too
  --snapshot FILE  JSON of the last `snapshot` event; of the end without one
  --shared FOLDER  as one of the processes that share FOLDER, which is made
                   if it is not there; the page then is that of all of them
  --merge FOLDER   no TRACE: the page of the processes that share FOLDER
  --version, --help

FILE may be - for standard output. Exit status: 0 done, 1 FILE cannot be
written, 2 the arguments or TRACE are wrong.
)";

struct Arguments {
  std::string page = "-";
  std::string log;
  std::string snapshot;
  std::string shared;
  std::string merge;
  std::string trace;
};

// A file that is written at once or while the trace plays.
class Output {
 public:
  // "-" is standard output, "" nowhere.
  explicit Output(std::string path) : path_(std::move(path)) {
    if (!path_.empty() && path_ != "-") file_.open(path_, std::ios::binary);
    if (path_.empty()) stream().setstate(std::ios::badbit);
  }

  bool wanted() const { return !path_.empty(); }
  std::ostream& stream() { return path_ == "-" ? std::cout : file_; }

  // False, with a message, when not everything could be written.
  bool is_good() {
    if (!wanted() || stream().flush()) return true;
    std::cerr << "vllm-metrics-replay: " << path_
              << ": cannot be written: " << std::strerror(errno) << '\n';
    return false;
  }

 private:
  std::string path_;
  std::ofstream file_;
};

std::optional<std::string> parse(int argc, char** argv, Arguments& out) {
  const struct {
    std::string_view name;
    std::string& value;
  } flags[] = {{"--page", out.page},
               {"--log", out.log},
               {"--snapshot", out.snapshot},
               {"--shared", out.shared},
               {"--merge", out.merge}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::string* value = nullptr;
    for (const auto& flag : flags) {
      if (flag.name == argument) value = &flag.value;
    }
    if (value != nullptr) {
      if (++i == argc) return std::string(argument) + " needs a FILE";
      *value = argv[i];
    } else if (argument.size() > 1 && argument.front() == '-') {
      return "there is no option " + std::string(argument);
    } else if (!out.trace.empty()) {
      return "one TRACE only, not also " + std::string(argument);
    } else {
      out.trace = argument;
    }
  }
  if (!out.merge.empty()) {
    const bool plays =
        !out.trace.empty() || !out.shared.empty() || !out.log.empty();
    if (plays) return "--merge plays no TRACE";
    return std::nullopt;
  }
  if (out.trace.empty()) return "TRACE is missing";
  return std::nullopt;
}

// Builds the loggers that the first line of a trace asks for.
absl::Status begin(const TraceEvent& config,
                   const std::shared_ptr<LogSink>& log_sink,
                   const std::shared_ptr<Registry>& registry,
                   std::unique_ptr<TracePlayer>& out) {
  auto player = TracePlayer::create(std::get<TraceConfig>(config.action),
                                    config.clocks, log_sink, registry);
  if (!player.ok()) return player.status();
  out = *std::move(player);
  if (!out->warning().empty()) {
    std::cerr << "vllm-metrics-replay: warning: " << out->warning() << '\n';
  }
  return absl::OkStatus();
}

// Plays the whole trace.
absl::StatusOr<std::unique_ptr<TracePlayer>> play(
    const std::string& path, const std::shared_ptr<LogSink>& log_sink,
    const std::shared_ptr<Registry>& registry) {
  auto reader = TraceReader::open(path);
  if (!reader.ok()) return reader.status();
  std::unique_ptr<TracePlayer> player;
  TraceEvent event;
  for (;;) {
    const absl::StatusOr<bool> more = reader->next(event);
    if (!more.ok()) return more.status();
    if (!*more) return player;
    const absl::Status status = player == nullptr
                                    ? begin(event, log_sink, registry, player)
                                    : player->play(event);
    if (!status.ok()) return reader->error_here(std::string(status.message()));
  }
}

// The registry that the arguments ask for; null: the player's own.
absl::StatusOr<std::shared_ptr<Registry>> open_registry(
    const Arguments& arguments) {
  if (arguments.shared.empty() && arguments.merge.empty()) return nullptr;
#ifdef VLLM_METRICS_HAS_SHM
  const bool merges = !arguments.merge.empty();
  auto shared = shm::SharedRegistry::create(
      {.folder = merges ? arguments.merge : arguments.shared,
       .read_only = merges});
  if (!shared.ok()) return shared.status();
  return (*shared)->registry();
#else
  return absl::UnimplementedError("built without VLLM_METRICS_SHM");
#endif
}

void write_snapshot(const TracePlayer* player, const Registry& registry,
                    std::ostream& out) {
  Snapshot end;
  const Snapshot* taken = player == nullptr ? nullptr : player->snapshot();
  if (taken == nullptr) registry.snapshot(end);
  out << snapshot_json(taken != nullptr ? *taken : end).dump(0) << '\n';
}

int run(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      std::cout << kUsage;
      return 0;
    }
    if (std::string_view(argv[i]) == "--version") {
      std::cout << "vllm-metrics-replay " << version() << '\n';
      return 0;
    }
  }
  Arguments arguments;
  if (const auto complaint = parse(argc, argv, arguments)) {
    std::cerr << "vllm-metrics-replay: " << *complaint << '\n' << kUsage;
    return kBadInput;
  }
  Output page(arguments.page);
  Output log(arguments.log);
  Output snapshot(arguments.snapshot);
  for (Output* output : {&page, &log, &snapshot}) {
    if (!output->is_good()) return kFailure;
  }
  const auto shared = open_registry(arguments);
  absl::StatusOr<std::unique_ptr<TracePlayer>> player(nullptr);
  if (shared.ok() && arguments.merge.empty()) {
    player =
        play(arguments.trace, std::make_shared<LogFile>(log.stream()), *shared);
  }
  for (const absl::Status& status : {shared.status(), player.status()}) {
    if (status.ok()) continue;
    std::cerr << "vllm-metrics-replay: " << status.message() << '\n';
    return kBadInput;
  }
  const Registry& registry =
      *player == nullptr ? **shared : (*player)->registry();
  page.stream() << TextFormat().render(registry);
  if (snapshot.wanted())
    write_snapshot(player->get(), registry, snapshot.stream());
  bool good = true;
  for (Output* output : {&page, &log, &snapshot}) {
    good = output->is_good() && good;
  }
  return good ? 0 : kFailure;
}

}  // namespace
}  // namespace vllm_metrics::replay

int main(int argc, char** argv) {
  try {
    return vllm_metrics::replay::run(argc, argv);
  } catch (const std::exception& error) {  // memory, a JSON library's surprise
    std::cerr << "vllm-metrics-replay: " << error.what() << '\n';
    return vllm_metrics::replay::kFailure;
  }
}
