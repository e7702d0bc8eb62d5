// The ratios that the library is held to, measured in one process: a table,
// then `ratio NAME VALUE` lines, which also go to the file given as argument.

#define ZLIB_CONST  // zlib only reads its input
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contest.h"
#include "engines.h"
#include "floor.h"
#ifdef VLLM_METRICS_HAS_SHM
#include "live_processes.h"
#endif
#include "outputs.h"
#include "page_under_test.h"
#ifdef VLLM_METRICS_HAS_OTLP
#include "pushed_step.h"
#endif
#include "ratio_table.h"
#ifdef VLLM_METRICS_HAS_SANDBOX
#include "sandbox_ratio.h"
#endif
#include "scraped_step.h"
#include "second_thread.h"
#include "served_step.h"
#include "step_data.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/primitives/bank.h"
#include "vllm_metrics/protobuf/protobuf_format.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {
namespace {

void headline(const char* text) { std::printf("\n%s\n", text); }

void measure_record(Ratios& ratios) {
  headline("A decode step, by one thread");
  const auto distinct = make_steps({});
  const auto equal = make_steps({.equal = true});
  const auto large = make_steps({.batch = 1024});
  const auto manager = make_manager(prometheus_only(1));
  Snapshot snapshot;
  manager->registry()->snapshot(snapshot);
  PrometheusCppPage page(*snapshot.schema, 1);
  Floor floor;

  Contest contest;
  const auto add = [&](const char* name, const std::vector<Step>& steps,
                       auto record_one) {
    return contest.add(name, [carousel = Carousel(steps),
                              record_one](std::size_t times) mutable {
      for (std::size_t i = 0; i < times; ++i) record_one(carousel.next());
    });
  };
  const auto ours = [&](const Step& step) { record(*manager, step); };
  const auto at_floor = add(
      "256 distinct latencies, floor", distinct,
      [&](const Step& step) { floor.record(step.scheduler, step.iteration); });
  const auto recorded = add("256 distinct latencies, record()", distinct, ours);
  const auto equally = add("256 equal latencies, record()", equal, ours);
  const auto largely = add("1024 distinct latencies, record()", large, ours);
  const auto theirs = add("256 distinct latencies, prometheus-cpp", distinct,
                          [&](const Step& step) { page.record(step.flat); });
  const auto batched =
      add("256 distinct latencies, prometheus-cpp in batch", distinct,
          [&](const Step& step) { page.record_batched(step.flat); });
  contest.run();

  ratios.push_back(
      {"record_vs_floor", contest.ratio(recorded, at_floor), 1.25});
  ratios.push_back(
      {"record_equal_vs_distinct", contest.ratio(equally, recorded), 0.65});
  ratios.push_back(
      {"promcpp_vs_record", contest.ratio(theirs, recorded), 12, true});
  ratios.push_back(
      {"promcpp_batch_vs_record", contest.ratio(batched, recorded), 4.5, true});
  ratios.push_back(
      {"record_1024_vs_256", contest.ratio(largely, recorded), 4.2});
}

void measure_every_feature(Ratios& ratios) {
  headline("A decode step of each of 8 engines");
  constexpr std::size_t kEngines = 8;
  const auto plain_steps = make_steps({});
  const auto full_steps = make_steps({.every_feature = true});
  StatLoggerOptions plain_options = prometheus_only(kEngines);
  plain_options.self_metrics = false;
  const auto plain_manager = make_manager(plain_options);
  const auto full_manager = make_manager(with_every_feature(kEngines));

  Contest contest;
  const auto add = [&](const char* name, const std::vector<Step>& steps,
                       StatLoggerManager& manager) {
    return contest.add(name, [carousel = Carousel(steps),
                              &manager](std::size_t times) mutable {
      for (std::size_t i = 0; i < times; ++i) {
        for (std::size_t engine = 0; engine < kEngines; ++engine)
          record(manager, carousel.next(), engine);
      }
    });
  };
  const auto plain = add("no feature", plain_steps, *plain_manager);
  const auto full = add("every feature", full_steps, *full_manager);
  contest.run();
  ratios.push_back(
      {"record_everything_vs_plain", contest.ratio(full, plain), 1.5});
}

// Latencies of 256 requests into one histogram of a bank, in one section.
class BankHistogram {
 public:
  explicit BankHistogram(std::uint32_t native_buckets)
      : bounds_(*BucketBounds::create(
            spec_of(MetricId::kInterTokenLatency).buckets)),
        cells_(0, &bounds_, native_buckets),
        count_(word_count(MetricKind::kHistogram, &bounds_, native_buckets)),
        memory_(Bank::size_bytes(count_) / sizeof(Line) + 1),
        bank_(Bank::create(memory_.data(), count_)) {
    if (native_buckets == 0) return;
    Bank::Section section(bank_, 0.0);
    section.native(cells_).reset({.max_buckets = native_buckets});
  }
  BankHistogram(const BankHistogram&) = delete;
  BankHistogram& operator=(const BankHistogram&) = delete;

