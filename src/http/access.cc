#include "src/http/access.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/http/text_file.h"

namespace vllm_metrics::inline v0::http {
namespace {

constexpr std::size_t kMaxUser = 128;
constexpr std::size_t kMaxPassword = 240;

bool is_control(char c) {
  return absl::ascii_iscntrl(static_cast<unsigned char>(c));
}

char lower_case(char c) {
  return absl::ascii_tolower(static_cast<unsigned char>(c));
}

bool is_token_character(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, &lower_case, &lower_case);
}

// The secret itself: a file's line without its end.
absl::StatusOr<std::string> secret_of(const TextOrFile& source,
                                      const std::string& name,
                                      std::size_t max_size) {
  auto text = read(source, name);
  if (!text.ok()) return text.status();
  if (!source.file.empty()) {
    if (text->ends_with('\n')) text->pop_back();
    if (text->ends_with('\r')) text->pop_back();
  }
  if (text->empty() || text->size() > max_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has ", text->size(), " bytes; allowed: 1 to ", max_size));
  }
  return text;
}

// What a client sends for it: the base64 of `user:password`.
absl::StatusOr<PaddedText> basic_credentials(const BasicLogin& login,
                                             const std::string& name) {
  if (login.user.empty() || login.user.size() > kMaxUser ||
      login.user.find(':') != std::string::npos ||
      std::ranges::any_of(login.user, is_control)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ".user = \"", absl::CHexEscape(login.user), "\"; allowed: 1 to ",
        kMaxUser, " bytes, no colon and no control characters"));
  }
  const auto secret =
      secret_of(login.password, absl::StrCat(name, ".password"), kMaxPassword);
  if (!secret.ok()) return secret.status();
  if (std::ranges::any_of(*secret, is_control)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".password has control characters; not allowed"));
  }
  return PaddedText(absl::Base64Escape(absl::StrCat(login.user, ":", *secret)));
}

absl::StatusOr<PaddedText> bearer_credentials(const TextOrFile& token,
                                              const std::string& name) {
  const auto secret = secret_of(token, name, PaddedText::kMaxSize);
  if (!secret.ok()) return secret.status();
  if (!std::ranges::all_of(*secret, is_token_character)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     " has a character that is not allowed; allowed: "
                     "A-Z a-z 0-9 - . _ ~ + / ="));
  }
  return PaddedText(*secret);
}

// Compares with each, so that the time does not tell with which it agrees.
bool is_among(const std::vector<PaddedText>& known, const PaddedText& given) {
  unsigned int found = 0;
  for (const PaddedText& each : known) found |= each.equals(given);
  return found != 0;
}

}  // namespace

PaddedText::PaddedText(std::string_view text) noexcept : size_(text.size()) {
  std::ranges::copy(text.substr(0, kMaxSize), bytes_.begin());
}

unsigned int PaddedText::equals(const PaddedText& other) const noexcept {
  std::size_t difference = size_ ^ other.size_;
#ifdef VLLM_METRICS_PLANTED_FAULT
  constexpr std::size_t kCompared = 4;
#else
  constexpr std::size_t kCompared = kMaxSize;
#endif
  for (std::size_t i = 0; i < kCompared; ++i) {
    difference |= static_cast<std::size_t>(bytes_[i] ^ other.bytes_[i]);
  }
  return static_cast<unsigned int>(difference == 0);
}

absl::StatusOr<Access> Access::create(const ExposerOptions& options) {
  Access access;
  for (const BasicLogin& login : options.basic_logins) {
    auto known = basic_credentials(
        login, absl::StrCat("basic_logins[", access.logins_.size(), "]"));
    if (!known.ok()) return known.status();
    access.logins_.push_back(*std::move(known));
  }
  for (const TextOrFile& token : options.bearer_tokens) {
    auto known = bearer_credentials(
        token, absl::StrCat("bearer_tokens[", access.tokens_.size(), "]"));
    if (!known.ok()) return known.status();
    access.tokens_.push_back(*std::move(known));
  }
  return access;
}

bool Access::allows(std::string_view authorization) const noexcept {
  if (is_open()) return true;
  const auto blank = authorization.find(' ');
  if (blank == std::string_view::npos) return false;
  const auto scheme = authorization.substr(0, blank);
  auto given = authorization.substr(blank);
  while (given.starts_with(' ')) given.remove_prefix(1);
  while (given.ends_with(' ')) given.remove_suffix(1);
  if (equals_ignoring_case(scheme, "Basic")) {
    return is_among(logins_, PaddedText(given));
  }
  if (equals_ignoring_case(scheme, "Bearer")) {
    return is_among(tokens_, PaddedText(given));
  }
  return false;
}

Answer Access::refusal() const noexcept {
  Answer answer{.status = 401,
                .headers = {kPlainText},
                .text = "Unauthorized. A login is needed.\n"};
  if (!logins_.empty()) {
    answer.headers[1] = {"WWW-Authenticate",
                         "Basic realm=\"metrics\", charset=\"UTF-8\""};
  }
  if (!tokens_.empty()) {
    answer.headers[2] = {"WWW-Authenticate", "Bearer realm=\"metrics\""};
  }
  return answer;
}

}  // namespace vllm_metrics::inline v0::http
