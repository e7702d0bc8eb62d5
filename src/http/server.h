#pragma once

#include <microhttpd.h>
#include <sys/types.h>

#include <cstdarg>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "src/http/access.h"
#include "src/http/connection_table.h"
#include "src/http/endpoint_metrics.h"
#include "src/http/listener.h"
#include "src/http/request_handler.h"
#include "src/http/tls.h"
#include "src/registry/mutex.h"
#include "src/registry/unique_fd.h"
#include "vllm_metrics/http/exposer.h"

namespace vllm_metrics::inline v0::http {

struct DaemonStopper {
  void operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }
};
using Daemon = std::unique_ptr<MHD_Daemon, DaemonStopper>;

// The endpoint's thread and everything it owns: sockets, clients and limits.
//
// MHD speaks HTTP, on our thread and on connections that we accept: a thread of
// its own would need a second one that enforces deadlines, and locks between
// the two; and its accept, once out of file descriptors, rests until the last
// scraper disconnects, or spins.
class Exposer::Server {
 public:
  Server(std::shared_ptr<Registry> registry, ExposerOptions options,
         Access access, Listener listener);
  ~Server();

  // Without `tls`, plain HTTP.
  absl::Status start(const std::optional<TlsIdentity>& tls);
  void stop() ABSL_LOCKS_EXCLUDED(stop_mutex_);

  bool has_tls() const { return has_tls_; }

  // False in a forked child, which has neither the thread nor its sockets.
  bool in_own_process() const;
  void close_inherited() { listener_.socket.reset(); }

  // Its socket is the endpoint's thread's.
  const Listener& listener() const { return listener_; }

 private:
  using Connection = ConnectionTable::Connection;

  absl::Status start_daemon(const std::optional<TlsIdentity>& tls);

  // On the endpoint's thread, as is all that MHD calls.
  void run() noexcept;
  int wait_ms(bool pausing) const;
  void accept_waiting();
  MHD_Result respond(MHD_Connection* connection,
                     const Request& request) noexcept;
  Answer answer(MHD_Connection* connection, const Request& request) noexcept;
  void* make_upload(std::string_view path, std::string_view method) noexcept;

  void note_open() noexcept {
    if (metrics_) metrics_->connections(connections_.size());
  }

  static void on_log(void* self, const char* format, std::va_list arguments)
      __attribute__((format(printf, 2, 0)));
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
  const Access access_;
  const pid_t pid_;
  Listener listener_;
  UniqueFd stop_event_;

  ConnectionTable connections_;
  RequestHandler handler_;
  std::optional<EndpointMetrics> metrics_;
  std::string complaint_;  // of MHD, when it does not start
  Daemon daemon_;
  bool has_tls_ = false;
  int epoll_fd_ = -1;  // the daemon's
  bool accept_failed_ = false;

  Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace vllm_metrics::inline v0::http
