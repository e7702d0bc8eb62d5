#include "src/tools/sim/request.h"

#include "src/tools/sim/random.h"

namespace vllm_metrics::sim {

std::uint64_t Request::block_hash(std::int64_t index,
                                  std::int64_t block_size) const {
  const std::int64_t end = (index + 1) * block_size;
  const auto chunk = static_cast<std::size_t>((end - 1) / spec.chunk_tokens);
  const std::int64_t known = spec.known_tokens.value_or(spec.prompt_tokens);
  if (end <= known && chunk < spec.prefix.size()) {
    return chain(spec.prefix[chunk], static_cast<std::uint64_t>(index));
  }
  // Its own prompt or generated tokens: only the request itself finds these,
  // when it comes back after a preemption.
  constexpr std::uint64_t kOwn = 0x6f776e;
  return chain(chain(kOwn, static_cast<std::uint64_t>(id)),
               static_cast<std::uint64_t>(index));
}

}  // namespace vllm_metrics::sim
