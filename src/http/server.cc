#include "src/http/server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/http/request_values.h"

namespace vllm_metrics::inline v0::http {
namespace {

using Clock = std::chrono::steady_clock;

// After an accept that failed, e.g. for want of file descriptors.
constexpr std::int64_t kAcceptPauseMs = 100;

struct ResponseDeleter {
  void operator()(MHD_Response* response) const {
    MHD_destroy_response(response);
  }
};
using Response = std::unique_ptr<MHD_Response, ResponseDeleter>;

Response response_of(Answer& answer) {
  if (answer.page == nullptr) {
    // MHD takes every body as void*; this kind it only reads.
    return Response(MHD_create_response_from_buffer(
        answer.text.size(), const_cast<char*>(answer.text.data()),
        MHD_RESPMEM_PERSISTENT));
  }
  std::string& text = answer.page->text;
  Response response(MHD_create_response_from_buffer_with_free_callback_cls(
      text.size(), text.data(), &BodyPool::give_back, answer.page.get()));
  // The response gives it back.
  if (response != nullptr) static_cast<void>(answer.page.release());
  return response;
}

// MHD_NO, which ends the connection, when there is no memory.
MHD_Result send(MHD_Connection* connection, Answer answer) {
  const Response response = response_of(answer);
  if (response == nullptr) return MHD_NO;
  for (const auto& [name, value] : answer.headers) {
    if (name != nullptr &&
        MHD_add_response_header(response.get(), name, value) != MHD_YES) {
      return MHD_NO;
    }
  }
  return MHD_queue_response(connection, answer.status, response.get());
}

// The body of a request to an extra page, as it comes in.
struct Upload {
  std::size_t allowed;
  std::string text = {};
  bool is_too_large = false;

