#include "vllm_metrics/stats/kv_residency_sampler.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::int64_t kMaxBlocks = UINT32_MAX;
constexpr std::int64_t kMaxPendingEvents = std::int64_t{1} << 24;
constexpr std::size_t kFirstTableSize = 16;

std::string text_of(double value) {
  char digits[32];
  const auto [end, error] =
      std::to_chars(std::begin(digits), std::end(digits), value);
  return error == std::errc() ? std::string(std::begin(digits), end) : "?";
}

std::string refusal_of_count(const char* name, std::int64_t value,
                             std::int64_t most) {
  if (value >= 1 && value <= most) return {};
  return std::string(name) + " = " + std::to_string(value) +
         " is not in 1 to " + std::to_string(most);
}

std::string refusal_of(const KvResidencySamplerOptions& options) {
  const double rate = options.sample_rate;
  if (!(rate > 0.0 && rate <= 1.0)) {
    return "sample_rate = " + text_of(rate) + " is not above 0 and at most 1";
  }
  std::string refusal =
      refusal_of_count("num_blocks", options.num_blocks, kMaxBlocks);
  if (!refusal.empty()) return refusal;
  return refusal_of_count("max_pending_events", options.max_pending_events,
                          kMaxPendingEvents);
}

// Wraps like the clock would, for stamps from anywhere.
double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
  const auto difference =
      static_cast<std::uint64_t>(to_ns) - static_cast<std::uint64_t>(from_ns);
  return static_cast<double>(static_cast<std::int64_t>(difference)) / 1e9;
}

}  // namespace

std::optional<KvResidencySampler> KvResidencySampler::create(
    Options options, std::string* error) {
  std::string refusal = refusal_of(options);
  if (refusal.empty()) return KvResidencySampler(std::move(options));
  if (error != nullptr) *error = std::move(refusal);
  return std::nullopt;
}

KvResidencySampler::KvResidencySampler(Options options)
    : bits_((static_cast<std::size_t>(options.num_blocks) + 63) / 64),
      num_blocks_(static_cast<std::uint64_t>(options.num_blocks)),
      sample_rate_(options.sample_rate),
      random_state_(options.seed),
      uniform_(std::move(options.uniform)),
      table_(kFirstTableSize, SampledBlock{.block = kNoBlock}),
      max_pending_(static_cast<std::size_t>(options.max_pending_events)) {
  // Address space only: a page is used when an event is written to it.
  pending_.reserve(max_pending_);
  if (!uniform_) allocations_until_draw_ = next_gap();
}

void KvResidencySampler::reset() noexcept {
  std::fill(bits_.begin(), bits_.end(), 0);
  std::fill(table_.begin(), table_.end(), SampledBlock{.block = kNoBlock});
  num_sampled_ = 0;
  pending_.clear();
}

void KvResidencySampler::drain(SchedulerStats& step) {
  step.kv_cache_eviction_events.clear();
  drain(step.kv_cache_eviction_events);
  step.num_dropped_eviction_events = static_cast<std::int64_t>(
      num_dropped_ - std::exchange(num_dropped_told_, num_dropped_));
}

void KvResidencySampler::drain(std::vector<KvCacheEvictionEvent>& events) {
  events.insert(events.end(), pending_.begin(), pending_.end());
  pending_.clear();
}

// SplitMix64, its upper 53 bits.
double KvResidencySampler::next_uniform() {
  random_state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = random_state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  mixed ^= mixed >> 31;
  return static_cast<double>(mixed >> 11) * 0x1p-53;
}

// How many allocations to the next sampled one, that one included. Flipping a
// coin of the sample rate for each allocation gives this distribution too.
std::uint64_t KvResidencySampler::next_gap() {
  constexpr double kMaxGap = 0x1p62;
  if (sample_rate_ >= 1.0) return 1;
  const double not_sampled =
      std::log1p(-next_uniform()) / std::log1p(-sample_rate_);
  if (!(not_sampled < kMaxGap)) return static_cast<std::uint64_t>(kMaxGap);
  return 1 + static_cast<std::uint64_t>(not_sampled);
}

