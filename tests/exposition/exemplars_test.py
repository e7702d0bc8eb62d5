"""An OpenMetrics page with exemplars: client_python's parser reads of each
bucket the request that came to it last."""

import argparse
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import debian_python  # noqa: E402

debian_python.needs("prometheus_client")
try:
    from prometheus_client.openmetrics import parser as open_metrics
except ImportError:
    open_metrics = None


@unittest.skipIf(open_metrics is None, "python3-prometheus-client is missing")
class Exemplars(unittest.TestCase):
    writer = None

    def test_each_bucket_has_its_newest_request(self):
        page = subprocess.run(
            [self.writer], check=True, capture_output=True, timeout=60
        ).stdout.decode("utf-8")
        below = 0.0
        read = 0
        for family in open_metrics.text_string_to_metric_families(page):
            if family.name != "vllm:e2e_request_latency_seconds":
                continue
            for sample in family.samples:
                if not sample.name.endswith("_bucket"):
                    self.assertIsNone(sample.exemplar)
                    continue
                bound = float(sample.labels["le"])
                in_bucket = [
                    n for n in range(1, 41) if below < n / 4 <= bound]
                below = bound
                if not in_bucket:
                    self.assertIsNone(sample.exemplar)
                    continue
                newest = in_bucket[-1]
                self.assertEqual(
                    sample.exemplar.labels,
                    {"trace_id": f"{newest:032x}", "span_id": f"{newest:016x}",
                     "request_id": f"request-{newest}"})
                self.assertEqual(sample.exemplar.value, newest / 4)
                self.assertGreater(float(sample.exemplar.timestamp), 1e9)
                read += 1
        self.assertGreaterEqual(read, 5)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build-dir", type=pathlib.Path, required=True)
    arguments.add_argument("--source-dir", type=pathlib.Path, required=True)
    options = arguments.parse_args()
    Exemplars.writer = options.build_dir / "tests" / "exemplar_page"
    unittest.main(argv=sys.argv[:1])
