#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace vllm_metrics::bench {

// Times pieces of work against each other in one process, in turns of a
// fraction of a millisecond: whatever the machine does meanwhile, it does to
// all of them.
//
// A repetition is some rounds of turns; its time is the median of them. What
// is reported is the median over the repetitions, of a time or of a ratio of
// two times of one repetition.
class Contest {
 public:
  using Work = std::function<void(std::size_t times)>;

  explicit Contest(std::size_t rounds = 15) : rounds_(rounds) {}

  // `work(n)` does it n times. Returns its number in this contest.
  std::size_t add(std::string name, Work work);

  // Times everything and prints a line for each.
  void run();

  double nanoseconds(std::size_t contestant) const;
  double ratio(std::size_t above, std::size_t below) const;

 private:
  static constexpr std::size_t kRepetitions = 15;

  struct Contestant {
    std::string name;
    Work work;
    std::size_t times = 1;            // per turn
    std::vector<double> nanoseconds;  // per repetition, of one time
  };

  std::size_t rounds_;
  std::vector<Contestant> contestants_;
};

double median(std::vector<double> values);

// The value below which the share `part` of `values` lies.
double quantile(std::vector<double> values, double part);

}  // namespace vllm_metrics::bench