void KvResidencySampler::draw(std::int64_t block, std::int64_t now_ns) {
  if (uniform_) {
    allocations_until_draw_ = 1;
    if (!(uniform_() < sample_rate_)) return;
  } else {
    allocations_until_draw_ = next_gap();
  }
  const auto id = static_cast<std::uint64_t>(block);
  if (id < num_blocks_) follow(static_cast<std::uint32_t>(id), now_ns);
}

void KvResidencySampler::follow(std::uint32_t block, std::int64_t now_ns) {
  if ((num_sampled_ + 1) * 4 > table_.size() * 3) grow();
  const std::size_t place = place_of(block);
  if (!in_use(place)) ++num_sampled_;
  table_[place] = {.block = block, .birth_ns = now_ns};
  bits_[block / 64] |= std::uint64_t{1} << (block % 64);
}

void KvResidencySampler::access(std::int64_t block,
                                std::int64_t now_ns) noexcept {
  SampledBlock& sampled = table_[place_of(static_cast<std::uint32_t>(block))];
  sampled.access_ns[sampled.num_accesses % kHistory] = now_ns;
  // From there on only the place in the ring matters, not how many there were.
  if (++sampled.num_accesses == 2 * kHistory) sampled.num_accesses = kHistory;
}

void KvResidencySampler::evict(std::int64_t block,
                               std::int64_t now_ns) noexcept {
  const auto id = static_cast<std::uint32_t>(block);
  const std::size_t place = place_of(id);
  if (pending_.size() < max_pending_) {
    add_event(table_[place], now_ns);
  } else {
    ++num_dropped_;
  }
  remove(place);
  bits_[id / 64] &= ~(std::uint64_t{1} << (id % 64));
}

void KvResidencySampler::add_event(const SampledBlock& sampled,
                                   std::int64_t now_ns) noexcept {
  const std::size_t end = sampled.num_accesses;
  const std::size_t begin = end > kHistory ? end - kHistory : 0;
  const auto access = [&](std::size_t n) {
    return sampled.access_ns[n % kHistory];
  };
  KvCacheEvictionEvent& event = pending_.emplace_back();
  event.lifetime_seconds = seconds_between(sampled.birth_ns, now_ns);
  event.idle_seconds =
      seconds_between(end > 0 ? access(end - 1) : sampled.birth_ns, now_ns);
  for (std::size_t n = begin + 1; n < end; ++n) {
    event.reuse_gaps[event.num_reuse_gaps++] =
        seconds_between(access(n - 1), access(n));
  }
}

void KvResidencySampler::grow() {
  std::vector<SampledBlock> old(table_.size() * 2,
                                SampledBlock{.block = kNoBlock});
  old.swap(table_);
  for (const SampledBlock& sampled : old) {
    if (sampled.block != kNoBlock) table_[place_of(sampled.block)] = sampled;
  }
}

std::size_t KvResidencySampler::home_of(std::uint32_t block) const noexcept {
  const std::uint64_t hash = block * 0x9E3779B97F4A7C15U;
  return (hash >> 32) & (table_.size() - 1);
}

// Where the block is, or else the free place where it would be.
std::size_t KvResidencySampler::place_of(std::uint32_t block) const noexcept {
  std::size_t place = home_of(block);
  while (in_use(place) && table_[place].block != block) {
    place = (place + 1) & (table_.size() - 1);
  }
  return place;
}

// Closes the gap, so that every block stays reachable from its home.
void KvResidencySampler::remove(std::size_t place) noexcept {
  const std::size_t mask = table_.size() - 1;
  std::size_t gap = place;
  for (std::size_t next = (gap + 1) & mask; in_use(next);
       next = (next + 1) & mask) {
    const std::size_t from_home = (next - home_of(table_[next].block)) & mask;
    const std::size_t from_gap = (next - gap) & mask;
    if (from_home < from_gap) continue;
    table_[gap] = table_[next];
    gap = next;
  }
  table_[gap].block = kNoBlock;
  --num_sampled_;
}

}  // namespace vllm_metrics::inline v0
