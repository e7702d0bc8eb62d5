#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/page_writer.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/http/extra_page.h"

namespace vllm_metrics::inline v0::http {

// A text, or the path of the file that holds it; not both. Files are read once,
// at start, up to 1 MiB.
struct TextOrFile {
  std::string text = {};
  std::string file = {};
};

// A user who may ask, by HTTP Basic authentication.
struct BasicLogin {
  // 1 to 128 bytes, no colon.
  std::string user = {};
  // 1 to 240 bytes, no control characters; of a file without the line's end.
  TextOrFile password = {};
};

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

  // How pages are written, for those who ask for text and for OpenMetrics.
  TextFormatOptions text_format = {};
  OpenMetricsOptions open_metrics = {};

  // Compresses pages for clients that accept it, as Prometheus does: to about a
  // tenth, for 1 to 2 ms of the endpoint's thread per MB. Turn it off where all
  // scrapers are on the same machine.
  bool gzip = true;

  // Makes the writer for those who ask for protobuf, with which native
  // histograms come: protobuf::page_writer. Null: they get what they name next.
  std::function<std::unique_ptr<PageWriter>()> protobuf = {};

  // Adds `process_*` (add_process_metrics) to the registry for as long as the
  // endpoint runs. Left out without an error where they are on the page
  // already, or the system has no /proc. Turn it off when several engines
  // share a process and only one endpoint is to show it.
  bool process_metrics = true;

  // Adds `vllm_metrics_http_*` for as long as the endpoint runs: requests,
  // connections and render times of this endpoint, told from others by the
  // label `address`. No client chooses a name or label.
  bool self_metrics = true;

  // A path that answers `ok` as long as the endpoint's thread runs, and says
  // nothing else: for liveness probes. "" for none.
  std::string health_path = "/health";

  // Further paths, each another one, and none of those above.
  std::vector<ExtraPage> extra_pages = {};

  // --- Who may ask --------------------------------------------------------

  // With at least one login or token, every request needs one of them; others
  // get 401 whatever they ask for. Without TLS they travel in plain text: fit
  // for loopback, a Unix domain socket, or behind a proxy that has TLS.
  std::vector<BasicLogin> basic_logins = {};

  // Tokens for HTTP Bearer authentication, each 1 to 512 of the characters
  // A-Z a-z 0-9 - . _ ~ + / and =; of a file without the line's end. Several,
  // so that a new one is valid before the old one goes.
  std::vector<TextOrFile> bearer_tokens = {};

  // Whether `health_path` is answered without a login, as probes have none.
  bool public_health = false;

  // --- TLS ----------------------------------------------------------------

  // With both, the endpoint speaks TLS 1.2 and 1.3 and nothing else; with
  // neither, no TLS. PEM: the certificate with those that signed it behind it,
  // and its private key, without a passphrase. Clients need no certificate.
  // libmicrohttpd does it; one that was built without TLS is an error.
  TextOrFile tls_certificate = {};
  TextOrFile tls_key = {};

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
}  // namespace vllm_metrics::inline v0::http
