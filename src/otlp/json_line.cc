#include "src/otlp/json_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <utility>

#include "src/otlp/json_schema.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

class Writer {
 public:
  // Entries of a repeated field need not come one behind the other: they are
  // written where the first of them is.
  void write(const protozero::pbf_reader& whole, Message message) {
    std::uint32_t written = 0;  // a bit for each field, by its place
    char before = '{';
    for (protozero::pbf_reader in = whole; in.next();) {
      const auto field = std::ranges::find(message, in.tag(), &Field::number);
      const std::uint32_t bit =
          field == message.end() ? 0 : 1U << (field - message.begin());
      if (bit == 0 || (written & bit) != 0) {
        in.skip();
        continue;
      }
      written |= bit;
      out_ += std::exchange(before, ',');
      text(field->name);
      out_ += ':';
      value(whole, in, *field);
    }
    out_ += before == '{' ? "{}" : "}";
  }

  std::string take() { return std::move(out_); }

 private:
  void messages(protozero::pbf_reader all, const Field& field) {
    char before = '[';
    while (all.next(field.number)) {
      out_ += std::exchange(before, ',');
      write(all.get_message(), field.message);
    }
    out_ += ']';
  }

  // `in` is at the field's first entry in `whole`.
  void value(const protozero::pbf_reader& whole, protozero::pbf_reader& in,
             const Field& field) {
    switch (field.as) {
      case As::kMessages:
        messages(whole, field);
        return in.skip();
      case As::kMessage:
        return write(in.get_message(), field.message);
      case As::kText: {
        const auto view = in.get_view();
        return text({view.data(), view.size()});
      }
      case As::kId: {
        const auto view = in.get_view();
        return id({view.data(), view.size()});
      }
      case As::kFixed64:
        return quoted(in.get_fixed64());
      case As::kSigned64:
        return quoted(in.get_sfixed64());
      case As::kInt64:
        return quoted(in.get_int64());
      case As::kDouble:
        return number(in.get_double());
      case As::kSint32:
        return number(in.get_sint32());
      case As::kEnum:
        return number(in.get_enum());
      case As::kUint32:
        return number(in.get_uint32());
      case As::kBool:
        out_ += in.get_bool() ? "true" : "false";
        return;
      case As::kFixed64s:
        return list(in.get_packed_fixed64(),
                    [this](std::uint64_t v) { quoted(v); });
      case As::kUint64s:
        return list(in.get_packed_uint64(),
                    [this](std::uint64_t v) { quoted(v); });
      case As::kDoubles:
        return list(in.get_packed_double(), [this](double v) { number(v); });
    }
  }

  template <class Range, class Put>
  void list(const Range& values, Put put) {
    char before = '[';
    if (values.empty()) out_ += before;
    for (const auto v : values) {
      out_ += before;
      put(v);
      before = ',';
    }
    out_ += ']';
  }

  template <std::integral Integer>
  void number(Integer value) {
    char digits[24];
    out_.append(digits,
                std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  // The shortest text that reads back as the same double.
  void number(double value) {
    if (std::isnan(value)) return text("NaN");
    if (std::isinf(value)) return text(value > 0 ? "Infinity" : "-Infinity");
    char digits[32];
    out_.append(digits,
                std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  template <std::integral Integer>
  void quoted(Integer value) {
    out_ += '"';
    number(value);
    out_ += '"';
  }

  void id(std::string_view bytes) {
    out_ += '"';
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      out_ += kHexDigits[byte >> 4];
      out_ += kHexDigits[byte & 15];
    }
    out_ += '"';
  }

  void text(std::string_view value) {
    out_ += '"';
    for (const char c : valid_utf8(value)) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (static_cast<unsigned char>(c) < ' ') {
        out_ += c < '\x10' ? "\\u000" : "\\u001";
        out_ += kHexDigits[c & 15];
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string out_;
};

}  // namespace

std::string_view json_line_head(Signal signal) {
  return signal == Signal::kMetrics ? "{\"resourceMetrics\":["
                                    : "{\"resourceSpans\":[";
}

std::string json_line(Signal signal, std::string_view request) {
  Writer out;
  out.write(protozero::pbf_reader(request.data(), request.size()),
            signal == Signal::kMetrics ? Message(kMetricsRequest)
                                       : Message(kTraceRequest));
  return out.take();
}

}  // namespace vllm_metrics::inline v0::otlp
