#include "src/otlp/delivery.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "vllm_metrics/registry/labels.h"
#include "vllm_metrics/version.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

constexpr double kFirstBackOff = 1.0;  // seconds
constexpr double kMostBackOff = 5.0;
constexpr double kBackOffGrowth = 1.5;
constexpr double kJitter = 0.2;
// Of a server that asks for an eternity.
constexpr double kMostRetryAfter = 3600.0;

bool is_success(int status) { return status >= 200 && status <= 299; }

// What OTLP/HTTP lists; all else ends the export.
bool may_pass(const Response& response) {
  switch (response.status) {
    case 0:
    case 429:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return false;
  }
}

// Of the bytes, whatever becomes of the server: all else, a missing right or a
// wrong path too, may be another answer to the same bytes tomorrow.
bool is_verdict(const Response& response) {
  switch (response.status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return true;
    default:
      return false;
  }
}

std::string reason(const Response& response) {
  if (!response.error.empty()) return response.error;
  return response.status == 0 ? "no answer"
                              : fmt::format("HTTP status {}", response.status);
}

// A gateway that got no answer does not know either.
bool may_have_arrived(const Response& response) {
  return response.status == 0
             ? response.may_have_arrived
             : response.status == 502 || response.status == 504;
}

// A page of a proxy, say, may look like a message when it is read as one.
bool is_protobuf(const Response& response) {
  const absl::string_view type(response.content_type);
  return type.empty() ||
         absl::StartsWithIgnoreCase(type, "application/x-protobuf") ||
         absl::StartsWithIgnoreCase(type, "application/protobuf");
}

std::string for_a_log(protozero::data_view text) {
  constexpr std::size_t kMost = 256;
  std::string out(text.data(), std::min(text.size(), kMost));
  std::ranges::replace_if(
      out,
      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); },
      ' ');
  return valid_utf8(out);
}

}  // namespace

Transport::~Transport() = default;

PartialSuccess read_partial_success(const Response& response) noexcept {
  if (!is_protobuf(response)) return {};
  try {
    using protozero::pbf_wire_type;
    using protozero::tag_and_type;
    PartialSuccess success;
    protozero::pbf_reader message(response.body);
    while (message.next()) {
      if (message.tag_and_type() !=
          tag_and_type(1, pbf_wire_type::length_delimited)) {
        message.skip();
        continue;
      }
      protozero::pbf_reader partial = message.get_message();
      while (partial.next()) {
        switch (partial.tag_and_type()) {
          case tag_and_type(1, pbf_wire_type::varint):
            success.rejected = static_cast<std::uint64_t>(
                std::max<std::int64_t>(partial.get_int64(), 0));
            break;
          case tag_and_type(2, pbf_wire_type::length_delimited):
            success.message = for_a_log(partial.get_view());
            break;
          default:
            partial.skip();
        }
      }
    }
    return success;
  } catch (const std::exception&) {
    return {};
  }
}

std::string gzip(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (text.size() > std::numeric_limits<uInt>::max() / 2 ||
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

Delivery::Delivery(const Settings& settings,
                   std::shared_ptr<Transport> transport,
                   std::shared_ptr<const Clock> clock, Wait wait)
    : url_(settings.url),
      headers_(settings.headers),
      gzip_(settings.compression == Compression::kGzip),
      timeout_(settings.timeout),
      transport_(std::move(transport)),
      clock_(std::move(clock)),
      wait_(std::move(wait)),
      random_(std::random_device{}()) {
  headers_.emplace_back("content-type", "application/x-protobuf");
  headers_.emplace_back("user-agent", "vllm_metrics/" + std::string(version()));
}

Response Delivery::send_once(std::string_view body, double seconds) {
  Request request{.url = url_,
                  .headers = headers_,
                  .body = body,
                  .timeout = std::min(timeout_, seconds)};
  std::string compressed;
  if (gzip_) compressed = gzip(body);
  if (!compressed.empty()) {
    request.body = compressed;
    request.headers.emplace_back("content-encoding", "gzip");
  }
  try {
    return transport_->send(request);
  } catch (...) {
    return {.may_have_arrived = true, .error = "the transport threw"};
  }
}

Delivered Delivery::send(std::string_view body, std::uint64_t items,
                         double seconds) {
  const double deadline = clock_->monotonic() + seconds;
  double back_off = kFirstBackOff;
  bool unknown = false;
  std::string error = "no time left";
  for (;;) {
    double now = clock_->monotonic();
    if (now < not_before_) {
      if (not_before_ >= deadline || !wait_(not_before_ - now)) break;
      now = clock_->monotonic();
    }
    if (now >= deadline) break;

    const Response response = send_once(body, deadline - now);
    if (is_success(response.status)) {
#ifdef VLLM_METRICS_PLANTED_FAULT
      const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
#else
      const std::uint64_t most = items;
#endif
      PartialSuccess partial = read_partial_success(response);
      partial.rejected = std::min(partial.rejected, most);
      return {.outcome = Outcome::kAccepted, .partial = std::move(partial)};
    }
    unknown |= may_have_arrived(response);
    error = reason(response);
    // What it says of this attempt says nothing of one before.
    if (!may_pass(response))
      return {.outcome = unknown ? Outcome::kUnknown : Outcome::kRefused,
              .final = is_verdict(response),
              .error = std::move(error)};

    const double spread = std::uniform_real_distribution<double>(
        1.0 - kJitter, 1.0 + kJitter)(random_);
    double pause = back_off * spread;
    back_off = std::min(back_off * kBackOffGrowth, kMostBackOff);
    now = clock_->monotonic();
    if (response.retry_after && *response.retry_after > 0.0) {
      pause = std::min(*response.retry_after, kMostRetryAfter);
      not_before_ = now + pause;
    }
    if (now + pause >= deadline || !wait_(pause)) break;
  }
  return {.outcome = unknown ? Outcome::kUnknown : Outcome::kRefused,
          .error = std::move(error)};
}

}  // namespace vllm_metrics::inline v0::otlp
