#include "vllm_metrics/shm/shared_registry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "src/shm/folder.h"
#include "src/shm/segment.h"
#include "src/shm/shared_store.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constexpr std::size_t kLeastBytes = 65536;

absl::StatusOr<Folder> open_folder(const SharedRegistryOptions& options) {
  if (!options.folder.empty())
    return Folder::open(options.folder, options.read_only);
  const char* const given = std::getenv("PROMETHEUS_MULTIPROC_DIR");
  if (given != nullptr && *given != '\0')
    return Folder::open(given, options.read_only);
  if (options.read_only) {
    return absl::InvalidArgumentError(
        "folder is empty and so is PROMETHEUS_MULTIPROC_DIR; allowed with "
        "read_only: the folder of those who record");
  }
  return Folder::make_fresh();
}

absl::StatusOr<std::shared_ptr<SharedStore>> make_store(
    const SharedRegistryOptions& options) {
  auto folder = open_folder(options);
  if (!folder.ok()) return folder.status();
  std::shared_ptr<Segment> segment;
  if (!options.read_only) {
    if (options.previous == SharedRegistryOptions::Previous::kWipe) {
      if (auto status = SharedStore::wipe(*folder); !status.ok()) return status;
    }
    auto made = Segment::create(folder->path(), options.segment_bytes);
    if (!made.ok()) return made.status();
    segment = *std::move(made);
  }
  return std::make_shared<SharedStore>(*std::move(folder), std::move(segment),
                                       options);
}

void warn(const SharedRegistryOptions& options, const std::string& text) {
  if (options.on_warning != nullptr) return options.on_warning(text);
  std::cerr << "vllm_metrics: " << text << '\n';
}

}  // namespace

struct SharedRegistry::State {
  std::shared_ptr<Registry> registry;
  std::string folder;
};

absl::StatusOr<std::unique_ptr<SharedRegistry>> SharedRegistry::create(
    SharedRegistryOptions options) {
  if (options.segment_bytes < kLeastBytes ||
      options.segment_bytes > kMostSegmentBytes) {
    return absl::InvalidArgumentError(
        fmt::format("segment_bytes = {}; allowed: {} to {}",
                    options.segment_bytes, kLeastBytes, kMostSegmentBytes));
  }
  auto state = std::make_unique<State>();
  auto store = make_store(options);
  if (store.ok()) {
    state->folder = (*store)->folder();
    if (!options.read_only) {
      // What the dead left is folded now, if nobody scrapes.
      Snapshot unused;
      (*store)->snapshot(unused);
    }
    state->registry = Registry::create(*std::move(store));
  } else if (options.fall_back_to_private && !options.read_only) {
    warn(options, fmt::format("metrics are not shared between processes: {}",
                              std::string(store.status().message())));
    state->registry = Registry::create();
  } else {
    return store.status();
  }
  return std::unique_ptr<SharedRegistry>(new SharedRegistry(std::move(state)));
}

SharedRegistry::SharedRegistry(std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}
SharedRegistry::~SharedRegistry() = default;

const std::shared_ptr<Registry>& SharedRegistry::registry() const noexcept {
  return state_->registry;
}
const std::string& SharedRegistry::folder() const noexcept {
  return state_->folder;
}

}  // namespace vllm_metrics::inline v0::shm
