// Bytes that an engine takes, by counting allocations: its cells, what its
// series mean, and the text in front of their numbers. Fails above the budget;
// CI runs it as a test.

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "engines.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/primitives/bank.h"
#include "vllm_metrics/registry/registry.h"

namespace {

std::atomic<std::size_t> bytes_in_use{0};

void* allocate(std::size_t size, std::size_t alignment) {
  void* memory =
      std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (memory == nullptr) throw std::bad_alloc();
  bytes_in_use += malloc_usable_size(memory);
  return memory;
}

void release(void* memory) noexcept {
  bytes_in_use -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace vllm_metrics::bench {
namespace {

struct Memory {
  std::size_t cells;     // the bank
  std::size_t schema;    // all else of the manager: families, labels, bounds,
                         // the index of the page, options
  std::size_t prefixes;  // of the text format: what is in front of numbers, the
                         // words read, room for longer numbers
  std::size_t page;      // what is handed out

  std::size_t total() const { return cells + schema + prefixes; }
};

// With all families that do not belong to one KV connector.
Memory memory_of(std::size_t engines) {
  StatLoggerOptions options = prometheus_only(engines);
  options.kv_cache_metrics = true;
  options.compute_nans_in_logits = true;
  options.num_speculative_tokens = 5;
  options.max_loras = 8;
  const std::size_t before = bytes_in_use;
  const auto manager = make_manager(std::move(options));
  const std::size_t created = bytes_in_use;
  TextFormat format;
  const std::size_t page = format.render(*manager->registry()).size();
  const std::size_t rendered = bytes_in_use;
  Snapshot snapshot;
  manager->registry()->snapshot(snapshot);
  const std::size_t cells = engines * Bank::size_bytes(0) +
                            Bank::size_bytes(snapshot.schema->word_count) -
                            Bank::size_bytes(0);
  return {cells, created - before - cells, rendered - created - page, page};
}

void print(const char* what, const Memory& memory) {
  std::printf("%-20s %9zu %9zu %9zu %9zu %9zu\n", what, memory.cells,
              memory.schema, memory.prefixes, memory.total(), memory.page);
}

int run() {
  constexpr std::size_t kMore = 64;
  constexpr std::size_t kAllowed = 128 * 1024;
  const Memory one = memory_of(1);
  const Memory many = memory_of(1 + kMore);
  const Memory further{
      (many.cells - one.cells) / kMore, (many.schema - one.schema) / kMore,
      (many.prefixes - one.prefixes) / kMore, (many.page - one.page) / kMore};
  std::printf("%-20s %9s %9s %9s %9s %9s\n", "bytes", "cells", "schema",
              "prefixes", "total", "(page)");
  print("the first engine", one);
  print("each further engine", further);
  std::printf("total of the first engine: %zu, %zu (128 KiB) allowed\n",
              one.total(), kAllowed);
  return one.total() <= kAllowed ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace vllm_metrics::bench

int main() { return vllm_metrics::bench::run(); }
