#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>
#include <string_view>

namespace vllm_metrics::inline v0::protobuf {

// Writes messages from their end to their beginning: a length that stands in
// front of a message is known when it is written, and nothing moves. What is
// called first comes last.
//
// The buffer is the caller's to make large enough. Thread-safety: none.
class BackwardWriter {
 public:
  explicit BackwardWriter(char* end) noexcept : at_(end) {}

  char* at() const noexcept { return at_; }

  void bytes(std::string_view bytes) noexcept {
    at_ -= bytes.size();
    std::memcpy(at_, bytes.data(), bytes.size());
  }
  void varint(std::uint64_t value) noexcept {
    if (value < 0x80) {
      *--at_ = static_cast<char>(value);
      return;
    }
    at_ -= protozero::length_of_varint(value);
    protozero::add_varint_to_buffer(at_, value);
  }
  void key(std::uint32_t field, protozero::pbf_wire_type type) noexcept {
    varint(field << 3 | static_cast<std::uint32_t>(type));
  }

  void number(std::uint32_t field, std::uint64_t value) noexcept {
    varint(value);
    key(field, protozero::pbf_wire_type::varint);
  }
  void signed_number(std::uint32_t field, std::int64_t value) noexcept {
    number(field, protozero::encode_zigzag64(value));
  }
  void real(std::uint32_t field, double value) noexcept {
    at_ -= sizeof value;
    put_real(at_, value);
    key(field, protozero::pbf_wire_type::fixed64);
  }
  void text(std::uint32_t field, std::string_view text) noexcept {
    const char* const end = at_;
    bytes(text);
    message(field, end);
  }
  // The message that was written since at() was `end`.
  void message(std::uint32_t field, const char* end) noexcept {
    varint(static_cast<std::uint64_t>(end - at_));
    key(field, protozero::pbf_wire_type::length_delimited);
  }

  // Eight bytes, the lowest first.
  static void put_real(char* to, double value) noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(to, &value, sizeof value);
  }

 private:
  char* at_;
};

}  // namespace vllm_metrics::inline v0::protobuf
