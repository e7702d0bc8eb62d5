#include "src/shm/shared_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "vllm_metrics/catalogue/catalogue.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constexpr MetricId kSelfMetrics[] = {
    MetricId::kSharedProcesses, MetricId::kTornBanks,
    MetricId::kUnreadableSegments, MetricId::kUnmergedSeries};

// What is unknown of one is unknown of all.
double first_of(const std::optional<double>& a, double b) {
  return a ? std::min(*a, b) : b;
}

// The process of `self`'s boot whose file has that name; it is taken for one of
// the same pid namespace.
std::optional<ProcessIdentity> owner_of(const std::string& name,
                                        const ProcessIdentity& self) {
  unsigned boot = 0;
  ProcessIdentity owner{.pid_namespace = self.pid_namespace,
                        .boot_id = self.boot_id};
  unsigned long long start = 0;
  if (std::sscanf(name.c_str() + kFilePrefix.size(), "%8x-%d-%llu", &boot,
                  &owner.pid, &start) != 3 ||
      boot != static_cast<unsigned>(self.boot_id[0] >> 32))
    return std::nullopt;
  owner.start_time = start;
  return owner;
}

// Of one of another version its header tells, of one that is damaged its name.
bool is_in_use(SegmentReader& reader, const std::string& name,
               SchemaDecoder& schemas, const ProcessIdentity& self) {
  const auto status = reader.read(schemas);
  if (status.ok()) return !reader.has_ended();
  if (absl::IsUnimplemented(status) && reader.is_owner_alive()) return true;
  const auto owner = owner_of(name, self);
  return !reader.is_gone() && owner && ProcessWatch(*owner, self).is_alive();
}

}  // namespace

SharedStore::SharedStore(Folder folder, std::shared_ptr<Segment> segment,
                         const SharedRegistryOptions& options)
    : folder_(std::move(folder)),
      segment_(std::move(segment)),
      read_only_(options.read_only),
      self_metrics_(options.self_metrics),
      on_warning_(options.on_warning) {
  join();
}

SharedStore::~SharedStore() { leave(); }

absl::StatusOr<SeriesStore::Place> SharedStore::claim(const Request& request) {
  if (segment_ == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "family {}: the shared registry of {} is read_only; allowed: one that "
        "is not",
        request.families.front().family.name, folder_.path()));
  }
  return Segment::claim(segment_, request);
}

void SharedStore::warn_once(const std::string& name,
                            const absl::Status& why) const {
  if (!warned_.insert(name).second) return;
  const auto text =
      fmt::format("shared metrics: {}/{} is left out: {}", folder_.path(), name,
                  std::string(why.message()));
  if (on_warning_ == nullptr) {
    std::cerr << "vllm_metrics: " << text << '\n';
    return;
  }
  try {
    on_warning_(text);
  } catch (...) {
    // The page is more than the sink; the file is counted on it.
  }
}

void SharedStore::snapshot(Snapshot& out) const {
  const MutexLock lock(mutex_);
  read_all();
  std::size_t torn = folded_.torn_banks();
  std::size_t alive = 0;
  bool has_ended = false;
  sources_.clear();
  folded_.add_to(sources_);
  std::optional<double> since = folded_.opened();
  for (const auto& [name, reader] : readers_) {
    if (unreadable_.contains(name)) continue;
    since = first_of(since, reader->opened());
    reader->add_to(sources_);
    torn += reader->torn_banks();
    has_ended = has_ended || reader->has_ended();
    alive += reader->has_ended() ? 0U : 1U;
  }
  merge_.run(sources_);
  if (merged_ != merge_.schema() || schema_->since != since.value_or(0.0))
    make_schema(since.value_or(0.0));
  out.schema = schema_;
  out.words.assign(merge_.cells().begin(), merge_.cells().end());
  const std::size_t about[] = {alive, torn, unreadable_.size(),
                               merge_.misfits()};
  static_assert(std::size(about) == std::size(kSelfMetrics));
  if (self_metrics_) {
    for (const std::size_t n : about) {
      out.words.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(n)));
    }
  }
  if (has_ended && !read_only_) fold();
}