  void observe(const Step& step) {
    Bank::Section(bank_, 0.0).observe(cells_, step.flat.latencies);
  }
  void observe_one_by_one(const Step& step) {
    Bank::Section section(bank_, 0.0);
    for (const double v : step.flat.latencies) section.observe(cells_, v);
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  BucketBounds bounds_;
  HistogramCells cells_;
  std::size_t count_;
  std::vector<Line> memory_;
  Bank bank_;
};

// What native buckets add to the classic ones, in the worst of three cases.
void measure_native(Ratios& ratios) {
  headline("256 latencies into a histogram, without and with native buckets");
  const auto distinct = make_steps({});
  const auto equal = make_steps({.equal = true});
  BankHistogram classic(0);
  BankHistogram native(NativeHistogramOptions().max_buckets);

  Contest contest;
  const auto add = [&](const char* name, const std::vector<Step>& steps,
                       BankHistogram& histogram, auto observe) {
    return contest.add(name, [carousel = Carousel(steps), &histogram,
                              observe](std::size_t times) mutable {
      for (std::size_t i = 0; i < times; ++i)
        (histogram.*observe)(carousel.next());
    });
  };
  double worst = 0.0;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const auto add_both = [&](const char* without, const char* with,
                            const std::vector<Step>& steps, auto observe) {
    const auto first = add(without, steps, classic, observe);
    pairs.emplace_back(add(with, steps, native, observe), first);
  };
  add_both("distinct, classic", "distinct, classic and native", distinct,
           &BankHistogram::observe);
  add_both("equal, classic", "equal, classic and native", equal,
           &BankHistogram::observe);
  add_both("one by one, classic", "one by one, classic and native", distinct,
           &BankHistogram::observe_one_by_one);
  contest.run();
  for (const auto& [with, without] : pairs)
    worst = std::max(worst, contest.ratio(with, without) - 1.0);
  ratios.push_back({"native_observe_vs_classic", worst, 2});
}

void measure_update_from_output(Ratios& ratios) {
  headline("Outputs of 256 running requests");
  Outputs outputs(256);
  FloorRequests floor(256);
  Contest contest;
  const auto at_floor =
      contest.add("plain arrays", [&, now = 0.0](std::size_t times) mutable {
        for (std::size_t i = 0; i < times; ++i) floor.update(now += 0.02);
      });
  const auto ours =
      contest.add("update_from_outputs()", [&](std::size_t times) {
        for (std::size_t i = 0; i < times; ++i) outputs.step();
      });
  contest.add("update_from_output(), one by one", [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) outputs.step_one_by_one();
  });
  contest.run();
  ratios.push_back(
      {"update_from_output_vs_floor", contest.ratio(ours, at_floor), 2});
}

void measure_page(Ratios& ratios) {
  headline("A page, read and written as text");
  std::vector<std::unique_ptr<PageUnderTest>> pages;
  TextFormat format[3];
  std::string copy[3];
  std::size_t memcpys[3];
  std::size_t scrapes[3];
  OpenMetrics open_metrics;
  protobuf::ProtobufFormat protobuf_format;
  // Apart from prometheus-cpp, which leaves nothing in the caches.
  Contest ours;
  for (const std::size_t engines : {1U, 8U, 64U}) {
    const std::size_t i = pages.size();
    const PageUnderTest& page =
        *pages.emplace_back(std::make_unique<PageUnderTest>(engines));
    copy[i] = page.text();
    const auto name = [&](const char* what) {
      return std::to_string(engines) + " engines, " +
             std::to_string(copy[i].size() / 1000) + " kB: " + what;
    };
    memcpys[i] = ours.add(name("memcpy"), [&, i](std::size_t times) {
      for (std::size_t n = 0; n < times; ++n) {
        std::memcpy(copy[i].data(), page.text().data(), copy[i].size());
        asm volatile("" : : "r"(copy[i].data()) : "memory");
      }
    });
    scrapes[i] = ours.add(name("scrape"), [&, i](std::size_t times) {
      for (std::size_t n = 0; n < times; ++n) format[i].render(page.registry());
    });
  }
  const auto open_metrics_scrape =
      ours.add("1 engines: scrape as OpenMetrics", [&](std::size_t times) {
        for (std::size_t n = 0; n < times; ++n)
          open_metrics.render(pages[0]->registry());
      });
  const auto protobuf_scrape =
      ours.add("1 engines: scrape as protobuf", [&](std::size_t times) {
        for (std::size_t n = 0; n < times; ++n)
          protobuf_format.render(pages[0]->registry());
      });
  ours.run();

  double promcpp_vs_scrape = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const PageUnderTest& page = *pages[i];
    Contest both(3);
    const auto scrape = both.add("  scrape", [&](std::size_t times) {
      for (std::size_t n = 0; n < times; ++n) format[i].render(page.registry());
    });
    const auto theirs = both.add("  prometheus-cpp", [&](std::size_t times) {
      for (std::size_t n = 0; n < times; ++n) page.prometheus_cpp().text();
    });
    both.run();
    promcpp_vs_scrape = std::min(promcpp_vs_scrape, both.ratio(theirs, scrape));
  }
  ratios.push_back({"scrape_vs_memcpy", ours.ratio(scrapes[0], memcpys[0]), 8});
  ratios.push_back({"openmetrics_vs_text",
                    ours.ratio(open_metrics_scrape, scrapes[0]), 1.3});
  ratios.push_back(
      {"protobuf_vs_text", ours.ratio(protobuf_scrape, scrapes[0]), 1.5});
  ratios.push_back({"promcpp_scrape_vs_scrape", promcpp_vs_scrape, 60, true});
  ratios.push_back({"scrape_64_vs_1", ours.ratio(scrapes[2], scrapes[0]), 80});
}

