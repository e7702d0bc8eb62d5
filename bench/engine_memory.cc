// Bytes that an engine takes, by counting allocations: its cells, what its
// series mean, and the text in front of their numbers. Fails above the budget.

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
  std::size_t registry;     // cells, families, labels, the index of the page
  std::size_t text_format;  // words read, text in front of numbers, the page
  std::size_t page;         // of these, what is handed out

  std::size_t own() const { return registry + text_format - page; }
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
  return {created - before, bytes_in_use - created, page};
}

void print(const char* what, const Memory& memory) {
  std::printf("%-22s %9zu %12zu %9zu %9zu\n", what, memory.registry,
              memory.text_format, memory.page, memory.own());
}

int run() {
  constexpr std::size_t kMore = 64;
  constexpr std::size_t kAllowed = 128 * 1024;
  const Memory one = memory_of(1);
  const Memory many = memory_of(1 + kMore);
  const Memory further{(many.registry - one.registry) / kMore,
                       (many.text_format - one.text_format) / kMore,
                       (many.page - one.page) / kMore};
  std::printf("%-22s %9s %12s %9s %9s\n", "bytes", "registry", "text format",
              "page", "own");
  print("the first engine", one);
  print("each further engine", further);
  std::printf("a further engine: %zu KiB without its page, %zu allowed\n",
              further.own() / 1024, kAllowed / 1024);
  return further.own() <= kAllowed ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace vllm_metrics::bench

int main() { return vllm_metrics::bench::run(); }
