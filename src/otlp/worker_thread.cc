#include "src/otlp/worker_thread.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>

namespace vllm_metrics::inline v0::otlp {
namespace {

// A day at most; more would overflow the clock's arithmetic.
std::chrono::duration<double> bounded(double seconds) {
  constexpr double kMost = 86'400.0;
  return std::chrono::duration<double>(seconds > 0.0 ? std::min(seconds, kMost)
                                                     : 0.0);
}

}  // namespace

bool WorkerThread::start(Job job, Early early) {
  job_ = std::move(job);
  early_ = std::move(early);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    MutexLock lock(join_mutex_);
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    MutexLock lock(mutex_);
    started = false;
    ended_ = true;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void WorkerThread::wait_for_work(Time until, bool may_be_early) {
  constexpr std::chrono::milliseconds kLook(50);
  const bool looks = may_be_early && early_ != nullptr;
  for (;;) {
    const Time now = std::chrono::steady_clock::now();
    if (stopping_ || asked_ > done_ || now >= until || (looks && early_()))
      return;
    changed_.wait_until(mutex_, looks ? std::min(until, now + kLook) : until);
  }
}

void WorkerThread::run() {
  const auto interval =
      std::chrono::duration_cast<Time::duration>(bounded(interval_));
  Time next = std::chrono::steady_clock::now() + interval;
  bool last = false;
  bool well_done = true;
  while (!last) {
    std::uint64_t asked = 0;
    double seconds = job_time_;
    {
      MutexLock lock(mutex_);
      wait_for_work(next, well_done);
      asked = asked_;
      last = last_run_ = stopping_;
      if (last)
        seconds = Seconds(stop_by_ - std::chrono::steady_clock::now()).count();
    }
    if (const Time now = std::chrono::steady_clock::now(); now >= next)
      next = next_begin(next, interval, now);
    well_done = false;
    try {
      well_done = job_(seconds);
    } catch (...) {  // no memory: the engine lives on without this export
    }
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
      mutex_, bounded(timeout),
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_ >= mine; });
  return done && well_done_;
}

void WorkerThread::stop(double timeout) {
  if (!is_here()) return;
  {
    MutexLock lock(mutex_);
    const Time by =
        std::chrono::steady_clock::now() +
        std::chrono::duration_cast<Time::duration>(bounded(timeout));
    stop_by_ = stopping_ ? std::min(stop_by_, by) : by;
    stopping_ = true;
    changed_.notify_all();
    const bool ended = changed_.wait_until(
        mutex_, by,
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; });
    if (!ended && !cancelled_) {
      cancelled_ = true;
      transport_->cancel();
      changed_.notify_all();
    }
  }
  MutexLock lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

bool WorkerThread::wait(double seconds) {
  MutexLock lock(mutex_);
  // What the last run may take is bounded; before it, whoever stops the thread
  // does not want to wait for a pause to end.
  return !changed_.wait_for(mutex_, Seconds(seconds),
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                              return cancelled_ || (stopping_ && !last_run_);
                            });
}

}  // namespace vllm_metrics::inline v0::otlp
