#pragma once

#include <cstdlib>

// What a fuzz target checks, in every build: a failure ends the program, and
// the fuzzer keeps the input.
inline void require(bool is_so) {
  if (!is_so) std::abort();
}
