// Any bytes as what a collector answers to an export and its retries: what is
// kept is bounded, the export ends in its time, and its outcome is that of the
// last answer.
// Covers: src/otlp/answer_reader.cc src/otlp/delivery.cc

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/otlp/answer_reader.h"
#include "src/otlp/delivery.h"
#include "tests/fuzz/require.h"
#include "vllm_metrics/loggers/clock.h"

namespace {

using namespace vllm_metrics;

constexpr double kOneTry = 10.0;  // seconds
constexpr double kExport = 60.0;
constexpr std::size_t kMost = 64 * 1024;

class FakeClock final : public Clock {
 public:
  double wall() const noexcept override { return 1.7e9 + now; }
  double monotonic() const noexcept override { return now; }
  double now = 0.0;
};

// Cuts `text` after the next `end`; without one, all is taken.
std::string_view cut(std::string_view& text, std::string_view end) {
  const auto at = text.find(end);
  const std::string_view first =
      text.substr(0, at == text.npos ? at : at + end.size());
  text.remove_prefix(first.size());
  return first;
}

// Answers of HTTP one after the other, a zero byte behind each but the last.
// One that is not whole takes all the time there is.
class Collector final : public otlp::Transport {
 public:
  Collector(std::string_view answers, FakeClock& clock)
      : left_(answers), clock_(clock) {}

  otlp::Response send(const otlp::Request& request) override {
    ++requests;
    require(request.timeout > 0.0 && request.timeout <= kOneTry);
    std::string_view answer = cut(left_, std::string_view("\0", 1));
    otlp::AnswerReader reader(clock_.wall());
    while (!reader.has_head() && !answer.empty()) {
      if (!reader.take_head(cut(answer, "\n"))) break;
    }
    // In pieces, as the network has them; long ones are said twice.
    while (reader.has_head() && !answer.empty()) {
      const std::string_view piece = answer.substr(0, 100);
      answer.remove_prefix(piece.size());
      if (!reader.take_body(piece)) break;
    }
    last = reader.take();
    if (last.status == 0) clock_.now += request.timeout;
    require(last.status == 0 || (last.status >= 200 && last.status <= 599));
    require(last.body.size() <= kMost && last.content_type.size() <= kMost);
    require(!last.retry_after || *last.retry_after > 0.0);
    return last;
  }

  otlp::Response last = {};
  int requests = 0;

 private:
  std::string_view left_;
  FakeClock& clock_;
};

void export_once(std::string_view answers, std::uint64_t items, bool gzip) {
  const auto clock = std::make_shared<FakeClock>();
  const auto collector = std::make_shared<Collector>(answers, *clock);
  otlp::Settings settings;
  settings.timeout = kOneTry;
  if (gzip) settings.compression = otlp::Compression::kGzip;
  otlp::Delivery delivery(settings, collector, clock, [&](double seconds) {
    require(seconds > 0.0 && seconds <= kExport);
    clock->now += seconds;
    return true;
  });
  const otlp::Delivered done = delivery.send("body", items, kExport);
  const int status = collector->last.status;
  require(clock->now <= kExport + 1e-6);
  require(collector->requests >= 1 && collector->requests <= 80);
  require(done.partial.rejected <= items);
  require((done.outcome == otlp::Outcome::kAccepted) ==
          (status >= 200 && status <= 299));
  require(done.partial.rejected == 0 ||
          done.outcome == otlp::Outcome::kAccepted);
  require(!done.final || (status != 0 && status != 429 && status != 503));
  require(done.error.size() < 1000);
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

// What is a message of OpenTelemetry is read as one, whatever it says.
void read_back(std::string_view text, std::int64_t rejected) {
  std::string partial;
  if (rejected != 0)
    partial += '\x08' + varint(static_cast<std::uint64_t>(rejected));
  partial += '\x12' + varint(text.size()) + std::string(text);
  otlp::Response response{.status = 200};
  response.body = '\x0a' + varint(partial.size()) + partial;
  const auto read = otlp::read_partial_success(response);
  require(read.rejected ==
          static_cast<std::uint64_t>(std::max<std::int64_t>(0, rejected)));
  require(read.message.size() <= 3 * 256 &&
          read.message.find('\n') == read.message.npos);
  response.content_type = "text/html; charset=utf-8";
  require(otlp::read_partial_success(response).rejected == 0);
  response.body.pop_back();
  response.content_type = "application/x-protobuf";
  require(otlp::read_partial_success(response).rejected == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  constexpr std::size_t kNumber = 8;
  if (size < kNumber) return 0;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kNumber; ++i) number = number << 8 | data[i];
  const std::string_view answers(reinterpret_cast<const char*>(data + kNumber),
                                 size - kNumber);
  export_once(answers, number & 0xff, (number & 0x100) != 0);
  read_back(answers, static_cast<std::int64_t>(number));
  return 0;
}
