#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "vllm_metrics/http/exposer_options.h"

namespace vllm_metrics::inline v0::http {

// What TLS needs, as PEM.
struct TlsIdentity {
  std::string certificate;
  std::string key;
  // Where both came from, for messages.
  std::string origin;
};

// GnuTLS's words for TLS 1.2 and later, and what it holds for secure in them.
inline constexpr const char* kTlsPriorities =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

// Nothing when the options have neither certificate nor key. Errors name the
// option and the file; whether the two belong together shows later.
absl::StatusOr<std::optional<TlsIdentity>> tls_identity(
    const ExposerOptions& options);

}  // namespace vllm_metrics::inline v0::http
