#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vllm_metrics/registry/schema.h"

namespace vllm_metrics::inline v0::shm {

// The bytes of a schema in a block. Integers are 32 bits, little and big as
// the machine has them; a text is its size and its bytes.
//
//   number of bounds; for each its size and its doubles
//   number of families; for each
//     name, help, unit, then kind, number, mode and info in one integer, a byte
//     each number of series; for each
//       number of labels; for each name and value
//       offset, number of its bounds (0xFFFFFFFF: none), native buckets,
//       exemplars
//   the same once more: families of the past
std::string encode(const std::vector<SchemaFamily>& families,
                   const std::vector<SchemaFamily>& past = {});

// The hash of a block's schema: FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view bytes) noexcept;

// What the cells of a block mean.
struct BlockSchema {
  std::vector<SchemaFamily> families = {};
  // Info series that are not on the page by themselves: where a like one is, it
  // has the newest time of all.
  std::vector<SchemaFamily> past = {};
  std::size_t cell_count = 0;  // of all banks
};

// Reads schemas back. Processes of one server have the same one, so each is
// kept for as long as it is used.
//
// Thread-safety: none.
class SchemaDecoder {
 public:
  // Null for bytes that are not a schema of `cell_count` cells: a cut or made
  // up one, a name that is not allowed, a series that lies outside.
  std::shared_ptr<const BlockSchema> decode(std::string_view bytes,
                                            std::size_t cell_count);

 private:
  std::unordered_map<std::string, std::weak_ptr<const BlockSchema>> known_;
};

}  // namespace vllm_metrics::inline v0::shm
