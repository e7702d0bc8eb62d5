#pragma once

#include <cstddef>

#include "scraped_step.h"

namespace vllm_metrics::bench {

// As time_scraped_step(), but the page is served over HTTP: 200 clients that
// keep their connection scrape one after the other without pause, beside 50
// that send a byte now and then and 50 that send nothing. Ends the program
// when a scrape is not answered.
ScrapedStep time_served_step(std::size_t steps);

}  // namespace vllm_metrics::bench
