#include "src/tools/sandbox/live_doctor.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "src/tools/doctor/diagnosis.h"
#include "src/tools/doctor/page_pair.h"
#include "src/tools/doctor/report_json.h"
#include "vllm_metrics/exposition/text_parser.h"

namespace vllm_metrics::sandbox {
namespace {

// Virtual seconds: what a diagnosis needs, what it likes to have, and between
// two pages that are kept.
constexpr double kLeast = 10.0;
constexpr double kWanted = 30.0;
constexpr double kApart = 3.0;

double seconds_of(const std::string& page) {
  constexpr std::string_view kName = "\nvllm_metrics_sim_seconds ";
  const std::size_t at = page.find(kName);
  if (at == std::string::npos) return 0.0;
  return std::strtod(page.c_str() + at + kName.size(), nullptr);
}

}  // namespace

Json LiveDoctor::report(std::uint64_t revision) {
  Moment now;
  now.text = format_.render(*registry_);
  now.seconds = seconds_of(now.text);
  const bool went_back =
      !moments_.empty() && moments_.back().seconds > now.seconds;
  if (revision != revision_ || went_back) moments_.clear();
  revision_ = revision;

  // The latest page that is old enough; those before it are not needed.
  while (moments_.size() > 1 && moments_[1].seconds <= now.seconds - kWanted) {
    moments_.pop_front();
  }
  Json out = {{"models", Json::array()}, {"seconds", 0.0}};
  if (!moments_.empty()) {
    const double elapsed = now.seconds - moments_.front().seconds;
    out["seconds"] = elapsed;
    if (elapsed >= kLeast) out["models"] = compare(moments_.front(), now);
  }
  if (moments_.empty() || now.seconds >= moments_.back().seconds + kApart) {
    moments_.push_back(std::move(now));
  }
  return out;
}

Json LiveDoctor::compare(const Moment& before, const Moment& after) const {
  Json models = Json::array();
  const auto first = parse_page(before.text);
  const auto second = parse_page(after.text);
  if (!first.ok() || !second.ok()) return models;
  const auto readings =
      doctor::read_pages({.before = &*first,
                          .after = &*second,
                          .stated_elapsed = after.seconds - before.seconds});
  if (!readings.ok()) return models;
  for (const doctor::Reading& reading : *readings) {
    models.push_back(doctor::report_json(reading, doctor::diagnose(reading)));
  }
  return models;
}

}  // namespace vllm_metrics::sandbox
