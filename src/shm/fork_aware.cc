#include "src/shm/fork_aware.h"

#include <pthread.h>

#include "src/registry/mutex.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constinit Mutex mutex;
constinit ForkAware* first ABSL_GUARDED_BY(mutex) = nullptr;
constinit bool is_installed ABSL_GUARDED_BY(mutex) = false;

}  // namespace

void ForkAware::join() {
  const MutexLock lock(mutex);
  if (!is_installed)
    is_installed = ::pthread_atfork(on_fork, in_parent, in_child) == 0;
  next_ = first;
  first = this;
}

void ForkAware::leave() noexcept {
  const MutexLock lock(mutex);
  for (ForkAware** at = &first; *at != nullptr; at = &(*at)->next_) {
    if (*at != this) continue;
    *at = next_;
    return;
  }
}

void ForkAware::on_fork() noexcept ABSL_NO_THREAD_SAFETY_ANALYSIS {
  mutex.lock();
  for (ForkAware* at = first; at != nullptr; at = at->next_) at->before_fork();
}

void ForkAware::in_parent() noexcept ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (ForkAware* at = first; at != nullptr; at = at->next_)
    at->after_fork(/*in_child=*/false);
  mutex.unlock();
}

void ForkAware::in_child() noexcept ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (ForkAware* at = first; at != nullptr; at = at->next_)
    at->after_fork(/*in_child=*/true);
  mutex.unlock();
}

}  // namespace vllm_metrics::inline v0::shm
