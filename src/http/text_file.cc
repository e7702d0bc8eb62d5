#include "src/http/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/registry/unique_fd.h"

namespace vllm_metrics::inline v0::http {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

// Up to one byte more than is allowed. A pipe nobody writes to is empty.
bool read_all(int fd, std::string& text) {
  text.resize(kMaxBytes + 1);
  std::size_t size = 0;
  ssize_t got = 0;
  do {
    got = ::read(fd, text.data() + size, text.size() - size);
    if (got > 0) size += static_cast<std::size_t>(got);
  } while (got > 0 || (got < 0 && errno == EINTR));
  text.resize(size);
  return got == 0;
}

}  // namespace

absl::StatusOr<std::string> read(const TextOrFile& source,
                                 const std::string& name) {
  if (source.text.empty() == source.file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     source.text.empty() ? " has neither text nor file"
                                         : " has both text and file",
                     "; one of them is needed"));
  }
  if (source.file.empty()) return source.text;

  const auto error = [&](absl::StatusCode code, const std::string& reason) {
    return absl::Status(
        code, absl::StrCat(name, ".file = \"", source.file, "\": ", reason));
  };
  const UniqueFd fd(
      open(source.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  if (fd.value() < 0 || !read_all(fd.value(), text)) {
    return error(absl::ErrnoToStatusCode(errno),
                 std::generic_category().message(errno));
  }
  if (text.size() > kMaxBytes) {
    return error(absl::StatusCode::kInvalidArgument,
                 "larger than 1048576 bytes");
  }
  if (text.empty()) {
    return error(absl::StatusCode::kInvalidArgument, "empty");
  }
  return text;
}

}  // namespace vllm_metrics::inline v0::http
