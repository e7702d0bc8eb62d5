#pragma once

namespace vllm_metrics::inline v0::shm {

// Who has to know that the process is forked: its locks are taken before, and
// in the child it is told before fork() returns there. No one has to ask
// whether it is in a child. What knows of all cannot but be static: the system
// takes functions without an argument for it.
//
// Thread-safety: every member from any thread.
class ForkAware {
 public:
  ForkAware() = default;
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;

 protected:
  virtual ~ForkAware() = default;

  // From join() to leave().
  void join();
  void leave() noexcept;

  virtual void before_fork() noexcept = 0;
  virtual void after_fork(bool in_child) noexcept = 0;

 private:
  static void on_fork() noexcept;
  static void in_parent() noexcept;
  static void in_child() noexcept;

  ForkAware* next_ = nullptr;
};

}  // namespace vllm_metrics::inline v0::shm
