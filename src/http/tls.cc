#include "src/http/tls.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/http/text_file.h"

namespace vllm_metrics::inline v0::http {
namespace {

bool is_given(const TextOrFile& source) {
  return !source.text.empty() || !source.file.empty();
}

std::string described(const std::string& name, const TextOrFile& source) {
  return source.file.empty()
             ? name
             : absl::StrCat(name, ".file = \"", source.file, "\"");
}

// That a PEM block of the kind is there; GnuTLS reads what is in it, but does
// not say which of the two texts it could not read.
absl::Status check_block(const std::string& pem, const std::string& kind,
                         const std::string& where) {
  if (pem.find('\0') == std::string::npos &&
      pem.find(absl::StrCat(kind, "-----")) != std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": no ", kind, " in it; allowed: PEM"));
}

}  // namespace

absl::StatusOr<std::optional<TlsIdentity>> tls_identity(
    const ExposerOptions& options) {
  if (!is_given(options.tls_certificate) && !is_given(options.tls_key)) {
    return std::nullopt;
  }
  const auto certificate_from =
      described("tls_certificate", options.tls_certificate);
  const auto key_from = described("tls_key", options.tls_key);
  auto certificate = read(options.tls_certificate, "tls_certificate");
  if (!certificate.ok()) return certificate.status();
  auto key = read(options.tls_key, "tls_key");
  if (!key.ok()) return key.status();
  const absl::Status checks[] = {
      check_block(*certificate, "CERTIFICATE", certificate_from),
      check_block(*key, "PRIVATE KEY", key_from)};
  for (const absl::Status& status : checks) {
    if (!status.ok()) return status;
  }
  if (key->find("ENCRYPTED") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        key_from, ": the key has a passphrase; allowed: one without"));
  }
  return TlsIdentity{.certificate = *std::move(certificate),
                     .key = *std::move(key),
                     .origin = absl::StrCat(certificate_from, ", ", key_from)};
}

}  // namespace vllm_metrics::inline v0::http
