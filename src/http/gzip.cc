#include "src/http/gzip.h"

#define ZLIB_CONST  // zlib only reads its input
#include <zlib.h>

#include <limits>

namespace vllm_metrics::inline v0::http {
namespace {

constexpr int kLevel = 1;
constexpr int kGzipWindow = 15 + 16;  // 32 KiB, and the header of gzip
constexpr int kMemoryLevel = 8;       // zlib's default, 256 KiB in all

}  // namespace

void Gzip::Free::operator()(z_stream_s* stream) const noexcept {
  deflateEnd(stream);
  delete stream;
}

bool Gzip::compress(std::string_view page, std::string& out) {
  if (page.size() > std::numeric_limits<uInt>::max() / 2) return false;
  if (stream_ == nullptr) {
    auto stream = std::make_unique<z_stream>();
    if (deflateInit2(stream.get(), kLevel, Z_DEFLATED, kGzipWindow,
                     kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
      return false;
    }
    stream_.reset(stream.release());
  }
  z_stream& stream = *stream_;
  if (deflateReset(&stream) != Z_OK) return false;
  out.resize(deflateBound(&stream, page.size()));
  stream.next_in = reinterpret_cast<const Bytef*>(page.data());
  stream.avail_in = static_cast<uInt>(page.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return false;
  out.resize(out.size() - stream.avail_out);
  return true;
}

}  // namespace vllm_metrics::inline v0::http
