#include "src/tools/sandbox/pages.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "src/tools/sandbox/asset.h"
#include "src/tools/sandbox/live_doctor.h"

namespace vllm_metrics::sandbox {
namespace {

using http::PageAnswer;
using http::PageRequest;

constexpr int kMaxDepth = 4;
constexpr std::size_t kMaxBody = 16384;

PageAnswer json_answer(const Json& json, int status = 200) {
  return {
      .status = status,
      .content_type = "application/json",
      .body = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

// A message "field = value; allowed: ..." also in its parts.
PageAnswer refusal(std::string_view message, int status) {
  Json error = {{"message", message}};
  constexpr std::string_view kIs = " = ";
  constexpr std::string_view kAllowed = "; allowed: ";
  const std::size_t is = message.find(kIs);
  const std::size_t allowed = message.find(kAllowed);
  if (is != std::string_view::npos && allowed != std::string_view::npos &&
      is < allowed) {
    error["field"] = message.substr(0, is);
    error["value"] = message.substr(is + kIs.size(), allowed - is - kIs.size());
    error["allowed"] = message.substr(allowed + kAllowed.size());
  }
  return json_answer({{"error", std::move(error)}}, status);
}

bool is_json(std::string_view content_type) {
  constexpr std::string_view kJson = "application/json";
  return content_type.starts_with(kJson) &&
         (content_type.size() == kJson.size() ||
          content_type[kJson.size()] == ';');
}

PageAnswer answer_state(Session& session, const PageRequest& asked) {
  if (asked.method != "POST") return json_answer(session.state());
  if (!is_json(asked.content_type)) {
    return refusal("Content-Type: allowed: application/json", 415);
  }
  const Json wanted = parse_body(asked.body);
  if (wanted.is_discarded()) {
    return refusal("body: allowed: a JSON object, not deeper than 4", 400);
  }
  const absl::Status status = session.order(wanted);
  if (!status.ok()) return refusal(std::string(status.message()), 400);
  return json_answer(session.state());
}

// First what holds without a scenario, under no name.
Json scenarios_json() {
  Json out = {{{"name", ""},
               {"summary", ""},
               {"parameters", values_json(sim::Parameters())}}};
  for (const sim::Scenario& scenario : sim::known_scenarios()) {
    out.push_back({{"name", scenario.name},
                   {"summary", scenario.summary},
                   {"parameters", values_json(with_blocks_from_memory(
                                      scenario.parameters()))}});
  }
  return out;
}

// Under the same check, whatever they answer.
http::ExtraPage api(std::string path,
                    std::function<PageAnswer(const PageRequest&)> answer,
                    bool takes_post = false) {
  return {.path = std::move(path),
          .takes_post = takes_post,
          .max_body_bytes = kMaxBody,
          .answer = [answer = std::move(answer)](const PageRequest& asked) {
            return is_own_request(asked.host, asked.origin)
                       ? answer(asked)
                       : refusal(
                             "Host, Origin: allowed: an address or localhost, "
                             "and the same one in both",
                             403);
          }};
}

}  // namespace

bool is_own_request(std::string_view host, std::string_view origin) {
  if (!origin.empty() && origin != "http://" + std::string(host)) return false;
  std::string_view name = host;
  if (name.starts_with('[')) return true;  // an IPv6 address
  name = name.substr(0, name.find(':'));
  if (name == "localhost") return true;
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isdigit(c) != 0 || c == '.';
  });
}

Json parse_body(std::string_view body) {
  bool too_deep = false;
  const auto look = [&too_deep](int depth, Json::parse_event_t /*event*/,
                                Json& /*parsed*/) {
    too_deep |= depth > kMaxDepth;
    return !too_deep;
  };
  Json parsed = Json::parse(body, look, /*allow_exceptions=*/false);
  return too_deep ? Json(Json::value_t::discarded) : parsed;
}

std::vector<http::ExtraPage> pages_of(Session& session,
                                      std::shared_ptr<Registry> registry) {
  std::vector<http::ExtraPage> pages;
  for (const Asset& asset : assets()) {
    pages.push_back({.path = std::string(asset.path),
                     .answer = [&asset](const PageRequest& /*asked*/) {
                       return PageAnswer{
                           .content_type = std::string(asset.content_type),
                           .body = std::string(asset.bytes)};
                     }});
  }
  pages.push_back(api(
      "/api/state",
      [&session](const PageRequest& asked) {
        return answer_state(session, asked);
      },
      /*takes_post=*/true));
  pages.push_back(api("/api/controls", [](const PageRequest& /*asked*/) {
    return json_answer(controls_json());
  }));
  pages.push_back(api("/api/scenarios", [](const PageRequest& /*asked*/) {
    static const Json scenarios = scenarios_json();
    return json_answer(scenarios);
  }));
  auto live = std::make_shared<LiveDoctor>(std::move(registry));
  pages.push_back(
      api("/api/doctor", [&session, live](const PageRequest& /*asked*/) {
        return json_answer(live->report(session.revision()));
      }));
  return pages;
}

}  // namespace vllm_metrics::sandbox