  // False without memory.
  bool add(std::string_view part) noexcept {
    is_too_large |= part.size() > allowed - text.size();
    if (is_too_large) {
      text.clear();
      allowed = 0;  // nothing of it is kept
      return true;
    }
    try {
      text += part;
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }
};

// Keeps the engine's signals on the engine's threads: one started meanwhile
// takes none but those that say what it did itself, or that it is profiled.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int own :
         {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&blocked, own);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

ConnectionTable::Connection& find(MHD_Connection* connection) {
  return *static_cast<ConnectionTable::Connection*>(
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
          ->socket_context);
}

}  // namespace

Exposer::Server::Server(std::shared_ptr<Registry> registry,
                        ExposerOptions options, Access access,
                        Listener listener)
    : registry_(std::move(registry)),
      options_(std::move(options)),
      access_(std::move(access)),
      pid_(getpid()),
      listener_(std::move(listener)),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      connections_({.max_connections =
                        static_cast<std::size_t>(options_.max_connections),
                    .request_timeout = options_.request_timeout,
                    .keep_alive_timeout = options_.keep_alive_timeout}),
      handler_(registry_, options_) {}

Exposer::Server::~Server() { stop(); }

bool Exposer::Server::in_own_process() const { return getpid() == pid_; }

absl::Status Exposer::Server::start(const std::optional<TlsIdentity>& tls) {
  if (auto status = start_daemon(tls); !status.ok()) return status;
  handler_.add_process_metrics();
  if (options_.self_metrics) {
    metrics_ = EndpointMetrics::add_to(*registry_, listener_.name);
  }
  const SignalsBlocked blocked;
  const MutexLock lock(stop_mutex_);
  try {
    thread_ = std::thread(&Server::run, this);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the endpoint's thread: ", error.what()));
  }
  return absl::OkStatus();
}

absl::Status Exposer::Server::start_daemon(
    const std::optional<TlsIdentity>& tls) {
  if (stop_event_.value() < 0) return absl::ErrnoToStatus(errno, "eventfd");
  if (tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
    return absl::UnimplementedError(
        absl::StrCat(tls->origin, ": libmicrohttpd was built without TLS"));
  }
  std::array<MHD_OptionItem, 4> tls_options{};  // one for the end
  if (tls) {
    const auto text = [](const std::string& pem) {
      return const_cast<char*>(pem.c_str());  // only read
    };
    tls_options[0] = {MHD_OPTION_HTTPS_MEM_CERT, 0, text(tls->certificate)};
    tls_options[1] = {MHD_OPTION_HTTPS_MEM_KEY, 0, text(tls->key)};
    tls_options[2] = {MHD_OPTION_HTTPS_PRIORITIES, 0,
                      const_cast<char*>(kTlsPriorities)};
  }
  static_assert(MHD_OPTION_END == 0);
  daemon_.reset(MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
          (tls ? MHD_USE_TLS : 0),
      0, nullptr, nullptr, &Server::on_request, this,  //
      MHD_OPTION_EXTERNAL_LOGGER, &Server::on_log, this,
      MHD_OPTION_NOTIFY_CONNECTION, &Server::on_connection, this,
      MHD_OPTION_NOTIFY_COMPLETED, &Server::on_request_end, this,
      MHD_OPTION_CONNECTION_LIMIT,
      static_cast<unsigned int>(connections_.capacity()),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      static_cast<std::size_t>(options_.connection_memory_bytes),
      MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,  // blocked on our thread
      MHD_OPTION_ARRAY, tls_options.data(), MHD_OPTION_END));
  if (daemon_ == nullptr) {
    const std::string reason =
        absl::StrCat("libmicrohttpd did not start: ",
                     complaint_.empty() ? std::generic_category().message(errno)
                                        : complaint_);
    return tls ? absl::InvalidArgumentError(
                     absl::StrCat(tls->origin, ": ", reason))
               : absl::ResourceExhaustedError(reason);
  }
  has_tls_ = tls.has_value();
  epoll_fd_ =
      MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  return absl::OkStatus();
}

// Of what MHD says only the first is of use, why it did not start.
void Exposer::Server::on_log(void* self, const char* format,
                             std::va_list arguments) {
  auto& server = *static_cast<Server*>(self);
  if (server.daemon_ != nullptr || !server.complaint_.empty()) return;
  std::array<char, 256> text{};
  if (std::vsnprintf(text.data(), text.size(), format, arguments) < 0) return;
  server.complaint_ = text.data();
  while (server.complaint_.ends_with('\n')) server.complaint_.pop_back();
}

void Exposer::Server::stop() {
  const MutexLock lock(stop_mutex_);
  if (!thread_.joinable()) return;
  const std::uint64_t once = 1;
  // Cannot fail: nobody else adds to the event's count.
  [[maybe_unused]] const auto written =
      write(stop_event_.value(), &once, sizeof once);
  thread_.join();
}

void Exposer::Server::run() noexcept {
  pthread_setname_np(pthread_self(), "vllm_metrics");
  for (;;) {
    const bool accepting = !connections_.full() && !accept_failed_;
    accept_failed_ = false;
    pollfd fds[] = {
        {.fd = stop_event_.value(), .events = POLLIN, .revents = 0},
        {.fd = epoll_fd_, .events = POLLIN, .revents = 0},
        {.fd = accepting ? listener_.socket.value() : -1,
         .events = POLLIN,
         .revents = 0},
    };
    poll(fds, std::size(fds), wait_ms(!accepting));
    if (fds[0].revents != 0) break;
    if (fds[2].revents != 0) accept_waiting();
    connections_.note_arrivals(Clock::now());
    MHD_run(daemon_.get());
    connections_.sweep(Clock::now());
  }
  // Also for the copies that forked children have: the port is free now.
  shutdown(listener_.socket.value(), SHUT_RDWR);
  listener_.socket.reset();
  listener_.file.remove();
  connections_.cut_all();
  daemon_.reset();
  metrics_.reset();
  handler_.remove_process_metrics();
}

// How long nothing will happen unless a socket becomes ready; -1 for ever.
int Exposer::Server::wait_ms(bool pausing) const {
  std::int64_t wait = pausing ? kAcceptPauseMs : INT_MAX;
  MHD_UNSIGNED_LONG_LONG mhd = 0;
  if (MHD_get_timeout(daemon_.get(), &mhd) == MHD_YES) {
    wait = std::min(wait, static_cast<std::int64_t>(mhd));
  }
  if (const auto next = connections_.next_deadline()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
    wait = std::clamp<std::int64_t>(left.count(), 0, wait);
  }
  return wait == INT_MAX ? -1 : static_cast<int>(wait);
}

// At the limit one at a time, so that the next one to go has been heard.
void Exposer::Server::accept_waiting() {
  do {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    auto* const address = reinterpret_cast<sockaddr*>(&peer);
    const int fd = accept4(listener_.socket.value(), address, &size,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      accept_failed_ = errno != EAGAIN;
      if (accept_failed_ && metrics_) metrics_->count_accept_error();
      return;
    }
    // Closes it on failure.
    if (MHD_add_connection(daemon_.get(), fd, address, size) != MHD_YES &&
        metrics_) {
      metrics_->count_accept_error();
    }
  } while (!connections_.at_limit());
}

void Exposer::Server::on_connection(void* self, MHD_Connection* connection,
                                    void** context,
                                    MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<Server*>(self);
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    auto& closed = *static_cast<Connection*>(*context);
    if (server.metrics_) server.metrics_->count_end(closed.end);
    server.connections_.close(closed);
    server.note_open();
    return;
  }
  const int fd =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
          ->connect_fd;
  *context = &server.connections_.open(fd, Clock::now());
  server.note_open();
}

