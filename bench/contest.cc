#include "contest.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

namespace vllm_metrics::bench {
namespace {

constexpr double kTurnNanoseconds = 200e3;

// Of this thread: what other processes take meanwhile is not ours, and a turn
// that is longer than a time slice would be charged for it.
double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 +
         static_cast<double>(now.tv_nsec);
}

double nanoseconds_of(const Contest::Work& work, std::size_t times) {
  const double start = cpu_nanoseconds();
  work(times);
  return cpu_nanoseconds() - start;
}

}  // namespace

double quantile(std::vector<double> values, double part) {
  const auto place = static_cast<std::ptrdiff_t>(
      part * static_cast<double>(values.size() - 1));
  const auto it = values.begin() + place;
  std::ranges::nth_element(values, it);
  return *it;
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

std::size_t Contest::add(std::string name, Work work) {
  contestants_.push_back({std::move(name), std::move(work), 1, {}});
  return contestants_.size() - 1;
}

void Contest::run() {
  for (Contestant& each : contestants_) {
    while (nanoseconds_of(each.work, each.times) < kTurnNanoseconds)
      each.times *= 2;
  }
  for (std::size_t repetition = 0; repetition < kRepetitions; ++repetition) {
    std::vector<std::vector<double>> turns(contestants_.size());
    for (std::size_t round = 0; round < rounds_; ++round) {
      for (std::size_t i = 0; i < contestants_.size(); ++i) {
        Contestant& each = contestants_[i];
        // The others have used the caches.
        each.work((each.times + 3) / 4);
        turns[i].push_back(nanoseconds_of(each.work, each.times) /
                           static_cast<double>(each.times));
      }
    }
    for (std::size_t i = 0; i < contestants_.size(); ++i)
      contestants_[i].nanoseconds.push_back(median(turns[i]));
  }
  for (std::size_t i = 0; i < contestants_.size(); ++i) {
    std::printf("%-44s %14.1f ns\n", contestants_[i].name.c_str(),
                nanoseconds(i));
  }
  std::fflush(stdout);
}

double Contest::nanoseconds(std::size_t contestant) const {
  return median(contestants_[contestant].nanoseconds);
}

double Contest::ratio(std::size_t above, std::size_t below) const {
  std::vector<double> ratios;
  for (std::size_t repetition = 0; repetition < kRepetitions; ++repetition) {
    ratios.push_back(contestants_[above].nanoseconds[repetition] /
                     contestants_[below].nanoseconds[repetition]);
  }
  return median(std::move(ratios));
}

}  // namespace vllm_metrics::bench
