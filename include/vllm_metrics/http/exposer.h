#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/exposition/text_format.h"

namespace vllm_metrics::inline v0 {
class Registry;
}

namespace vllm_metrics::inline v0::http {

struct ExposerOptions {
  // --- Where --------------------------------------------------------------

  // A numeric IPv4 or IPv6 address of this machine, loopback by default: a page
  // says much about a service. Or `unix:` and the absolute path of a Unix
  // domain socket, e.g. "unix:/run/engine.sock", whose permissions then decide
  // who may ask. A socket file that a dead process left is replaced.
  std::string address = "127.0.0.1";

  // Whether `address` may be every interface of the machine: "0.0.0.0" (all
  // IPv4) or "::" (all IPv6 and IPv4). Refused otherwise, since it is more than
  // one may think of; turn it on in a container, or behind a firewall.
  bool allow_all_interfaces = false;

  // Of the file of a Unix domain socket, 0 to 0777. Connecting needs the right
  // to write: 0660 also lets the group in.
  int unix_permissions = 0600;

  // 0 to 65535; 0 takes any free port, see Exposer::port(). The default is
  // where scrape configurations look for vLLM. Change it when the engine's own
  // API listens there. Not used with `unix:`.
  int port = 8000;

  // --- What ---------------------------------------------------------------

  // How pages are written.
  TextFormatOptions text_format = {};

  // Adds `process_*` (add_process_metrics) to the registry for as long as the
  // endpoint runs. Left out without an error where they are on the page
  // already, or the system has no /proc. Turn it off when several engines
  // share a process and only one endpoint is to show it.
  bool process_metrics = true;

  // --- Limits on clients --------------------------------------------------

  // Connections, 1 to 1024. One more takes the place of the one that has been
  // idle for the longest time (0.1 s at least), else of one that has been slow
  // for more than a second, so neither keeps a scraper out. Each costs
  // `connection_memory_bytes`, and a page while it is being sent. Raise it when
  // more clients than this scrape at the same time.
  int max_connections = 32;

  // For one request and its answer, 1 ms to 1 h: from its first byte (the first
  // request of a connection: from connecting) to the last byte of the answer.
  // A client that is slower is cut off, however steadily it trickles.
  // Prometheus gives up after 10 s too (`scrape_timeout`): raise both together.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(10);

  // How long a connection may wait for its next request, 1 ms to 24 h. Keep it
  // above the scrape interval, or each scrape has to connect anew.
  std::chrono::milliseconds keep_alive_timeout = std::chrono::minutes(2);

  // For the headers of one request and of its answer, 4096 to 1048576 bytes. A
  // request with more is answered 431 (414 when it is the path). Raise it for
  // clients behind a proxy that adds large headers.
  int connection_memory_bytes = 32768;
};

// An HTTP endpoint for Prometheus: GET or HEAD of `/metrics` (or `/metrics/`)
// answers the page of a registry, text format 0.0.4. Every other path is 404,
// every other method 405, a page that could not be made 503; a query is
// ignored. Nothing that a client sends becomes a metric.
//
// One thread of its own accepts, renders and sends; it takes no signal meant
// for the process and never makes a step wait. Each answer is one snapshot.
//
// Thread-safety: start() and all members from any thread.
// Errors: start() returns InvalidArgument for an option out of range (naming
// it, its value and what is allowed) and for a null registry, and otherwise an
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
