#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/shm/shared_registry.h"

// A folder that processes share, gone at the end of a test.
class SharedFolder {
 public:
  SharedFolder() {
    const char* const place =
        ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    path_ = std::string(place) + "/vllm_metrics_test-XXXXXX";
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  ~SharedFolder() { std::filesystem::remove_all(path_); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const std::string& path() const { return path_; }

  // Paths of the segments in it, sorted.
  std::vector<std::string> segments() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() == ".segment")
        found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::unique_ptr<vllm_metrics::shm::SharedRegistry> open(
      vllm_metrics::shm::SharedRegistryOptions options = {}) const {
    options.folder = path_;
    auto made = vllm_metrics::shm::SharedRegistry::create(std::move(options));
    INFO(made.status());
    REQUIRE(made.ok());
    return *std::move(made);
  }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string page_of(const vllm_metrics::Registry& registry) {
  return std::string(vllm_metrics::TextFormat().render(registry));
}

// The value of a sample: the line that starts with `name` and a blank; NaN when
// there is none.
inline double sample(std::string_view page, std::string_view name) {
  std::size_t at = 0;
  while (at < page.size()) {
    const std::size_t end = page.find('\n', at);
    const std::string_view line = page.substr(at, end - at);
    if (line.size() > name.size() && line.starts_with(name) &&
        line[name.size()] == ' ')
      return std::strtod(std::string(line.substr(name.size() + 1)).c_str(),
                         nullptr);
    at = end + 1;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// Runs `work` in a child process and waits for its end.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}
