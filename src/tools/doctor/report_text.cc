#include "src/tools/doctor/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm_metrics::doctor {
namespace {

constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kPlain = "\033[0m";

std::string seconds(double value) {
  if (value < 1.0) return fmt::format("{:.3g} ms", value * 1e3);
  if (value < 600.0) return fmt::format("{:.3g} s", value);
  return fmt::format("{:.3g} min", value / 60.0);
}

std::string percent(double share) {
  return fmt::format("{:.{}f} %", share * 100.0, share < 0.1 ? 1 : 0);
}

std::string number(double value) {
  if (value >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

class Writer {
 public:
  explicit Writer(const TextStyle& style)
      : style_(style),
        width_(static_cast<std::size_t>(std::max(60, style.width))) {}

  // `text` in lines of the width, the first behind `head`, the others below it.
  void paragraph(std::string_view head, std::string_view text) {
    std::size_t column = head.size();
    text_ += head;
    bool first = true;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      const std::string_view word = text.substr(0, end);
      if (!first && column + 1 + word.size() > width_) {
        text_ += '\n';
        text_.append(head.size(), ' ');
        column = head.size();
        first = true;
      }
      if (!first) {
        text_ += ' ';
        ++column;
      }
      text_ += word;
      column += word.size();
      first = false;
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    text_ += '\n';
  }

  // Figures side by side, as many as fit on a line.
  void figures(const std::vector<std::string>& all) {
    std::size_t column = 0;
    for (const std::string& one : all) {
      if (column > 0 && column + 3 + one.size() > width_) {
        text_ += '\n';
        column = 0;
      }
      text_ += column == 0 ? "  " : "   ";
      text_ += one;
      column += one.size() + (column == 0 ? 2 : 3);
    }
    if (column > 0) text_ += '\n';
  }

  void heading(std::string_view text, std::string_view color = {}) {
    if (style_.color) text_ += fmt::format("{}{}", kBold, color);
    text_ += text;
    if (style_.color) text_ += kPlain;
    text_ += '\n';
  }

  void blank() { text_ += '\n'; }
  std::string take() { return std::move(text_); }

 private:
  const TextStyle style_;
  const std::size_t width_;
  std::string text_;
};

void write_state(const Reading& reading, Writer& out) {
  std::vector<std::string> figures;
  const auto level = [&](std::string_view name, const std::optional<Level>& at,
                         std::string (*text)(double)) {
    if (!at.has_value()) return;
    std::string figure = fmt::format("{} {}", name, text(at->after));
    if (!reading.since_start)
      figure += fmt::format(" (was {})", text(at->before));
    figures.push_back(std::move(figure));
  };
  level("running", reading.running, number);
  level("waiting", reading.waiting, number);
  level("KV cache", reading.kv_usage, percent);
  if (reading.preemptions)
    figures.push_back(
        fmt::format("preemptions {}", number(*reading.preemptions)));
  if (const auto hits = reading.hit_rate())
    figures.push_back("prefix hits " + percent(*hits));
  out.figures(figures);
}

void write_throughput(const Reading& reading, Writer& out) {
  std::vector<std::string> figures;
  const auto counted = [&](std::string_view name, std::optional<double> count) {
    if (!count.has_value()) return;
    const auto rate = reading.per_second(count);
    figures.push_back(rate ? fmt::format("{} {}/s", name, number(*rate))
                           : fmt::format("{} {}", name, number(*count)));
  };
  counted("prompt tokens", reading.prompt_tokens);
  counted("output tokens", reading.generation_tokens);
  if (reading.ended.has_value()) {
    const Endings& ended = *reading.ended;
    counted("ended requests", ended.all());
    const auto share = [&](std::string_view name, double count) {
      if (count > 0.0)
        figures.push_back(
            fmt::format("{} {}", name, percent(count / ended.all())));
    };
    share("of these length", ended.length);
    share("abort", ended.abort);
    share("error", ended.error);
  }
  out.figures(figures);
}

void write_latencies(const Reading& reading, Writer& out) {
  std::vector<std::string> figures;
  if (reading.ttft)
    figures.push_back(fmt::format("TTFT p50 {}, p95 {}",
                                  seconds(quantile(0.5, *reading.ttft)),
                                  seconds(quantile(0.95, *reading.ttft))));
  if (reading.itl)
    figures.push_back(fmt::format("ITL p50 {}, p99 {}",
                                  seconds(quantile(0.5, *reading.itl)),
                                  seconds(quantile(0.99, *reading.itl))));
  if (reading.tpot)
    figures.push_back("TPOT mean " + seconds(mean(*reading.tpot)));
  if (reading.step_tokens)
    figures.push_back("tokens per step " + number(mean(*reading.step_tokens)));
  out.figures(figures);
  if (reading.queue_time && reading.prefill_time && reading.decode_time) {
    out.figures(
        {fmt::format("a request's time: queue {}, prefill {}, decode {}",
                     seconds(mean(*reading.queue_time)),
                     seconds(mean(*reading.prefill_time)),
                     seconds(mean(*reading.decode_time)))});
  }
}

void write_finding(const Finding& finding, std::size_t number, Writer& out) {
  out.blank();
  out.heading(fmt::format("{}. {}", number, finding.title), kRed);
  out.paragraph("   case      ", fmt::format("{}, {} confidence", finding.id,
                                             name_of(finding.confidence)));
  std::string_view head = "   evidence  ";
  for (const Evidence& one : finding.evidence) {
    out.paragraph(head, one.text);
    head = "             ";
  }
  out.paragraph("   cause     ", finding.cause);
  head = "   try       ";
  for (const Lever& lever : finding.levers) {
    out.paragraph(head, fmt::format("{} {}: {}", lever.parameter, lever.change,
                                    lever.moves));
    head = "             ";
  }
}

}  // namespace

std::string report_text(const Reading& reading, const Diagnosis& diagnosis,
                        const TextStyle& style) {
  Writer out(style);
  std::string title =
      fmt::format("{}, {} engine{}", reading.model, reading.engines.size(),
                  reading.engines.size() == 1 ? "" : "s");
  if (reading.elapsed) title += ", " + seconds(*reading.elapsed);
  if (reading.since_start) title += ", since its start";
  if (reading.restarted) title += ", restarted meanwhile";
  out.heading(title);
  write_state(reading, out);
  write_throughput(reading, out);
  write_latencies(reading, out);
  switch (diagnosis.state) {
    case State::kHealthy:
      out.heading("Healthy: nothing found.", kGreen);
      break;
    case State::kIdle:
      out.heading("Idle: no request in the engines, none between the pages.",
                  kGreen);
      break;
    case State::kUnknown:
      out.paragraph("", fmt::format("Cannot tell: {}.", diagnosis.why));
      break;
    case State::kFindings:
      for (std::size_t i = 0; i < diagnosis.findings.size(); ++i)
        write_finding(diagnosis.findings[i], i + 1, out);
      break;
  }
  return out.take();
}

}  // namespace vllm_metrics::doctor
