#pragma once

#include <microhttpd.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "src/http/body_pool.h"
#include "src/http/connection_table.h"
#include "src/http/listener.h"
#include "src/http/unique_fd.h"
#include "src/registry/mutex.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0::http {

struct ResponseDeleter {
  void operator()(MHD_Response* response) const {
    MHD_destroy_response(response);
  }
};
using Response = std::unique_ptr<MHD_Response, ResponseDeleter>;

struct DaemonStopper {
  void operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }
};
using Daemon = std::unique_ptr<MHD_Daemon, DaemonStopper>;

// The endpoint's thread and everything it owns.
//
// MHD speaks HTTP, on our thread and on connections that we accept: a thread of
// its own would need a second one that enforces deadlines, and locks between
// the two; and its accept, once out of file descriptors, rests until the last
// scraper disconnects, or spins.
class Exposer::Server {
 public:
  Server(std::shared_ptr<Registry> registry, ExposerOptions options,
         Listener listener);
  ~Server();

  absl::Status start();
  void stop() ABSL_LOCKS_EXCLUDED(stop_mutex_);

  // False in a forked child, which has neither the thread nor its sockets.
  bool in_own_process() const;
  void close_inherited() { listener_.socket.reset(); }

  int port() const { return listener_.port; }
  const std::string& host() const { return listener_.host; }

 private:
  using Connection = ConnectionTable::Connection;

  absl::Status start_daemon();
  bool create_responses();

  // On the endpoint's thread, as is all that MHD calls.
  void run() noexcept;
  int wait_ms(bool pausing) const;
  void accept_waiting();
  MHD_Result answer(MHD_Connection* connection, std::string_view path,
                    std::string_view method) noexcept;
  Response render() noexcept;
  bool add_missing_process_metrics();

  static MHD_Result on_request(void* self, MHD_Connection* connection,
                               const char* path, const char* method,
                               const char* version, const char* upload,
                               std::size_t* upload_size, void** request);
  static void on_request_end(void* self, MHD_Connection* connection,
                             void** request, MHD_RequestTerminationCode code);
  static void on_connection(void* self, MHD_Connection* connection,
                            void** context,
                            MHD_ConnectionNotificationCode code);

  const std::shared_ptr<Registry> registry_;
  const ExposerOptions options_;
  const pid_t pid_;
  Listener listener_;
  UniqueFd stop_event_;

  ConnectionTable connections_;
  BodyPool bodies_;
  TextFormat format_;
  Snapshot snapshot_;
  Response not_found_, not_allowed_, unavailable_;
  Daemon daemon_;
  int epoll_fd_ = -1;  // the daemon's
  bool accept_failed_ = false;

  // Ours once we could register them; another endpoint may have done it.
  std::optional<Registration> process_metrics_;
  std::shared_ptr<const Schema> last_schema_;

  Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace vllm_metrics::inline v0::http
