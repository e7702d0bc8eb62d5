#include "src/tools/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace vllm_metrics::sim {
namespace {

// `spread` is that of the logarithm.
std::int64_t draw_length(Random& random, double mean, double spread,
                         std::int64_t max) {
  const double length = std::round(random.log_normal(mean, spread));
  return static_cast<std::int64_t>(
      std::clamp(length, 1.0, static_cast<double>(max)));
}

// The chunks of a text, each by all that comes before it.
void append_chunks(std::uint64_t text, std::size_t chunks,
                   std::vector<std::uint64_t>& prefix) {
  std::uint64_t hash = text;
  for (std::size_t i = 0; i < chunks; ++i) {
    hash = chain(hash, i);
    prefix.push_back(hash);
  }
}

}  // namespace

void choose_fate(const WorkloadParameters& parameters, Random& random,
                 RequestSpec& spec) {
  if (random.uniform() < parameters.length_share) {
    spec.finish_reason = FinishReason::kLength;
    spec.max_tokens = spec.output_tokens;
  } else {
    spec.finish_reason = FinishReason::kStop;
    // A round limit that the output stayed below.
    std::int64_t limit = 256;
    while (limit <= spec.output_tokens) limit *= 2;
    spec.max_tokens = limit;
  }
  if (parameters.patience > 0.0) {
    spec.give_up = spec.arrival + to_ticks(parameters.patience);
  }
  // Drawn only where it matters, so that other workloads stay as they are.
  if (parameters.corrupted_share > 0.0) {
    spec.corrupted = random.uniform() < parameters.corrupted_share;
  }
}

TraceWorkload::TraceWorkload(std::string name, Ticks epoch,
                             std::vector<RequestSpec> requests,
                             const WorkloadParameters& parameters,
                             std::uint64_t seed)
    : name_(std::move(name)),
      epoch_(epoch),
      requests_(std::move(requests)),
      parameters_(parameters),
      random_(seed) {}

Ticks TraceWorkload::next_arrival() const {
  return next_ < requests_.size() ? requests_[next_].arrival : kNever;
}

RequestSpec TraceWorkload::take() {
  RequestSpec spec = std::move(requests_[next_++]);
  choose_fate(parameters_, random_, spec);
  return spec;
}

void TraceWorkload::apply(const WorkloadParameters& parameters, Ticks) {
  parameters_ = parameters;
}

std::string TraceWorkload::description() const {
  return fmt::format("{}, {} requests", name_, requests_.size());
}

SyntheticWorkload::SyntheticWorkload(const WorkloadParameters& parameters,
                                     const Limits& limits, std::uint64_t seed)
    : parameters_(parameters), limits_(limits), random_(seed) {
  if (closed_loop()) {
    change_clients(0);
  } else {
    draw_arrival();
  }
}

void SyntheticWorkload::draw_arrival() {
  now_ += random_.exponential(1.0 / parameters_.rate);
}

// Clients that are new come one by one, as if they had thought. Those that are
// too many do not come back.
void SyntheticWorkload::change_clients(Ticks now) {
  while (std::ssize(clients_) > parameters_.concurrency) {
    clients_.erase(std::prev(clients_.end()));
  }
  decltype(due_) due;
  for (; !due_.empty(); due_.pop()) {
    if (clients_.contains(due_.top().second)) due.push(due_.top());
  }
  due_ = std::move(due);
  const double over = std::max(1.0, parameters_.think_time);
  while (std::ssize(clients_) < parameters_.concurrency) {
    clients_.try_emplace(next_client_);
    due_.emplace(now + to_ticks(over * random_.uniform()), next_client_++);
  }
}

void SyntheticWorkload::apply(const WorkloadParameters& parameters, Ticks now) {
  const bool was_closed = closed_loop();
  const double rate = std::exchange(parameters_, parameters).rate;
  change_clients(now);
  if (closed_loop()) return;
  if (was_closed || parameters_.rate != rate) {
    // A Poisson process has no memory: it begins anew.
    now_ = to_seconds(now);
    draw_arrival();
  }
}

Ticks SyntheticWorkload::next_arrival() const {
  Ticks next = kNever;
  if (!closed_loop()) {
    next = to_ticks(now_);
  } else if (!due_.empty()) {
    next = due_.top().first;
  }
  return next < limits_.end ? next : kNever;
}

