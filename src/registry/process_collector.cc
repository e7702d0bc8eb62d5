#include "vllm_metrics/registry/process_collector.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The series in the order of the page, which is that of their words.
enum Word : std::uint32_t {
  kVirtualMemory,
  kResidentMemory,
  kStartTime,
  kCpu,
  kOpenFds,
  kMaxFds,
  kWordCount,
};

// What `self/stat` says of a process.
struct Stat {
  double start_ticks = kUnknown;  // after the machine's boot
  double virtual_bytes = kUnknown;
  double resident_pages = kUnknown;
};

// The number in field `index` of proc(5)'s stat, counted from 1 as there.
// `text` starts behind the name of the program, at field 3.
double field(std::string_view text, int index) {
  for (int at = 3; at < index; ++at) {
    const auto blank = text.find(' ');
    if (blank == std::string_view::npos) return kUnknown;
    text.remove_prefix(blank + 1);
  }
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? static_cast<double>(value) : kUnknown;
}

std::optional<Stat> read_stat(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> buffer;  // some 52 fields, half of them zeros
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (size <= 0) return std::nullopt;
  std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  // The name may itself have blanks and brackets: the last one counts.
  const auto name_end = text.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 2);
  return Stat{.start_ticks = field(text, 22),
              .virtual_bytes = field(text, 23),
              .resident_pages = field(text, 24)};
}

// Seconds since 1970, from the line `btime <seconds>`.
std::optional<double> read_boot_time(const std::string& path) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    double seconds = 0.0;
    if (word == "btime" && file >> seconds) return seconds;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

double max_fds() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnknown;
  return limit.rlim_cur == RLIM_INFINITY
             ? std::numeric_limits<double>::infinity()
             : static_cast<double>(limit.rlim_cur);
}

// Counts the entries of `self/fd` without the one that the counting takes.
double open_fds(const char* path) {
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // None left to look with: all that are allowed are in use.
  if (fd < 0) return errno == EMFILE ? max_fds() : kUnknown;
  double count = -1.0;
  // Small, because a fiber with a small stack may render the page.
  alignas(dirent64) std::array<char, 4096> buffer;
  ssize_t size = 0;
  while ((size = getdents64(fd, buffer.data(), buffer.size())) > 0) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const void* const entry = buffer.data() + at;
      const auto* const file = static_cast<const dirent64*>(entry);
      if (file->d_name[0] != '.') ++count;
      at += file->d_reclen;
    }
  }
  close(fd);
  return size == 0 ? count : kUnknown;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

class ProcessSource : public SnapshotSource {
 public:
  ProcessSource(const std::string& proc, double boot_time)
      : stat_path_(proc + "/self/stat"),
        fd_path_(proc + "/self/fd"),
        boot_time_(boot_time) {}

  void read(std::span<std::uint64_t> words) const noexcept override {
    const Stat stat = read_stat(stat_path_.c_str()).value_or(Stat{});
    const auto set = [&](Word word, double value) {
      words[word] = std::bit_cast<std::uint64_t>(value);
    };
    set(kVirtualMemory, stat.virtual_bytes);
    set(kResidentMemory, stat.resident_pages * page_bytes_);
    set(kStartTime, boot_time_ + stat.start_ticks / ticks_per_second_);
    set(kCpu, cpu_seconds());
    set(kOpenFds, open_fds(fd_path_.c_str()));
    set(kMaxFds, max_fds());
  }

 private:
  std::string stat_path_;
  std::string fd_path_;
  double boot_time_;
  double page_bytes_ = static_cast<double>(sysconf(_SC_PAGESIZE));
  double ticks_per_second_ = static_cast<double>(sysconf(_SC_CLK_TCK));
};

std::vector<SchemaFamily> process_families() {
  std::vector<SchemaFamily> families;
  const auto add = [&](Word word, MetricKind kind, std::string name,
                       std::string help) {
    families.push_back({.family = {.name = std::move(name),
                                   .help = std::move(help),
                                   .kind = kind,
                                   .number = CounterNumber::kReal},
                        .series = {Series{.labels = {}, .offset = word}}});
  };
  const auto gauge = MetricKind::kGauge;
  add(kVirtualMemory, gauge, "process_virtual_memory_bytes",
      "Address space of the process in bytes.");
  add(kResidentMemory, gauge, "process_resident_memory_bytes",
      "Physical memory that the process occupies in bytes.");
  add(kStartTime, gauge, "process_start_time_seconds",
      "When the process started, in seconds since 1970.");
  add(kCpu, MetricKind::kCounter, "process_cpu_seconds",
      "CPU time of all threads of the process, user and system, in seconds.");
  add(kOpenFds, gauge, "process_open_fds",
      "File descriptors that the process has open.");
  add(kMaxFds, gauge, "process_max_fds",
      "File descriptors that the process may have open.");
  return families;
}

}  // namespace

absl::StatusOr<Registration> add_process_metrics(Registry& registry,
                                                 const char* proc) {
  const std::string root = proc;
  const std::string stat_path = root + "/self/stat";
  if (!read_stat(stat_path.c_str())) {
    return absl::UnavailableError(absl::StrCat(
        "proc = \"", root, "\": cannot read ", stat_path,
        "; process metrics need procfs, usually mounted at /proc"));
  }
  const auto boot_time = read_boot_time(root + "/stat");
  if (!boot_time) {
    return absl::UnavailableError(absl::StrCat(
        "proc = \"", root, "\": no boot time (btime) in ", root, "/stat"));
  }
  return registry.add(process_families(),
                      std::make_shared<ProcessSource>(root, *boot_time),
                      kWordCount);
}

}  // namespace vllm_metrics::inline v0