// What is folded meanwhile would be missed or counted twice: then once more.
void SharedStore::read_all() const {
  constexpr int kMostAttempts = 16;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    read_once();
    if (folded_.is_current(folder_)) return;
  }
  // The folder is changed as fast as it is read: keep others out of it.
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto lock = FolderLock::try_take(folder_);
    read_once();
    if (lock.is_held() || folded_.is_current(folder_)) return;
    std::this_thread::yield();
  }
}

void SharedStore::read_once() const {
  unreadable_.clear();
  if (auto status = folded_.refresh(folder_, schemas_); !status.ok()) {
    unreadable_.insert(kFoldedName);
    warn_once(kFoldedName, status);
  }
  folder_.list(names_, unfinished_);
  for (auto reader = readers_.begin(); reader != readers_.end();) {
    const bool gone = folded_.includes(reader->first) ||
                      !std::ranges::binary_search(names_, reader->first);
    reader = gone ? readers_.erase(reader) : std::next(reader);
  }
  const auto self = ProcessIdentity::of_this_process();
  for (const std::string& name : names_) {
    if (folded_.includes(name)) continue;
    auto& reader = readers_[name];
    if (reader == nullptr)
      reader = std::make_unique<SegmentReader>(folder_.fd(), name, self);
    const auto status = reader->read(schemas_);
    if (status.ok()) continue;
    if (reader->is_gone()) {  // folded by another since it was listed
      readers_.erase(name);
      continue;
    }
    unreadable_.insert(name);
    warn_once(name, status);
    reader = std::make_unique<SegmentReader>(folder_.fd(), name, self);
  }
}

// Puts what the ended left into the folded file and removes it. Another
// process that does so meanwhile has the lock, or has changed the file.
void SharedStore::fold() const {
  if (unreadable_.contains(kFoldedName)) return;
  const auto lock = FolderLock::try_take(folder_);
  if (!lock.is_held() || !folded_.is_current(folder_)) return;
  for (const std::string& name : names_) {
    if (folded_.includes(name)) folder_.remove(name);
  }
  std::vector<Source> sources;
  std::vector<std::string> names;
  std::size_t torn = folded_.torn_banks();
  std::optional<double> opened = folded_.opened();
  folded_.add_to(sources);
  for (const auto& [name, reader] : readers_) {
    if (!reader->has_ended() || unreadable_.contains(name)) continue;
    opened = first_of(opened, reader->opened());
    reader->add_to(sources);
    torn += reader->torn_banks();
    names.push_back(name);
  }
  Merge ended;
  ended.run(sources);
  if (auto status =
          FoldedFile::write(folder_, ended, torn, opened.value_or(0.0), names);
      !status.ok())
    return warn_once("", status);
  for (const std::string& name : names) folder_.remove(name);
  remove_unfinished();
}

// Files of processes that died while they made them.
void SharedStore::remove_unfinished() const {
  const auto self = ProcessIdentity::of_this_process();
  for (const std::string& name : unfinished_) {
    const auto owner = owner_of(name, self);
    if (owner && !ProcessWatch(*owner, self).is_alive()) folder_.remove(name);
  }
}

void SharedStore::make_schema(double since) const {
  merged_ = merge_.schema();
  auto made = std::make_shared<Schema>(*merged_);
  made->since = since;
  for (const MetricId id : kSelfMetrics) {
    if (!self_metrics_) break;
    made->families.push_back(
        {family_of(spec_of(id)),
         {{.offset = static_cast<std::uint32_t>(made->word_count++)}}});
  }
  schema_ = std::move(made);
}

absl::Status SharedStore::wipe(const Folder& folder) {
  constexpr int kMostAttempts = 1000;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto lock = FolderLock::try_take(folder);
    if (!lock.is_held()) {
      std::this_thread::yield();
      continue;
    }
    std::vector<std::string> names;
    std::vector<std::string> unfinished;
    folder.list(names, unfinished);
    SchemaDecoder schemas;
    const auto self = ProcessIdentity::of_this_process();
    for (const std::string& name : names) {
      SegmentReader reader(folder.fd(), name, self);
      if (is_in_use(reader, name, schemas, self)) return absl::OkStatus();
    }
    for (const std::string& name : names) folder.remove(name);
    folder.remove(kFoldedName);
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      fmt::format("folder {} is being folded by another process all the time",
                  folder.path()));
}

}  // namespace vllm_metrics::inline v0::shm
