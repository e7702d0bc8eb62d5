#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vllm_metrics::inline v0::otlp {

// A file that lines are added to, of which a reader never sees half of one but
// the last. What a writer that died left of a line is cut off before the next.
// Several exporters, of several processes, may add to one file. It is opened
// for each line, so that it may be moved away or taken out at any time.
//
// Thread-safety: none but cancel(), from any thread.
class LineFile {
 public:
  // `head`: what each line begins with. Lines that would make the file longer
  // than `max_bytes` begin a new one, and the old one is called `path`.1; 0:
  // never.
  LineFile(std::string path, std::string_view head, std::uint64_t max_bytes);

  // Adds `line`, which ends in a newline, or nothing. Only what is no regular
  // file, or one that the process has open (/dev/stdout, /dev/fd/3), is waited
  // for, `seconds` at most; what it then took of a line ends there.
  // Errors: Unavailable when others keep the file to themselves;
  // FailedPrecondition when it has other lines than these; else what the
  // system says.
  absl::Status append(std::string_view line, double seconds);

  // Ends all waiting.
  void cancel() noexcept { cancelled_ = true; }

 private:
  enum class Placed { kDone, kElsewhere };
  absl::StatusOr<Placed> append_once(std::string_view line, double seconds);
  absl::StatusOr<Placed> append_locked(int fd, std::string_view line);
  absl::StatusOr<off_t> cut_half_line(int fd, off_t size);
  absl::Status append_special(int fd, std::string_view line, double seconds);
  absl::Status write(int fd, std::string_view text, std::size_t& written);
  absl::Status wait_until_writable(int fd, double deadline) const;
  absl::Status failed(std::string_view what, int error) const;

  const std::string path_;
  const std::string_view head_;
  const std::uint64_t max_bytes_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace vllm_metrics::inline v0::otlp
