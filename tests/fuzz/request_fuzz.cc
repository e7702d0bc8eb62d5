// Any bytes as the headers of a request that we look into ourselves: a login is
// let in exactly when it is one of ours, and what is accepted has its type.
// Covers: src/http/access.cc src/exposition/negotiation.cc

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/http/access.h"
#include "tests/fuzz/require.h"
#include "vllm_metrics/exposition/negotiation.h"

namespace {

using namespace vllm_metrics;

// base64 of `user:pass`.
constexpr std::string_view kLogin = "dXNlcjpwYXNz";
constexpr std::string_view kToken = "t0ken==";

const http::Access& access() {
  static const http::Access made = [] {
    http::ExposerOptions options;
    options.basic_logins = {{.user = "user", .password = {.text = "pass"}}};
    options.bearer_tokens = {{.text = "another"}, {.text = "t0ken=="}};
    return *http::Access::create(options);
  }();
  return made;
}

// The same decision, made in another way: `scheme`, blanks, `text`, blanks.
bool is(std::string_view header, std::string_view scheme,
        std::string_view text) {
  if (header.size() <= scheme.size() || header[scheme.size()] != ' ') {
    return false;
  }
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    const char c = header[i];
    const char lower =
        c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != scheme[i]) return false;
  }
  const auto first = header.find_first_not_of(' ', scheme.size());
  if (first == std::string_view::npos) return false;
  const auto last = header.find_last_not_of(' ');
  return header.substr(first, last - first + 1) == text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view header(reinterpret_cast<const char*>(data), size);
  const bool is_ours = is(header, "basic", kLogin) ||
                       is(header, "bearer", kToken) ||
                       is(header, "bearer", "another");
  require(access().allows(header) == is_ours);
  require(access().refusal().status == 401);

  http::ExposerOptions options;
  options.bearer_tokens = {{.text = std::string(header)}};
  if (const auto one = http::Access::create(options); one.ok()) {
    require(one->allows("Bearer " + std::string(header)));
    require(!one->allows("Bearer " + std::string(header) + "x"));
  }
  options.bearer_tokens.clear();
  options.basic_logins = {
      {.user = std::string(header), .password = {.text = std::string(header)}}};
  if (const auto one = http::Access::create(options); one.ok()) {
    require(!one->is_open());
  }
  require(!choose_wire_format(header).content_type.empty());
  require(accepts_gzip(header) == accepts_gzip(std::string(header)));
  return 0;
}
