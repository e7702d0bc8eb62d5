#include "src/otlp/line_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "src/registry/unique_fd.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/otlp/metrics_exporter.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::otlp {
namespace {

// A folder of its own, gone at the end.
struct Folder {
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "lines-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  explicit Folder(std::filesystem::path made) : path(std::move(made)) {}
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name = "x.jsonl") const {
    return (path / name).string();
  }
  std::string text(const std::string& name = "x.jsonl") const {
    std::ifstream in(path / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& content) const {
    std::ofstream(path / "x.jsonl", std::ios::binary) << content;
  }
  std::filesystem::path path;
};

constexpr std::string_view kHead = "{\"r\":";
const std::string kOne = "{\"r\":1}\n";
const std::string kTwo = "{\"r\":2}\n";

TEST_CASE("LineFile: adds lines, to what others left whole", "[otlp]") {
  const Folder folder;
  CHECK(LineFile(folder.file(), kHead, 0).append(kOne, 1.0).ok());
  CHECK(LineFile(folder.file(), kHead, 0).append(kTwo, 1.0).ok());
  CHECK(folder.text() == kOne + kTwo);
}

TEST_CASE("LineFile: cuts the half line of a writer that died", "[otlp]") {
  const Folder folder;
  const std::string half =
      GENERATE(std::string("{"), std::string("{\"r\":3"),
               std::string(200'000, 'x').replace(0, 5, "{\"r\":"),
               std::string(10, '\0'));
  const std::string whole = GENERATE(std::string(), kOne);
  folder.put(whole + half);
  const auto status = LineFile(folder.file(), kHead, 0).append(kTwo, 1.0);
  if (whole.empty() && half.front() == '\0') {
    CHECK_FALSE(status.ok());  // for all it shows, somebody else's
    return;
  }
  CHECK(status.ok());
  CHECK(folder.text() == whole + kTwo);
}

TEST_CASE("LineFile: leaves a file of something else alone", "[otlp]") {
  const Folder folder;
  const std::string other =
      GENERATE("a log\n", "no newline", "{\"s\":1}\n", "{\"r\":1}\na log");
  folder.put(other);
  const auto status = LineFile(folder.file(), kHead, 0).append(kOne, 1.0);
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(folder.text() == other);
}

TEST_CASE("LineFile: a file that is full is kept once, by another name",
          "[otlp]") {
  const Folder folder;
  LineFile file(folder.file(), kHead, 2 * kOne.size());
  for (int i = 0; i < 3; ++i) CHECK(file.append(kOne, 1.0).ok());
  CHECK(folder.text() == kOne);
  CHECK(folder.text("x.jsonl.1") == kOne + kOne);
  for (int i = 0; i < 2; ++i) CHECK(file.append(kTwo, 1.0).ok());
  CHECK(folder.text() == kTwo);
  CHECK(folder.text("x.jsonl.1") == kOne + kTwo);

  // What is longer than the bound is a file alone.
  const std::string longer = "{\"r\":" + std::string(100, '9') + "}\n";
  CHECK(file.append(longer, 1.0).ok());
  CHECK(folder.text() == longer);
}

TEST_CASE("LineFile: writes where the name leads, wherever that is now",
          "[otlp]") {
  const Folder folder;
  LineFile file(folder.file("sub/x.jsonl"), kHead, 0);
  const auto missing = file.append(kOne, 1.0);
  CHECK(missing.message() == "cannot open " + folder.file("sub/x.jsonl") +
                                 ": No such file or directory");
  std::filesystem::create_directory(folder.path / "sub");
  CHECK(file.append(kOne, 1.0).ok());
  std::filesystem::rename(folder.path / "sub/x.jsonl", folder.path / "old");
  CHECK(file.append(kTwo, 1.0).ok());
  CHECK(folder.text("old") == kOne);
  CHECK(folder.text("sub/x.jsonl") == kTwo);
}

TEST_CASE("LineFile: a file that somebody keeps locked is not written",
          "[otlp]") {
  const Folder folder;
  folder.put(kOne);
  LineFile file(folder.file(), kHead, 0);
  {
    const UniqueFd other(open(folder.file().c_str(), O_RDONLY));
    REQUIRE(flock(other.value(), LOCK_EX) == 0);
    CHECK(file.append(kTwo, 1.0).code() == absl::StatusCode::kUnavailable);
  }
  CHECK(file.append(kTwo, 1.0).ok());
  CHECK(folder.text() == kOne + kTwo);
}

TEST_CASE("LineFile: what is no regular file is not waited for without end",
          "[otlp]") {
  CHECK(LineFile("/dev/full", kHead, 0).append(kOne, 0.0).message() ==
        "cannot write /dev/full: No space left on device");
  const Folder folder;
  REQUIRE(mkfifo(folder.file().c_str(), 0600) == 0);
  LineFile file(folder.file(), kHead, 10);
  CHECK_FALSE(file.append(kOne, 0.0).ok());  // nobody reads

  const UniqueFd reader(open(folder.file().c_str(), O_RDONLY | O_NONBLOCK));
  const std::string longer = "{\"r\":" + std::string(1'000'000, '9') + "}\n";
  CHECK_FALSE(file.append(longer, 0.0).ok());
  std::string taken(longer.size(), '\0');
  const ssize_t half = read(reader.value(), taken.data(), taken.size());
  REQUIRE(half > 0);
  // What it has of the line ends there.
  CHECK(file.append(kOne, 0.0).ok());
  const ssize_t rest = read(reader.value(), taken.data(), taken.size());
  REQUIRE(rest > 0);
  CHECK(taken.substr(0, static_cast<std::size_t>(rest)) == "\n" + kOne);
}

std::string taken_from(int fd) {
  std::string text(1 << 20, '\0');
  const ssize_t count = read(fd, text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

std::string name_of(const UniqueFd& fd) {
  return "/dev/fd/" + std::to_string(fd.value());
}

TEST_CASE("LineFile: a file that the process has open is written where it is",
          "[otlp]") {
  const Folder folder;
  const UniqueFd output(
      open(folder.file().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  LineFile file(name_of(output), kHead, 1);
  REQUIRE(::write(output.value(), "a log\n", 6) == 6);
  CHECK(file.append(kOne, 1.0).ok());
  REQUIRE(::write(output.value(), "more\n", 5) == 5);
  CHECK(file.append(kTwo, 1.0).ok());
  CHECK(folder.text() == "a log\n" + kOne + "more\n" + kTwo);
}

TEST_CASE("LineFile: a socket is written, and not when nobody hears",
          "[otlp]") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const UniqueFd output(ends[0]);
  LineFile file(name_of(output), kHead, 0);
  {
    const UniqueFd other(ends[1]);
    CHECK(file.append(kOne, 1.0).ok());
    CHECK(taken_from(other.value()) == kOne);
  }
  CHECK(file.append(kOne, 1.0).message() ==
        "cannot write " + name_of(output) + ": Broken pipe");
}

TEST_CASE("LineFile: two into one pipe know of each other's halves", "[otlp]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd output(ends[1]);
  LineFile one(name_of(output), kHead, 0);
  LineFile two("/proc/self/fd/" + std::to_string(output.value()), kHead, 0);
  const std::string longer = "{\"r\":" + std::string(1'000'000, '9') + "}\n";
  CHECK_FALSE(one.append(longer, 0.0).ok());
  // Whether it waits is not changed for those who share it.
  CHECK((fcntl(output.value(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK_FALSE(taken_from(reader.value()).empty());
  CHECK(two.append(kTwo, 0.0).ok());
  CHECK(taken_from(reader.value()) == "\n" + kTwo);
  CHECK(one.append(kOne, 0.0).ok());
  CHECK(taken_from(reader.value()) == kOne);
}

TEST_CASE("LineFile: long lines of two threads do not mix in a pipe",
          "[otlp]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd output(ends[1]);
  std::atomic<int> taken{0};
  const auto write_lines = [&](char digit) {
    LineFile file(name_of(output), kHead, 0);
    const std::string line = "{\"r\":" + std::string(100'000, digit) + "}\n";
    for (int i = 0; i < 3; ++i) taken += file.append(line, 60.0).ok() ? 1 : 0;
  };
  std::string text;
  std::thread first(write_lines, '1');
  std::thread second(write_lines, '2');
  while (std::count(text.begin(), text.end(), '\n') < 6)
    text += taken_from(reader.value());
  first.join();
  second.join();
  CHECK(taken == 6);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    CHECK(end - at == kHead.size() + 100'001);
    CHECK(text.find_first_not_of(text[at + kHead.size()], at + kHead.size()) ==
          end - 1);
    at = end + 1;
  }
}

TEST_CASE("LineFile: a file in shared memory is a file", "[otlp]") {
  std::string pattern = "/dev/shm/lines-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return;  // there is none
  const Folder folder{pattern};
  folder.put("{\"r\":half");
  LineFile file(folder.file(), kHead, kOne.size());
  CHECK(file.append(kOne, 1.0).ok());
  CHECK(folder.text() == kOne);
  CHECK(file.append(kTwo, 1.0).ok());
  CHECK(folder.text() == kTwo);
  CHECK(folder.text("x.jsonl.1") == kOne);
}

TEST_CASE("MetricsExporter: a file that cannot be written is said once",
          "[otlp]") {
  const Folder folder;
  const auto log = std::make_shared<testing::CapturedLog>();
  const auto registry = Registry::create();
  Options options;
  options.environment = [](const char*) -> const char* { return nullptr; };
  options.metrics_file = folder.file("sub/x.jsonl");
  options.log_sink = log;
  auto exporter = MetricsExporter::start(registry, options);
  REQUIRE(exporter.ok());
  CHECK_FALSE((*exporter)->flush());
  CHECK_FALSE((*exporter)->flush());
  std::filesystem::create_directory(folder.path / "sub");
  CHECK((*exporter)->flush());
  CHECK((*exporter)->flush());
  (*exporter)->shutdown();
  REQUIRE(log->lines.size() == 2);
  CHECK(log->lines[0] ==
        "WARNING OTLP: an export of metrics failed: cannot open " +
            *options.metrics_file +
            ": No such file or directory. This is said once, until one "
            "succeeds.");
  CHECK(log->lines[1] ==
        "INFO OTLP: exports of metrics succeed again; 2 had failed.");
  const std::string page{TextFormat().render(*registry)};
  CHECK(testing::value(page,
                       "vllm_metrics_otlp_exports_total{outcome=\"refused\","
                       "signal=\"metrics\"}") == "2.0");
  const std::string text = folder.text("sub/x.jsonl");
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

}  // namespace
}  // namespace vllm_metrics::otlp