RequestSpec SyntheticWorkload::take() {
  if (!closed_loop()) return take_alone();
  const auto [arrival, client] = due_.top();
  due_.pop();
  RequestSpec spec = take_turn(clients_.at(client));
  spec.arrival = arrival;
  spec.client = client;
  choose_fate(parameters_, random_, spec);
  return spec;
}

double SyntheticWorkload::draw_prompt_mean() {
  const double share = parameters_.long_prompt_share;
  return share > 0.0 && random_.uniform() < share
             ? parameters_.long_prompt_tokens
             : parameters_.prompt_tokens;
}

RequestSpec SyntheticWorkload::take_alone() {
  RequestSpec spec;
  spec.arrival = to_ticks(now_);
  const std::int64_t longest_prompt =
      std::max<std::int64_t>(1, limits_.max_tokens - 1);
  spec.prompt_tokens = draw_length(random_, draw_prompt_mean(),
                                   parameters_.prompt_spread, longest_prompt);
  const std::int64_t longest_output =
      std::max<std::int64_t>(1, limits_.max_tokens - spec.prompt_tokens);
  spec.output_tokens = draw_length(random_, parameters_.output_tokens,
                                   parameters_.output_spread, longest_output);
  choose_prefix(spec);
  choose_fate(parameters_, random_, spec);
  draw_arrival();
  return spec;
}

void SyntheticWorkload::choose_prefix(RequestSpec& spec) {
  const std::uint64_t text =
      random_.next() % static_cast<std::uint64_t>(parameters_.prefix_groups);
  const double shared =
      parameters_.prefix_share * static_cast<double>(spec.prompt_tokens);
  const auto chunks =
      static_cast<std::size_t>(shared) / static_cast<std::size_t>(kChunkTokens);
  spec.chunk_tokens = kChunkTokens;
  spec.prefix.reserve(chunks);
  append_chunks(text, chunks, spec.prefix);
}

// All that was said is one text: the shared one, then the conversation's own.
RequestSpec SyntheticWorkload::take_turn(Client& client) {
  const std::int64_t added =
      draw_length(random_, draw_prompt_mean(), parameters_.prompt_spread,
                  std::max<std::int64_t>(1, limits_.max_tokens - 1));
  const std::int64_t output =
      draw_length(random_, parameters_.output_tokens, parameters_.output_spread,
                  std::max<std::int64_t>(1, limits_.max_tokens - added));
  if (client.turns_left == 0 ||
      client.said_tokens + added + output > limits_.max_tokens) {
    const auto groups = static_cast<std::uint64_t>(parameters_.prefix_groups);
    client = {.conversation = ++num_conversations_,
              .text = random_.next() % groups,
              .turns_left = parameters_.turns};
    client.shared_tokens = static_cast<std::int64_t>(
        parameters_.prefix_share * static_cast<double>(added));
  }
  RequestSpec spec;
  spec.chunk_tokens = kChunkTokens;
  spec.prompt_tokens = client.said_tokens + added;
  spec.output_tokens = output;
  client.said_tokens = spec.prompt_tokens + output;
  --client.turns_left;

  const auto chunks_of = [](std::int64_t tokens) {
    return static_cast<std::size_t>(tokens / kChunkTokens);
  };
  append_chunks(client.text, chunks_of(client.shared_tokens), spec.prefix);
  const std::uint64_t own = chain(client.text, client.conversation);
  if (parameters_.turns > 1) {
    spec.known_tokens = client.said_tokens;
    const std::size_t all = chunks_of(client.said_tokens + kChunkTokens - 1);
    for (std::size_t i = spec.prefix.size(); i < all; ++i) {
      spec.prefix.push_back(chain(own, i));
    }
  }
  return spec;
}

void SyntheticWorkload::ended(const RequestSpec& spec, Ticks now) {
  if (!clients_.contains(spec.client)) return;
  const double think = parameters_.think_time > 0.0
                           ? random_.exponential(parameters_.think_time)
                           : 0.0;
  due_.emplace(now + to_ticks(think), spec.client);
}

std::string SyntheticWorkload::description() const {
  const std::string source =
      closed_loop() ? fmt::format("{} clients", parameters_.concurrency)
                    : fmt::format("{} requests/s", parameters_.rate);
  return fmt::format(
      "synthetic, {}, prompts of {} and outputs of {} tokens on average, {:g} "
      "% shared",
      source, parameters_.prompt_tokens, parameters_.output_tokens,
      parameters_.prefix_share * 100.0);
}

}  // namespace vllm_metrics::sim