#ifdef VLLM_METRICS_HAS_SHM
void measure_shared_record(Ratios& ratios) {
  headline("A decode step, into memory that processes share");
  const auto steps = make_steps({});
  const LiveProcesses none(0);
  const auto shared = none.open(/*read_only=*/false);
  auto options = prometheus_only(1);
  options.registry = shared->registry();
  const auto in_shared = make_manager(std::move(options));
  const auto in_private = make_manager(prometheus_only(1));
  Contest contest;
  const auto add = [&](const char* name, StatLoggerManager& manager) {
    return contest.add(name, [carousel = Carousel(steps),
                              &manager](std::size_t times) mutable {
      for (std::size_t i = 0; i < times; ++i) record(manager, carousel.next());
    });
  };
  const auto privately = add("record(), private memory", *in_private);
  const auto sharing = add("record(), shared memory", *in_shared);
  contest.run();
  ratios.push_back(
      {"record_shm_vs_private", contest.ratio(sharing, privately), 1.1});
}

void measure_merged_page(Ratios& ratios) {
  headline("A page of several processes, merged and written as text");
  const LiveProcesses one(1);
  const LiveProcesses four(4);
  const LiveProcesses eight(8);
  LiveProcesses four_of_many(4);
  four_of_many.pass_through(2000);
  Contest contest;
  std::vector<std::unique_ptr<shm::SharedRegistry>> opened;
  const auto add = [&](const char* name, const LiveProcesses& processes,
                       bool read_only) {
    opened.push_back(processes.open(read_only));
    return contest.add(
        name, [format = std::make_shared<TextFormat>(),
               registry = opened.back()->registry()](std::size_t times) {
          for (std::size_t n = 0; n < times; ++n) format->render(*registry);
        });
  };
  // Who folds is a process of its own, in both.
  four_of_many.open(/*read_only=*/false);
  const auto of_one = add("1 process", one, true);
  const auto of_four = add("4 processes", four, true);
  const auto of_eight = add("8 processes", eight, true);
  const auto of_many =
      add("4 processes, after 2000 that ended", four_of_many, true);
  contest.run();
  ratios.push_back({"merged_8_vs_1", contest.ratio(of_eight, of_one), 10});
  ratios.push_back(
      {"merged_after_2000_vs_before", contest.ratio(of_many, of_four), 1.5});
}
#else
void measure_shared_record(Ratios&) {}
void measure_merged_page(Ratios&) {}
#endif

