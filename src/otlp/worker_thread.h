#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "src/registry/mutex.h"
#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::inline v0::otlp {

// Why an exporter did not start.
inline absl::Status no_thread() {
  return absl::ResourceExhaustedError(
      "the system has no thread to export with");
}

// When the job that is due at `due`, and begins `now`, is due again: its
// interval is from begin to begin, however long it takes; of what is overdue
// then, all but one is left out.
inline std::chrono::steady_clock::time_point next_begin(
    std::chrono::steady_clock::time_point due,
    std::chrono::steady_clock::duration interval,
    std::chrono::steady_clock::time_point now) {
  return due + interval > now ? due + interval : now + interval;
}

// A thread that does one job each interval, at once when asked, and a last
// time before it ends. It takes no signal meant for the process.
//
// Thread-safety: every member from any thread; wait() from the job.
class WorkerThread {
 public:
  // Does it within `seconds`; true: well done. It may throw: not well done.
  using Job = std::function<bool(double seconds)>;

  // `transport` is what the job may hang in.
  WorkerThread(double interval, double job_time,
               std::shared_ptr<Transport> transport)
      : interval_(interval),
        job_time_(job_time),
        transport_(std::move(transport)) {}
  ~WorkerThread() { stop(0.0); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Looked at twenty times a second, under a lock: true has the job done before
  // its time, if it was well done the last time.
  using Early = std::function<bool()>;

  // False: the system has no thread for it.
  [[nodiscard]] bool start(Job job, Early early = {});

  // Has it done now. False: it was not well done within `timeout` seconds.
  bool run_now(double timeout);

  // Does it a last time, within `timeout` seconds, and ends; then the transport
  // is cancelled, and the thread waits for nothing more. May be called twice,
  // at the same time too: the shortest timeout counts.
  void stop(double timeout);

  // False in the child of a fork, which has no such thread and must leave this
  // object alone: even to destroy it would wait for a waiter that is not there.
  bool is_here() const { return ::getpid() == owner_; }

  // A pause inside the job; false when it is to give up.
  bool wait(double seconds);

 private:
  using Seconds = std::chrono::duration<double>;
  using Time = std::chrono::steady_clock::time_point;
  void run();
  void wait_for_work(Time until, bool may_be_early)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const double interval_;
  const double job_time_;
  const std::shared_ptr<Transport> transport_;
  const pid_t owner_ = ::getpid();
  Job job_;
  Early early_;
  Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of run_now()
  std::uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;   // of them
  bool well_done_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool last_run_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Time stop_by_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace vllm_metrics::inline v0::otlp
