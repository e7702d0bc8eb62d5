#pragma once

#include <memory>
#include <string>
#include <string_view>

// zlib's state, which its own header would bring with macros.
struct z_stream_s;

namespace vllm_metrics::inline v0::http {

// Compresses pages. The state of zlib is made for the first one and then used
// again: the next pages allocate nothing.
//
// Level 1: a page of 32 kB becomes one of 2.8 kB; level 6 takes three times as
// long for 2.4 kB.
//
// Thread-safety: one thread.
class Gzip {
 public:
  // Puts `page` as a gzip stream into `out`, whose memory is used again. False
  // when there is no memory for the state.
  bool compress(std::string_view page, std::string& out);

 private:
  struct Free {
    void operator()(z_stream_s* stream) const noexcept;
  };
  std::unique_ptr<z_stream_s, Free> stream_;
};

}  // namespace vllm_metrics::inline v0::http