// As the HTTP endpoint does it for a client that accepts it. No target: it is
// zlib's, and an option.
void measure_gzip(Ratios& ratios) {
  headline("A page of one engine, written, and compressed by zlib at level 1");
  const PageUnderTest page(1);
  TextFormat format;
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    std::abort();
  std::string compressed(deflateBound(&stream, page.text().size()), '\0');
  Contest contest;
  const auto write = contest.add("scrape", [&](std::size_t times) {
    for (std::size_t n = 0; n < times; ++n) format.render(page.registry());
  });
  const auto compress = contest.add("scrape, gzip", [&](std::size_t times) {
    for (std::size_t n = 0; n < times; ++n) {
      const std::string_view text = format.render(page.registry());
      deflateReset(&stream);
      stream.next_in = reinterpret_cast<const Bytef*>(text.data());
      stream.avail_in = static_cast<uInt>(text.size());
      stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
      stream.avail_out = static_cast<uInt>(compressed.size());
      if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
    }
  });
  contest.run();
  std::printf("%-44s %14.3f\n", "size, of that of the page",
              static_cast<double>(stream.total_out) /
                  static_cast<double>(page.text().size()));
  deflateEnd(&stream);
  ratios.push_back({"gzip_vs_text", contest.ratio(compress, write),
                    std::numeric_limits<double>::infinity()});
}

void measure_parser(Ratios& ratios) {
  headline("A page of 64 engines, read back");
  const PageUnderTest page(64);
  std::string copy = page.text();
  Contest contest;
  const auto scan =
      contest.add("memcpy, ends of lines", [&](std::size_t times) {
        for (std::size_t n = 0; n < times; ++n) {
          const std::size_t lines = copy_and_count_lines(page.text(), copy);
          asm volatile("" : : "r"(lines) : "memory");
        }
      });
  const auto parse = contest.add("parse_page()", [&](std::size_t times) {
    for (std::size_t n = 0; n < times; ++n) {
      if (!parse_page(page.text()).ok()) std::abort();
    }
  });
  contest.run();
  ratios.push_back({"parse_vs_scan", contest.ratio(parse, scan), 10});
}

