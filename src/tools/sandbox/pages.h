#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/tools/sandbox/session.h"
#include "vllm_metrics/http/extra_page.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::sandbox {

// The page, its files, and the control interface of docs/sandbox.md.
// `session` must outlive the endpoint.
std::vector<http::ExtraPage> pages_of(Session& session,
                                      std::shared_ptr<Registry> registry);

// Whether a request comes from the page itself or from no browser: `host` is an
// address or localhost, not a name that another site may have pointed here, and
// `origin`, if there is one, is that host.
bool is_own_request(std::string_view host, std::string_view origin);

// The object that a body holds; discarded when it is not JSON or nested deeper
// than any order is.
Json parse_body(std::string_view body);

}  // namespace vllm_metrics::sandbox
