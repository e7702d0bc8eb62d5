#include "src/otlp/file_transport.h"

#include <string>

#include "src/otlp/json_line.h"
#include "src/otlp/line_file.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

class FileTransport final : public Transport {
 public:
  FileTransport(const Settings& settings, Signal signal)
      : signal_(signal),
        file_(settings.file, json_line_head(signal), settings.file_max_bytes) {}

  Response send(const Request& request) override {
    const std::string line = json_line(signal_, request.body) + '\n';
    const auto status = file_.append(line, request.timeout);
    if (status.ok()) return {.status = 200};
    return {.status = absl::IsUnavailable(status) ? 503 : 507,
            .error = std::string(status.message())};
  }
  void cancel() noexcept override { file_.cancel(); }

 private:
  const Signal signal_;
  LineFile file_;
};

}  // namespace

std::shared_ptr<Transport> make_file_transport(const Settings& settings,
                                               Signal signal) {
  return std::make_shared<FileTransport>(settings, signal);
}

}  // namespace vllm_metrics::inline v0::otlp