// `disturbed`: by whom; what the ratios are called after.
void measure_disturbed_step(Ratios& ratios, std::string_view disturbed,
                            ScrapedStep (*time)(std::size_t)) {
  constexpr std::size_t kRepetitions = 11;
  std::vector<double> p50, p99, idle, scraped, scraped_p99, scrapes;
  for (std::size_t i = 0; i < kRepetitions; ++i) {
    const ScrapedStep round = time(20'000);
    p50.push_back(round.scraped_p50 / round.idle_p50);
    p99.push_back(round.scraped_p99 / round.idle_p50);
    idle.push_back(round.idle_p50);
    scraped.push_back(round.scraped_p50);
    scraped_p99.push_back(round.scraped_p99);
    scrapes.push_back(round.scrapes_per_second);
  }
  const auto line = [&](std::string_view name, double value, const char* unit) {
    std::printf("%-44s %14.1f %s\n", std::string(name).c_str(), value, unit);
  };
  line("idle, p50", median(idle), "ns");
  line("disturbed, p50", median(scraped), "ns");
  line("disturbed, p99", median(scraped_p99), "ns");
  line("scrapes a second", median(scrapes), "");
  const std::string name(disturbed);
  ratios.push_back({"step_p50_" + name + "_vs_idle", median(p50), 3});
  ratios.push_back({"step_p99_" + name + "_vs_idle_p50", median(p99), 5});
}

#ifdef VLLM_METRICS_HAS_OTLP
void measure_pushed_step(Ratios& ratios) {
  headline("A step of an engine that is pushed to OpenTelemetry");
  const PushedStep step = time_pushed_step();
  ratios.push_back({"otlp_metrics_vs_plain", step.metrics, 1.05});
  ratios.push_back({"otlp_spans_vs_plain", step.spans, 1.15});
  ratios.push_back({"otlp_blocked_vs_plain", step.blocked, 1.15});
  ratios.push_back({"otlp_blocked_p99_vs_answered", step.blocked_p99, 1.15});
}
#else
void measure_pushed_step(Ratios&) {}
#endif

void measure_two_writers(Ratios& ratios) {
  headline("Two threads that record without pause");
  constexpr std::size_t kRepetitions = 11;
  constexpr std::size_t kSteps = 20'000;
  std::vector<double> one, same, own, ratio;
  for (std::size_t i = 0; i < kRepetitions; ++i) {
    one.push_back(time_concurrent_steps(1, true, kSteps));
    same.push_back(time_concurrent_steps(2, true, kSteps));
    own.push_back(time_concurrent_steps(2, false, kSteps));
    ratio.push_back(same.back() / one.back());
  }
  std::printf("%-44s %14.1f ns\n", "one thread", median(one));
  std::printf("%-44s %14.1f ns\n", "two threads, one engine", median(same));
  std::printf("%-44s %14.1f ns\n", "two threads, an engine each", median(own));
  ratios.push_back({"two_writers_one_engine_vs_one", median(ratio), 5});
}

int run(const char* file_name) {
  const SecondThread second_thread;
  Ratios ratios;
  measure_record(ratios);
  measure_every_feature(ratios);
  measure_native(ratios);
  measure_update_from_output(ratios);
  measure_page(ratios);
  measure_gzip(ratios);
  measure_parser(ratios);
  measure_shared_record(ratios);
  measure_merged_page(ratios);
  headline("A step while another thread scrapes without pause");
  measure_disturbed_step(ratios, "scraped", time_scraped_step);
  headline("A step while 200 clients scrape over HTTP, among 100 hostile ones");
  measure_disturbed_step(ratios, "served", time_served_step);
  measure_pushed_step(ratios);
#ifdef VLLM_METRICS_HAS_SANDBOX
  headline("A step of vllm-metrics-sim, its page asked for without pause");
  measure_sandbox(ratios);
#endif
  measure_two_writers(ratios);

  return tell(ratios, file_name) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace vllm_metrics::bench

int main(int argc, char** argv) {
  return vllm_metrics::bench::run(argc > 1 ? argv[1] : nullptr);
}