// Called first when the headers are there, then for each piece of a body, then
// when the request is whole, which is what we answer: MHD closes a connection
// that was answered earlier.
MHD_Result Exposer::Server::on_request(void* self, MHD_Connection* connection,
                                       const char* path, const char* method,
                                       const char* /*version*/,
                                       const char* upload,
                                       std::size_t* upload_size,
                                       void** request) {
  auto& server = *static_cast<Server*>(self);
  if (*request == nullptr) {
    find(connection).begin_request(Clock::now());
    *request = server.make_upload(path, method);
    return *request == nullptr ? MHD_NO : MHD_YES;
  }
  const bool has_upload = *request != &server;
  Upload* const body = has_upload ? static_cast<Upload*>(*request) : nullptr;
  if (*upload_size != 0) {
    const std::string_view part(upload, *upload_size);
    *upload_size = 0;
    return body == nullptr || body->add(part) ? MHD_YES : MHD_NO;
  }
  const QueryNames names(connection);
  std::string accept;
  std::string encoding;
  const auto header = [connection](std::string_view name) {
    return find_header(connection, name).value_or("");
  };
  const Request asked{
      .method = method,
      .path = path,
      .names = names.found(),
      .accept = find_list(connection, MHD_HTTP_HEADER_ACCEPT, accept),
      .accept_encoding =
          find_list(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING, encoding),
      .host = header(MHD_HTTP_HEADER_HOST),
      .origin = header(MHD_HTTP_HEADER_ORIGIN),
      .content_type = header(MHD_HTTP_HEADER_CONTENT_TYPE),
      .body = body != nullptr ? std::string_view(body->text) : "",
      .body_is_too_large = body != nullptr && body->is_too_large};
  return server.respond(connection, asked);
}

// The server itself stands for a request whose body nobody reads.
void* Exposer::Server::make_upload(std::string_view path,
                                   std::string_view method) noexcept {
  const ExtraPage* const page = handler_.find_extra_page(path);
  if (page == nullptr || !page->takes_post || method != "POST") return this;
  return new (std::nothrow) Upload{.allowed = page->max_body_bytes};
}

MHD_Result Exposer::Server::respond(MHD_Connection* connection,
                                    const Request& request) noexcept {
  const auto begin = Clock::now();
  Answer made = answer(connection, request);
  const auto time = Clock::now() - begin;
  const unsigned int status = made.status;
  const bool has_page = made.page != nullptr;
  const bool is_metrics = made.is_metrics;
  const std::size_t size = has_page ? made.page->text.size() : made.text.size();
  const auto result = send(connection, std::move(made));
  if (!metrics_ || result != MHD_YES) return result;
  metrics_->count_answer(status);
  if (is_metrics) metrics_->observe_render(time);
  find(connection).body_bytes = request.method == "HEAD" ? 0 : size;
  return result;
}

Answer Exposer::Server::answer(MHD_Connection* connection,
                               const Request& request) noexcept {
  const bool is_public =
      access_.is_open() ||
      (options_.public_health && request.path == options_.health_path);
  if (!is_public) {
    const auto login = find_header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!login || !access_.allows(*login)) return access_.refusal();
  }
  return handler_.answer(request);
}

void Exposer::Server::on_request_end(void* self, MHD_Connection* connection,
                                     void** request,
                                     MHD_RequestTerminationCode code) {
  auto& server = *static_cast<Server*>(self);
  if (*request != &server) delete static_cast<Upload*>(*request);
  Connection& ended = find(connection);
  if (server.metrics_ && code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
    server.metrics_->count_body(ended.body_bytes);
  }
  ended.end_request(Clock::now());
}

}  // namespace vllm_metrics::inline v0::http
