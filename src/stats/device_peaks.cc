#include "vllm_metrics/stats/device_peaks.h"

#include <algorithm>
#include <array>

namespace vllm_metrics::inline v0 {
namespace {

// Where a data sheet prints tensor figures with sparsity, half of them; per
// GPU where it prints them for a board of several.
constexpr auto kDevices = std::to_array<DevicePeaks>({
    // name, bf16, fp8, GB/s, GB
    // NVIDIA Tesla V100 data sheet: the 16-bit units are fp16 only.
    {"V100 SXM2 16GB", 125.0, 0.0, 900.0, 16.0},
    {"V100 SXM2 32GB", 125.0, 0.0, 900.0, 32.0},
    // NVIDIA T4 data sheet: likewise.
    {"T4", 65.0, 0.0, 300.0, 16.0},
    // NVIDIA A100, A30, A40, A10 data sheets; A10G as in AWS's copy.
    {"A100 SXM 40GB", 312.0, 0.0, 1555.0, 40.0},
    {"A100 SXM 80GB", 312.0, 0.0, 2039.0, 80.0},
    {"A100 PCIe 40GB", 312.0, 0.0, 1555.0, 40.0},
    {"A100 PCIe 80GB", 312.0, 0.0, 1935.0, 80.0},
    {"A30", 165.0, 0.0, 933.0, 24.0},
    {"A40", 149.7, 0.0, 696.0, 48.0},
    {"A10", 125.0, 0.0, 600.0, 24.0},
    {"A10G", 70.0, 0.0, 600.0, 24.0},
    // NVIDIA L4, L40, L40S data sheets.
    {"L4", 121.0, 242.0, 300.0, 24.0},
    {"L40", 181.0, 362.0, 864.0, 48.0},
    {"L40S", 362.0, 733.0, 864.0, 48.0},
    // NVIDIA Ada GPU architecture, appendix A: with 32-bit accumulation.
    {"RTX 4090", 165.2, 330.3, 1008.0, 24.0},
    // NVIDIA H100, H100 NVL, H200, H20 and GH200 data sheets.
    {"H100 SXM", 989.5, 1979.0, 3350.0, 80.0},
    {"H100 PCIe", 756.5, 1513.0, 2000.0, 80.0},
    {"H100 NVL", 835.5, 1670.5, 3900.0, 94.0},
    {"H200 SXM", 989.5, 1979.0, 4800.0, 141.0},
    {"H200 NVL", 835.5, 1670.5, 4800.0, 141.0},
    {"H20", 148.0, 296.0, 4000.0, 96.0},
    {"GH200 96GB", 990.0, 1979.0, 4000.0, 96.0},
    // NVIDIA DGX B200 and GB200 NVL72 data sheets.
    {"B200", 2250.0, 4500.0, 8000.0, 180.0},
    {"GB200", 2500.0, 5000.0, 8000.0, 186.0},
    // AMD Instinct MI210, MI300X, MI325X, MI350X, MI355X data sheets.
    {"MI210", 181.0, 0.0, 1638.0, 64.0},
    {"MI300X", 1307.4, 2614.9, 5300.0, 192.0},
    {"MI325X", 1307.4, 2614.9, 6000.0, 256.0},
    {"MI350X", 2309.6, 4614.0, 8000.0, 288.0},
    {"MI355X", 2516.6, 5033.2, 8000.0, 288.0},
    // Intel Gaudi 2 and Gaudi 3 white papers.
    {"Gaudi 2", 432.0, 865.0, 2450.0, 96.0},
    {"Gaudi 3", 1835.0, 1835.0, 3700.0, 128.0},
});

// What drivers report, where it is not a vendor's name before one of the above.
struct DriverName {
  std::string_view reported;
  std::string_view name;
};
constexpr DriverName kDriverNames[] = {
    {"Tesla V100-SXM2-16GB", "V100 SXM2 16GB"},
    {"Tesla V100-SXM2-32GB", "V100 SXM2 32GB"},
    {"NVIDIA A100-SXM4-40GB", "A100 SXM 40GB"},
    {"NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"},
    {"NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"},
    {"NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"},
    {"NVIDIA H100 80GB HBM3", "H100 SXM"},
    {"NVIDIA H200", "H200 SXM"},
    {"NVIDIA GH200 480GB", "GH200 96GB"},
};

constexpr std::string_view kVendors[] = {"NVIDIA GeForce ", "NVIDIA ", "Tesla ",
                                         "AMD Instinct ", "Intel "};

// Without a locale: names are ASCII.
constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool positive(double value) noexcept { return value > 0.0; }

}  // namespace

std::span<const DevicePeaks> known_device_peaks() noexcept { return kDevices; }

const DevicePeaks* find_device_peaks(std::string_view name) noexcept {
  for (const DriverName& driver : kDriverNames) {
    if (same(name, driver.reported)) name = driver.name;
  }
  for (const std::string_view vendor : kVendors) {
    if (!same(name.substr(0, vendor.size()), vendor)) continue;
    name.remove_prefix(vendor.size());
    break;
  }
  for (const DevicePeaks& device : kDevices) {
    if (same(name, device.name)) return &device;
  }
  return nullptr;
}

double peak_flops(const DevicePeaks& peaks,
                  MatrixPrecision precision) noexcept {
  const bool in_8_bits =
      precision == MatrixPrecision::kFp8 && positive(peaks.fp8_tflops);
  return 1e12 * (in_8_bits ? peaks.fp8_tflops : peaks.bf16_tflops);
}

DeviceUtilization device_utilization(const PerfStats& work, double seconds,
                                     const DevicePeaks& peaks,
                                     MatrixPrecision precision) noexcept {
  const double flops = peak_flops(peaks, precision);
  const double bytes = 1e9 * peaks.memory_gigabytes_per_s;
  if (!positive(seconds) || !positive(flops) || !positive(bytes)) return {};
  return {.flops = work.num_flops_per_gpu / seconds / flops,
          .memory_bandwidth =
              (work.num_read_bytes_per_gpu + work.num_write_bytes_per_gpu) /
              seconds / bytes};
}

double roofline_seconds(const PerfStats& work, const DevicePeaks& peaks,
                        MatrixPrecision precision) noexcept {
  const double flops = peak_flops(peaks, precision);
  const double bytes = 1e9 * peaks.memory_gigabytes_per_s;
  if (!positive(flops) || !positive(bytes)) return 0.0;
  return std::max(
      work.num_flops_per_gpu / flops,
      (work.num_read_bytes_per_gpu + work.num_write_bytes_per_gpu) / bytes);
}

}  // namespace vllm_metrics::inline v0
