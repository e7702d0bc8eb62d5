#pragma once

#include <span>
#include <string_view>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/perf_stats.h"

namespace vllm_metrics::inline v0 {

// What a device can do at most, as its vendor's data sheet has it: matrix
// units, dense (no sparsity), 32-bit accumulation. No kernel reaches this.
struct DevicePeaks {
  std::string_view name;                // e.g. "H100 SXM"
  double bf16_tflops = 0.0;             // 1e12 operations a second
  double fp8_tflops = 0.0;              // 0: no 8-bit floating point units
  double memory_gigabytes_per_s = 0.0;  // 1e9 bytes a second
  double memory_gigabytes = 0.0;        // 1e9 bytes, as sold
};

// The devices that are known, by vendor and age. For one that is not, fill in
// a DevicePeaks of your own.
VLLM_METRICS_EXPORT std::span<const DevicePeaks> known_device_peaks() noexcept;

// The device with this name, in any case; null: not known. Takes the names of
// known_device_peaks() and what the driver calls the device, e.g. "NVIDIA H100
// 80GB HBM3" or "AMD Instinct MI300X".
VLLM_METRICS_EXPORT const DevicePeaks* find_device_peaks(
    std::string_view name) noexcept;

// The numbers that matrices are multiplied in. Not the quantisation of the
// weights: "awq" and "gptq" weights are multiplied in 16 bits.
enum class MatrixPrecision { kBf16, kFp8 };

// Operations a second; without 8-bit units, kFp8 is multiplied in 16 bits.
VLLM_METRICS_EXPORT double peak_flops(const DevicePeaks& peaks,
                                      MatrixPrecision precision) noexcept;

// How close to its peaks a device ran. Fractions, 1 is the peak; an estimate
// that counts more work than was done may give more.
struct DeviceUtilization {
  double flops = 0.0;             // model FLOPs utilisation, MFU
  double memory_bandwidth = 0.0;  // reads and writes
};

// `work`: per GPU, done in `seconds`: a step's estimate and its duration, or
// what the three `vllm:estimated_*_per_gpu_total` counters grew by between two
// scrapes. Zeros when `seconds` or a peak is not above 0.
VLLM_METRICS_EXPORT DeviceUtilization device_utilization(
    const PerfStats& work, double seconds, const DevicePeaks& peaks,
    MatrixPrecision precision) noexcept;

// The least time the work can take: the roofline of the device. 0 when a peak
// is not above 0.
VLLM_METRICS_EXPORT double roofline_seconds(const PerfStats& work,
                                            const DevicePeaks& peaks,
                                            MatrixPrecision precision) noexcept;

}  // namespace vllm_metrics::inline v0
