#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/http/exposer_options.h"

namespace vllm_metrics::inline v0 {
class Registry;
}

namespace vllm_metrics::inline v0::http {

// An HTTP endpoint for Prometheus: GET or HEAD of `/metrics` (or `/metrics/`)
// answers the page of a registry, in the format that the client's `Accept` asks
// for (negotiation.h), and one of `/health` that the endpoint is alive;
// ExposerOptions::extra_pages are the embedder's own. Every other path is 404,
// every other method 405, a missing login 401, a page that
// could not be made 503; a query is ignored. Nothing that a client sends
// becomes a metric.
//
// One thread of its own accepts, renders and sends; it takes no signal meant
// for the process and never makes a step wait. Each answer is one snapshot.
//
// Thread-safety: start() and all members from any thread.
// Errors: start() returns InvalidArgument for an option that is not allowed
// (naming it, its value, unless that is secret, and what is allowed) and for a
// null registry, for a file the system's reason, and otherwise an
// error naming address, port and the system's reason, e.g. `127.0.0.1:8000:
// Address already in use`. No socket is left behind then. Afterwards nothing
// fails towards the engine: what goes wrong is the client's answer.
// Fork: the child has no endpoint. Its copy of this object only closes the
// inherited socket, and leaves the file of a Unix domain socket alone; the
// parent's goes on.
class VLLM_METRICS_EXPORT Exposer {
 public:
  // Returns when connections are being accepted.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Exposer>> start(
      std::shared_ptr<Registry> registry, ExposerOptions options = {});

  ~Exposer();  // stop()
  Exposer(const Exposer&) = delete;
  Exposer& operator=(const Exposer&) = delete;

  // The port that is listened on, also when the options said 0; 0 for a Unix
  // domain socket.
  int port() const;

  // Where to point a scraper, e.g. "http://127.0.0.1:8000/metrics", or, in the
  // form that nginx's proxy_pass takes, "http://unix:/run/e.sock:/metrics".
  std::string url() const;

  // Closes the port, removes the socket's file and closes every connection,
  // waiting for at most one page that is being rendered, never for a client.
  // May be called twice.
  void stop();

 private:
  class Server;
  explicit Exposer(std::unique_ptr<Server> server);

  std::unique_ptr<Server> server_;
};

}  // namespace vllm_metrics::inline v0::http
