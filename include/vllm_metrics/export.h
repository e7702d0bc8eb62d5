#pragma once

// Marks what the shared libraries export; everything unmarked stays hidden.
// Goes on classes with members defined in a .cc, and on free functions.
//
// VLLM_METRICS_STATIC is defined for you by the CMake targets and the
// pkg-config files of a static build: there the names stay hidden, so an engine
// that is itself a shared library does not export them by accident.
#if defined(VLLM_METRICS_STATIC)
#define VLLM_METRICS_EXPORT
#else
#define VLLM_METRICS_EXPORT __attribute__((visibility("default")))
#endif
