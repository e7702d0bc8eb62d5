#include "vllm_metrics/stats/device_peaks.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>
#include <string>

namespace vllm_metrics {
namespace {

constexpr DevicePeaks kDevice = {.name = "made up",
                                 .bf16_tflops = 100.0,
                                 .fp8_tflops = 200.0,
                                 .memory_gigabytes_per_s = 1000.0,
                                 .memory_gigabytes = 10.0};

TEST_CASE("known_device_peaks: every row is complete and found by its name",
          "[stats]") {
  std::set<std::string_view> names;
  CHECK(known_device_peaks().size() >= 25);
  for (const DevicePeaks& device : known_device_peaks()) {
    CAPTURE(device.name);
    CHECK(names.insert(device.name).second);
    CHECK(device.bf16_tflops > 0.0);
    // 8-bit units are as fast as 16-bit ones or about twice as fast.
    if (device.fp8_tflops != 0.0) {
      CHECK(device.fp8_tflops >= device.bf16_tflops);
      CHECK(device.fp8_tflops < 2.05 * device.bf16_tflops);
    }
    CHECK(device.memory_gigabytes_per_s >= 300.0);
    CHECK(device.memory_gigabytes >= 16.0);
    CHECK(find_device_peaks(device.name) == &device);
  }
}

TEST_CASE("find_device_peaks: knows what drivers call a device", "[stats]") {
  const auto name_of = [](std::string_view name) {
    const DevicePeaks* found = find_device_peaks(name);
    return found == nullptr ? std::string("unknown") : std::string(found->name);
  };
  CHECK(name_of("NVIDIA A100-SXM4-80GB") == "A100 SXM 80GB");
  CHECK(name_of("NVIDIA A100 80GB PCIe") == "A100 PCIe 80GB");
  CHECK(name_of("NVIDIA H100 80GB HBM3") == "H100 SXM");
  CHECK(name_of("NVIDIA H100 PCIe") == "H100 PCIe");
  CHECK(name_of("NVIDIA H100 NVL") == "H100 NVL");
  CHECK(name_of("NVIDIA H200") == "H200 SXM");
  CHECK(name_of("NVIDIA L40S") == "L40S");
  CHECK(name_of("NVIDIA GeForce RTX 4090") == "RTX 4090");
  CHECK(name_of("Tesla T4") == "T4");
  CHECK(name_of("AMD Instinct MI300X") == "MI300X");
  CHECK(name_of("h100 sxm") == "H100 SXM");
  CHECK(name_of("NVIDIA A10") == "A10");
  CHECK(name_of("NVIDIA A10G") == "A10G");
  CHECK(name_of("") == "unknown");
  CHECK(name_of("NVIDIA ") == "unknown");
  CHECK(name_of("NVIDIA H1000") == "unknown");
  CHECK(name_of("H100") == "unknown");
}

TEST_CASE("peak_flops: a device without 8-bit units multiplies in 16",
          "[stats]") {
  CHECK(peak_flops(kDevice, MatrixPrecision::kBf16) == 1e14);
  CHECK(peak_flops(kDevice, MatrixPrecision::kFp8) == 2e14);
  DevicePeaks old = kDevice;
  old.fp8_tflops = 0.0;
  CHECK(peak_flops(old, MatrixPrecision::kFp8) == 1e14);
}

TEST_CASE("device_utilization: work over time over the peak", "[stats]") {
  // 80e12 operations and 1.5e12 bytes in 2 seconds.
  const PerfStats work = {80e12, 1.2e12, 0.3e12};
  const auto bf16 =
      device_utilization(work, 2.0, kDevice, MatrixPrecision::kBf16);
  CHECK(bf16.flops == Approx(0.4));
  CHECK(bf16.memory_bandwidth == Approx(0.75));
  const auto fp8 =
      device_utilization(work, 2.0, kDevice, MatrixPrecision::kFp8);
  CHECK(fp8.flops == Approx(0.2));
  CHECK(fp8.memory_bandwidth == Approx(0.75));
}

TEST_CASE("device_utilization: no time and no peak give zeros", "[stats]") {
  const PerfStats work = {1e12, 1e12, 1e12};
  const double seconds =
      GENERATE(0.0, -1.0, std::numeric_limits<double>::quiet_NaN());
  const auto stopped =
      device_utilization(work, seconds, kDevice, MatrixPrecision::kBf16);
  CHECK(stopped.flops == 0.0);
  CHECK(stopped.memory_bandwidth == 0.0);
  const auto unknown =
      device_utilization(work, 1.0, {}, MatrixPrecision::kBf16);
  CHECK(unknown.flops == 0.0);
  CHECK(unknown.memory_bandwidth == 0.0);
}

TEST_CASE("roofline_seconds: the slower of arithmetic and memory", "[stats]") {
  const auto seconds = [](const PerfStats& work, MatrixPrecision precision) {
    return roofline_seconds(work, kDevice, precision);
  };
  CHECK(seconds({3e14, 1e12, 0.0}, MatrixPrecision::kBf16) == Approx(3.0));
  CHECK(seconds({3e14, 1e12, 0.0}, MatrixPrecision::kFp8) == Approx(1.5));
  CHECK(seconds({3e14, 2e12, 2e12}, MatrixPrecision::kBf16) == Approx(4.0));
  CHECK(seconds({}, MatrixPrecision::kBf16) == 0.0);
  CHECK(roofline_seconds({1.0, 1.0, 1.0}, {}, MatrixPrecision::kBf16) == 0.0);
}

}  // namespace
}  // namespace vllm_metrics
