#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/http/answer.h"
#include "vllm_metrics/http/exposer_options.h"

namespace vllm_metrics::inline v0::http {

// What stands behind `Basic` or `Bearer` in a request, padded, so that a
// comparison takes the same time wherever two differ, and however long each is.
class PaddedText {
 public:
  static constexpr std::size_t kMaxSize = 512;

  // A longer text equals none that is allowed.
  explicit PaddedText(std::string_view text) noexcept;

  // 1 if equal, else 0, without a branch.
  unsigned int equals(const PaddedText& other) const noexcept;

 private:
  std::size_t size_;
  std::array<unsigned char, kMaxSize> bytes_{};
};

// Decides who may ask. What a client sends is compared, never decoded: a login
// is known in the one form in which it may arrive.
//
// Thread-safety: const members from any thread.
// Definition: RFC 9110 section 11, RFC 7617 (Basic), RFC 6750 (Bearer, in the
// Authorization header only).
class Access {
 public:
  // Errors name the option, and the file, never a secret.
  static absl::StatusOr<Access> create(const ExposerOptions& options);

  // True without logins and tokens: whoever can connect may ask.
  bool is_open() const noexcept { return logins_.empty() && tokens_.empty(); }

  // `authorization` is the header's value, empty without one.
  bool allows(std::string_view authorization) const noexcept;

  // 401, with the ways to log in.
  Answer refusal() const noexcept;

 private:
  std::vector<PaddedText> logins_;
  std::vector<PaddedText> tokens_;
};

}  // namespace vllm_metrics::inline v0::http
