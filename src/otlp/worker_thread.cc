#include "src/otlp/worker_thread.h"

#include <pthread.h>
#include <signal.h>

namespace vllm_metrics::inline v0::otlp {

void WorkerThread::start(Job job) {
  job_ = std::move(job);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WorkerThread::run() {
  bool last = false;
  while (!last) {
    std::uint64_t asked = 0;
    double seconds = job_time_;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(mutex_, Seconds(interval_),
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                          return stopping_ || asked_ > done_;
                        });
      asked = asked_;
      last = last_run_ = stopping_;
      if (last)
        seconds = Seconds(stop_by_ - std::chrono::steady_clock::now()).count();
    }
    const bool well_done = job_(seconds);
    MutexLock lock(mutex_);
    done_ = asked;
    well_done_ = well_done;
    ended_ = last;
    changed_.notify_all();
  }
}

bool WorkerThread::run_now(double timeout) {
  if (!is_here()) return false;
  MutexLock lock(mutex_);
  if (stopping_) return false;
  const std::uint64_t mine = ++asked_;
  changed_.notify_all();
  const bool done = changed_.wait_for(
      mutex_, Seconds(timeout),
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_ >= mine; });
  return done && well_done_;
}

void WorkerThread::stop(double timeout) {
  if (!thread_.joinable() || !is_here()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stop_by_ = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<Time::duration>(Seconds(timeout));
    changed_.notify_all();
    if (!changed_.wait_for(
            mutex_, Seconds(timeout),
            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; }))
      transport_->cancel();
  }
  thread_.join();
}

bool WorkerThread::wait(double seconds) {
  MutexLock lock(mutex_);
  // What the last run may take is bounded; before it, whoever stops the thread
  // does not want to wait for a pause to end.
  if (last_run_) {
    changed_.wait_for(mutex_, Seconds(seconds));
    return true;
  }
  return !changed_.wait_for(
      mutex_, Seconds(seconds),
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
}

}  // namespace vllm_metrics::inline v0::otlp
