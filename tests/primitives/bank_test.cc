#include "vllm_metrics/primitives/bank.h"

#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "tests/primitives/bank_memory.h"

namespace vllm_metrics {
namespace {

using Words = std::vector<std::uint64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

// A bank of `n` cells in memory of its own.
struct OwnedBank {
  explicit OwnedBank(std::size_t n)
      : memory(Bank::size_bytes(n)), bank(Bank::create(memory.data(), n)) {}

  // The first words of the memory: sequence, copy_sequence.
  BankHeader& header() { return *static_cast<BankHeader*>(memory.data()); }
  Words copy() const {
    Words words(bank.cell_count());
    bank.copy_to(words);
    return words;
  }

  BankMemory memory;
  Bank bank;
};

TEST_CASE("Bank: starts with zeros, in as much memory as it says",
          "[primitives]") {
  const OwnedBank owned(5);
  CHECK(Bank::size_bytes(5) == 64 + 2 * 5 * 8);
  CHECK(owned.bank.cell_count() == 5);
  CHECK(owned.bank.sequence() == 0);
  CHECK(owned.copy() == Words{0, 0, 0, 0, 0});
}

TEST_CASE("Bank: another look at the same memory sees the same cells",
          "[primitives]") {
  OwnedBank owned(2);
  { Bank::Section(owned.bank, 0.0).inc(1, 7); }
  const Bank other = Bank::attach(owned.memory.data());
  CHECK(other.cell_count() == 2);
  CHECK(other.sequence() == 2);
  Words words(2);
  other.copy_to(words);
  CHECK(words == Words{0, 7});
}

TEST_CASE("Bank: a section adds up counters and keeps what it did not touch",
          "[primitives]") {
  OwnedBank owned(4);
  {
    Bank::Section section(owned.bank, 0.0);
    section.inc(0, 3);
    section.inc(0, std::int64_t{4});
    section.inc(1, std::uint64_t{5});
    section.inc(2, 0.25);
    section.inc(2, 0.5);
    section.inc(3, 0);
  }
  { Bank::Section(owned.bank, 0.0).inc(0, 10); }
  { Bank::Section(owned.bank, 0.0); }
  CHECK(owned.copy() == Words{17, 5, bits(0.75), 0});
  CHECK(owned.bank.sequence() == 6);
}

TEST_CASE("Bank: an integer counter is exact past 2^53 and wraps past 2^64",
          "[primitives]") {
  OwnedBank owned(1);
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  { Bank::Section(owned.bank, 0.0).inc(0, (std::int64_t{1} << 53)); }
  { Bank::Section(owned.bank, 0.0).inc(0, 1); }
  CHECK(owned.copy() == Words{9007199254740993U});
  {
    Bank::Section section(owned.bank, 0.0);
    section.inc(0, kMax);
    section.inc(0, kMax);
  }
  CHECK(owned.copy() == Words{9007199254740991U});
}

TEST_CASE("Bank: a gauge is set together with the time of its section",
          "[primitives]") {
  OwnedBank owned(4);
  { Bank::Section(owned.bank, 1000.5).set(GaugeCells{2}, 0.904); }
  CHECK(owned.copy() == Words{0, 0, bits(0.904), bits(1000.5)});
  { Bank::Section(owned.bank, 1001.5).set(GaugeCells{2}, kNan); }
  CHECK(owned.copy() == Words{0, 0, bits(kNan), bits(1001.5)});
}

TEST_CASE("Bank: a histogram lies in its buckets and the sum behind them",
          "[primitives]") {
  const auto bounds = BucketBounds::create(std::vector<double>{0.5, 1, 2});
  const HistogramCells histogram{1, &*bounds};
  OwnedBank owned(7);
  {
    Bank::Section section(owned.bank, 0.0);
    section.observe(histogram, 1.5);
    section.observe(histogram, std::vector<double>{0.25, 0.5, 8.0});
    section.observe(histogram, std::vector<double>{});
    section.inc(0, 1);
    section.inc(6, 1);
    CHECK(section.faults().not_finite == 0);
    CHECK(section.faults().negative_observations == 0);
  }
  CHECK(owned.copy() == Words{1, 2, 0, 1, 1, bits(10.25), 1});
}

TEST_CASE("Bank: what a section cannot take is counted and spoils nothing",
          "[primitives]") {
  const auto bounds = BucketBounds::create(std::vector<double>{0.5, 1});
  const HistogramCells histogram{2, &*bounds};
  OwnedBank owned(6);
  Bank::Section section(owned.bank, 0.0);
  SECTION("negative increments are dropped") {
    section.inc(0, -16);
    section.inc(0, std::numeric_limits<std::int64_t>::min());
    section.inc(0, std::numeric_limits<std::uint64_t>::max());
    section.inc(1, -0.25);
    section.inc(0, 2);
    CHECK(section.faults().negative_increments == 4);
    CHECK(section.faults().not_finite == 0);
  }
  SECTION("increments that are not finite are dropped") {
    for (const double v : {kNan, -kNan, kInf, -kInf}) section.inc(1, v);
    section.inc(0, 2);
    CHECK(section.faults().negative_increments == 0);
    CHECK(section.faults().not_finite == 4);
  }
  SECTION("a negative zero is no fault") {
    section.inc(1, -0.0);
    section.observe(histogram, -0.0);
    section.inc(0, 2);
    CHECK(section.faults().negative_increments == 0);
    CHECK(section.faults().negative_observations == 0);
    return;
  }
  SECTION("observations that are not finite are dropped") {
    section.observe(histogram, kNan);
    section.observe(histogram, std::vector<double>{kInf, -kInf, kNan});
    section.inc(0, 2);
    CHECK(section.faults().not_finite == 4);
    CHECK(section.faults().negative_observations == 0);
  }
  CHECK(section.faults().negative_observations == 0);
  Words words(6);
  for (std::size_t i = 0; i < 6; ++i) words[i] = i == 0 ? 2 : 0;
  // Read as a dead owner's: the section is still open.
  Words left(6);
  CHECK(owned.bank.copy_to(left, [] { return false; }) == BankRead::kTorn);
  CHECK(left == words);
}

TEST_CASE("Bank: a negative observation is taken as 0 and counted",
          "[primitives]") {
  const auto bounds = BucketBounds::create(std::vector<double>{0.5, 1});
  const HistogramCells histogram{0, &*bounds};
  OwnedBank owned(4);
  {
    Bank::Section section(owned.bank, 0.0);
    section.observe(histogram, 0.75);
    section.observe(histogram, -3.0);
    section.observe(histogram, std::vector<double>{-1.0, 0.75, kNan});
    CHECK(section.faults().negative_observations == 2);
    CHECK(section.faults().not_finite == 1);
    CHECK(section.faults().negative_increments == 0);
  }
  CHECK(owned.copy() == Words{2, 2, 0, bits(1.5)});
}

TEST_CASE("Bank: one observation is a batch of one, whatever its value",
          "[primitives]") {
  const auto list =
      GENERATE(values<std::vector<double>>({{0.5, 1, 2}, {-1, 0, 1}, {1e-3}}));
  const auto bounds = BucketBounds::create(list);
  const HistogramCells histogram{0, &*bounds};
  const std::size_t cells = bounds->bucket_count() + 1;
  OwnedBank single(cells);
  OwnedBank batch(cells);
  for (const double v : {0.1, 0.5, 1.0, 7.0, 0.0, -0.0, -3.0, 5e-324, 1e308,
                         kNan, kInf, -kInf}) {
    Bank::Section one(single.bank, 0.0);
    Bank::Section many(batch.bank, 0.0);
    one.observe(histogram, v);
    many.observe(histogram, std::vector<double>{v});
    CHECK(one.faults().not_finite == many.faults().not_finite);
    CHECK(one.faults().negative_observations ==
          many.faults().negative_observations);
  }
  CHECK(single.copy() == batch.copy());
}

TEST_CASE("Bank: a reader waits for a live owner with an open section",
          "[primitives]") {
  OwnedBank owned(2);
  std::optional<Bank::Section> section(std::in_place, owned.bank, 0.0);
  section->inc(0, 1);
  int asked = 0;
  Words words(2);
  const auto read = owned.bank.copy_to(words, [&] {
    if (++asked == 5) {
      section->inc(1, 1);
      section.reset();
    }
    return true;
  });
  CHECK(read == BankRead::kConsistent);
  CHECK(words == Words{1, 1});
  CHECK(asked == 5);
}

TEST_CASE("Bank: an owner is not asked after while its sections close",
          "[primitives]") {
  OwnedBank owned(2);
  { Bank::Section(owned.bank, 0.0).inc(0, 1); }
  Words words(2);
  const auto read = owned.bank.copy_to(words, [] {
    FAIL("asked although no section is open");
    return false;
  });
  CHECK(read == BankRead::kConsistent);
  CHECK(words == Words{1, 0});
}

TEST_CASE("Bank: what a dead owner left open is read as it is",
          "[primitives]") {
  OwnedBank owned(3);
  { Bank::Section(owned.bank, 0.0).inc(2, 9); }
  std::optional<Bank::Section> section(std::in_place, owned.bank, 0.0);
  section->inc(0, 4);
  Words words(3);
  CHECK(owned.bank.copy_to(words, [] { return false; }) == BankRead::kTorn);
  CHECK(words == Words{4, 0, 9});
}

// The answer "dead" was believed although the section had closed meanwhile, and
// a whole state was reported torn.
TEST_CASE(
    "Bank: an owner that closes its section and then dies left a whole "
    "state",
    "[primitives]") {
  OwnedBank owned(2);
  std::optional<Bank::Section> section(std::in_place, owned.bank, 0.0);
  section->inc(0, 1);
  Words words(2);
  const auto read = owned.bank.copy_to(words, [&] {
    section->inc(1, 1);
    section.reset();
    return false;
  });
  CHECK(read == BankRead::kConsistent);
  CHECK(words == Words{1, 1});
}

// The next section took the odd word for an even one: readers then believed
// what they saw inside sections, and waited between them.
TEST_CASE("Bank: the section after a dead one is open while it is open",
          "[primitives]") {
  OwnedBank owned(2);
  const auto die_inside = [&] {
    BankMemory lost(sizeof(Bank::Section));
    (new (lost.data()) Bank::Section(owned.bank, 0.0))->inc(0, 1);
  };
  die_inside();
  CHECK(owned.bank.sequence() == 1);
  {
    Bank::Section section(owned.bank, 0.0);
    CHECK(owned.bank.sequence() % 2 == 1);
    CHECK(owned.bank.sequence() > 1);
    section.inc(1, 5);
  }
  CHECK(owned.bank.sequence() % 2 == 0);
  CHECK(owned.copy() == Words{1, 5});
}

// A writer that never pauses, one section always open: each time the reader
// asks whether its owner lives, the writer is a whole step further.
TEST_CASE("Bank: a writer that never pauses leaves a copy for a starved reader",
          "[primitives]") {
  OwnedBank owned(3);
  std::optional<Bank::Section> section(std::in_place, owned.bank, 0.0);
  const auto next_step = [&] {
    for (std::uint32_t cell = 0; cell < 3; ++cell) section->inc(cell, 1);
    section.reset();
    section.emplace(owned.bank, 0.0);
    section->inc(0, 100);  // belongs to the next step
    return true;
  };
  Words words(3);
  CHECK(owned.header().copy_sequence == 0);
  CHECK(owned.bank.copy_to(words, next_step) == BankRead::kConsistent);
  CHECK(words == Words{1, 1, 1});
  CHECK(owned.header().copy_sequence == 2);
  CHECK(owned.header().copy_wanted == 0);
  // The next reader is not served the old copy.
  CHECK(owned.bank.copy_to(words, next_step) == BankRead::kConsistent);
  CHECK(words == Words{102, 2, 2});
  CHECK(owned.header().copy_sequence == 4);
}

TEST_CASE(
    "Bank: readers beside a writer that never pauses get whole states, "
    "each younger than the last",
    "[primitives][concurrent]") {
  constexpr std::uint32_t kCells = 200;  // a copy lasts longer than a pause
  OwnedBank owned(kCells);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      Bank::Section section(owned.bank, 0.0);
      for (std::uint32_t cell = 0; cell < kCells; ++cell) section.inc(cell, 1);
    }
  });
  std::atomic<int> mixed{0};
  std::atomic<int> older{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      Words words(kCells);
      std::uint64_t last = 0;
      for (int reads = 0; reads < 200;) {
        owned.bank.copy_to(words);
        if (words != Words(kCells, words.front())) ++mixed;
        if (words.front() < last) ++older;
        reads += words.front() > last ? 1 : 0;
        last = words.front();
      }
    });
  }
  for (auto& reader : readers) reader.join();
  stop = true;
  writer.join();
  CHECK(mixed == 0);
  CHECK(older == 0);
}

