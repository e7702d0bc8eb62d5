#include "src/shm/folded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "src/shm/segment.h"
#include "src/shm/segment_reader.h"

namespace vllm_metrics::inline v0::shm {
namespace {

// Of a file: a size alone is no reason to take that much memory.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

std::size_t front_of(const BlockHeader& block) {
  return sizeof(SegmentHeader) + to_line(sizeof block + block.schema_bytes);
}

absl::Status check(const SegmentHeader& header, const BlockHeader& block,
                   std::uint64_t file_bytes) {
  const auto damaged = absl::DataLossError("it is damaged");
  if (header.magic != SegmentHeader().magic) return damaged;
  if (header.version != SegmentHeader().version)
    return absl::UnimplementedError("it has another format version");
  if (block.form != static_cast<std::uint32_t>(BlockForm::kFolded) ||
      file_bytes > kMostBytes || block.cell_count > file_bytes ||
      block.name_bytes > file_bytes ||
      front_of(block) + 2 * block.cell_count * sizeof(std::uint64_t) +
              block.name_bytes !=
          file_bytes ||
      header.used_bytes.load() != to_line(file_bytes))
    return damaged;
  return absl::OkStatus();
}

template <class T>
std::string_view bytes_of(const T& object) {
  return {reinterpret_cast<const char*>(&object), sizeof object};
}
template <class T>
std::string_view bytes_of(std::span<const T> all) {
  return {reinterpret_cast<const char*>(all.data()), all.size_bytes()};
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return 0;
}

// Info series whose labels change, as adapters come and go, would gather for
// ever: of those that nobody writes any more the newest stay.
std::vector<SchemaFamily> newest_infos(std::vector<SchemaFamily> families,
                                       std::span<const std::uint64_t> cells) {
  constexpr std::size_t kMost = 64;
  const auto time_of = [cells](const Series& series) {
    return std::bit_cast<double>(cells[series.offset + 1]);
  };
  for (SchemaFamily& family : families) {
    if (!family.family.info || family.series.size() <= kMost) continue;
    std::ranges::stable_sort(family.series, std::ranges::greater(), time_of);
    family.series.resize(kMost);
  }
  return families;
}

}  // namespace

bool FoldedFile::is_current(const Folder& folder) const {
  struct stat now {};
  if (::fstatat(folder.fd(), kFoldedName, &now, AT_SYMLINK_NOFOLLOW) != 0)
    return file_.value() < 0;
  return file_.value() >= 0 && now.st_ino == number_;
}

void FoldedFile::clear() {
  file_.reset();
  schema_ = nullptr;
  cells_.clear();
  lows_.clear();
  torn_banks_ = 0;
  names_.clear();
}

absl::Status FoldedFile::refresh(const Folder& folder, SchemaDecoder& schemas) {
  if (is_current(folder)) return status_;
  clear();
  file_.reset(::openat(folder.fd(), kFoldedName,
                       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file_.value() < 0) {
    status_ = errno == ENOENT ? absl::OkStatus()
                              : system_error("file", kFoldedName, errno);
    return status_;
  }
  struct stat of {};
  ::fstat(file_.value(), &of);
  number_ = of.st_ino;
  status_ = S_ISREG(of.st_mode)
                ? read(static_cast<std::uint64_t>(of.st_size), schemas)
                : absl::DataLossError("it is not a regular file");
  return status_;
}

absl::Status FoldedFile::read(std::uint64_t file_bytes,
                              SchemaDecoder& schemas) {
  SegmentHeader header;
  BlockHeader block;
  const int file = file_.value();
  if (auto status =
          read_whole(file, 0, static_cast<void*>(&header), sizeof header);
      !status.ok())
    return status;
  if (auto status = read_whole(file, sizeof header, static_cast<void*>(&block),
                               sizeof block);
      !status.ok())
    return status;
  if (auto status = check(header, block, file_bytes); !status.ok())
    return status;
  std::string bytes(file_bytes, '\0');
  if (auto status = read_whole(file, 0, bytes.data(), bytes.size());
      !status.ok())
    return status;
  opened_ = opened_of(header);
  return parse(block, bytes, schemas);
}

absl::Status FoldedFile::parse(const BlockHeader& block, std::string_view bytes,
                               SchemaDecoder& schemas) {
  const auto damaged = absl::DataLossError("it is damaged");
  const std::size_t front = front_of(block);
  const std::size_t cell_bytes = block.cell_count * sizeof(std::uint64_t);
  const std::string_view schema =
      bytes.substr(sizeof(SegmentHeader) + sizeof block, block.schema_bytes);
  if (hash_of(schema) != block.schema_hash) return damaged;
  schema_ = schemas.decode(schema, block.cell_count);
  if (schema_ == nullptr) return damaged;
  cells_.resize(block.cell_count);
  lows_.resize(block.cell_count);
  if (cell_bytes != 0) {
    std::memcpy(cells_.data(), bytes.data() + front, cell_bytes);
    std::memcpy(lows_.data(), bytes.data() + front + cell_bytes, cell_bytes);
  }
  torn_banks_ = block.torn_banks;
  std::string_view names = bytes.substr(front + 2 * cell_bytes);
  while (!names.empty()) {
    const std::size_t end = names.find('\n');
    names_.emplace(names.substr(0, end));
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  }
  return absl::OkStatus();
}

std::optional<double> FoldedFile::opened() const {
  if (schema_ == nullptr) return std::nullopt;
  return opened_;
}

void FoldedFile::add_to(std::vector<Source>& out) const {
  if (schema_ == nullptr) return;
  out.push_back({.schema = schema_,
                 .standing = Standing::kFolded,
                 .cells = cells_,
                 .lows = lows_});
}

absl::Status FoldedFile::write(const Folder& folder, const Merge& merge,
                               std::size_t torn_banks, double opened,
                               std::span<const std::string> names) {
  std::string listed;
  for (const std::string& name : names) listed.append(name) += '\n';
  std::string schema =
      encode(newest_infos(merge.schema()->families, merge.cells()),
             newest_infos(merge.past(), merge.cells()));
  BlockHeader block;
  block.form = static_cast<std::uint32_t>(BlockForm::kFolded);
  block.schema_hash = hash_of(schema);
  block.schema_bytes = static_cast<std::uint32_t>(schema.size());
  block.cell_count = merge.cells().size();
  block.torn_banks = torn_banks;
  block.name_bytes = listed.size();
  schema.resize(to_line(sizeof block + schema.size()) - sizeof block);
  block.size = to_line(sizeof block + schema.size() +
                       2 * merge.cells().size_bytes() + listed.size());
  SegmentHeader header;
  header.state = static_cast<std::uint32_t>(State::kClosed);
  header.used_bytes = sizeof header + block.size;
  header.file_bytes = header.used_bytes;
  header.opened = opened;
  std::string bytes;
  bytes.append(bytes_of(header)).append(bytes_of(block)).append(schema);
  bytes.append(bytes_of(merge.cells())).append(bytes_of(merge.lows()));
  bytes += listed;
  // Which nobody would read.
  if (bytes.size() > kMostBytes)
    return system_error("folding into", folder.path(), EFBIG);

  const std::string unfinished = std::string(kFoldedName) + ".tmp";
  const UniqueFd file = folder.make(unfinished);
  int error = file.value() < 0 ? errno : write_all(file.value(), bytes);
  if (error == 0 && ::renameat(folder.fd(), unfinished.c_str(), folder.fd(),
                               kFoldedName) != 0)
    error = errno;
  if (error == 0) return absl::OkStatus();
  folder.remove(unfinished);
  return system_error("folding into", folder.path(), error);
}

}  // namespace vllm_metrics::inline v0::shm