TEST_CASE(
    "Bank: four engines' writers and one scraper lose nothing and tear "
    "no histogram",
    "[primitives][concurrent]") {
  constexpr int kEngines = 4;
  constexpr std::uint64_t kSteps = 3'000;
  const auto bounds = BucketBounds::create(std::vector<double>{0.01, 0.05, 1});
  // 0: tokens; 1, 2: a gauge; 3..6: buckets; 7: their sum.
  const HistogramCells latencies{3, &*bounds};
  std::vector<OwnedBank> engines;
  for (int e = 0; e < kEngines; ++e) engines.emplace_back(8);
  std::atomic<int> running{kEngines};
  std::vector<std::thread> writers;
  for (OwnedBank& engine : engines) {
    writers.emplace_back([&] {
      const std::vector<double> equal(4, 0.03125);
      const std::vector<double> mixed{0.0078125, 0.03125, 0.5, 2.0};
      for (std::uint64_t step = 1; step <= kSteps; ++step) {
        Bank::Section section(engine.bank, static_cast<double>(step));
        section.inc(0, 4);
        section.set(GaugeCells{1}, static_cast<double>(step));
        section.observe(latencies, step % 2 == 0 ? equal : mixed);
      }
      --running;
    });
  }
  int torn = 0;
  Words words(8);
  while (running > 0) {
    for (const OwnedBank& engine : engines) {
      engine.bank.copy_to(words);
      const std::uint64_t step = words[0] / 4;
      const std::uint64_t odd = (step + 1) / 2;  // steps with `mixed`
      const std::uint64_t even = step / 2;
      const double sum = 2.5390625 * static_cast<double>(odd) +
                         0.125 * static_cast<double>(even);
      const double now = static_cast<double>(step);
      const Words expected{4 * step,       bits(now), bits(now), odd,
                           odd + 4 * even, odd,       odd,       bits(sum)};
      torn += words == expected ? 0 : 1;
    }
  }
  for (auto& writer : writers) writer.join();
  CHECK(torn == 0);
  for (const OwnedBank& engine : engines) {
    CHECK(engine.copy()[0] == 4 * kSteps);
  }
}

}  // namespace
}  // namespace vllm_metrics
