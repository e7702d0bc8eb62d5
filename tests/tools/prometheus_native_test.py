"""A real Prometheus gets the simulator's latencies as native histograms, by
protobuf, and as classic ones, by text and OpenMetrics: the first come close to the
quantile of the simulator's own list of requests. All but text bring exemplars, which
are requests of that list."""

import argparse
import csv
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

import prometheus_test as base

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from page_server import PageServer  # noqa: E402

FAMILY = "vllm:e2e_request_latency_seconds"
FORMATS = {
    "text": "text/plain;version=0.0.4",
    "open_metrics": "application/openmetrics-text;version=1.0.0",
}
BEGIN = 1_800_000_000  # of virtual time, seconds since 1970
SECONDS = 120
QUANTILE = 0.99
# The whole run lies in the window; virtual time is ten times as fast.
WINDOW = "1m"


def page_as(url, accept):
    """What a client gets of `url` that asks for one format only: Prometheus 2.42
    asks every target for protobuf when it is to take native histograms."""
    asked = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return answer.read(), answer.headers["Content-Type"]


class NativeHistograms(unittest.TestCase):
    build_dir = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start_simulator(self):
        """Its URL, and the file with a row for each request once it has ended."""
        rows = self.folder / "requests.csv"
        process = subprocess.Popen(
            [self.build_dir / "bin/vllm-metrics-sim", "--listen", "127.0.0.1:0",
             "--native-histograms", "--exemplars", "--rate", "30",
             "--output-tokens", "60", "--speed", "10", "--seconds", str(SECONDS),
             "--begin", str(BEGIN), "--log-interval", "0", "--requests", rows,
             "--linger", "unlimited"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, base.HANG_GUARD_SECONDS)
        self.addCleanup(process.terminate)
        return process, process.stdout.readline().split()[-1], rows

    def start_prometheus(self, url):
        jobs = {"protobuf": urllib.parse.urlparse(url).netloc}
        for job, accept in FORMATS.items():
            proxy = PageServer(lambda accept=accept: page_as(url, accept))
            self.addCleanup(proxy.stop)
            jobs[job] = proxy.target
        prometheus = base.Prometheus(
            jobs, self.folder,
            ["--enable-feature=native-histograms,exemplar-storage"])
        self.addCleanup(prometheus.stop)
        return prometheus

    def test_quantiles_and_exemplars_are_those_of_the_list_of_requests(self):
        simulator, url, rows = self.start_simulator()
        prometheus = self.start_prometheus(url)
        for line in simulator.stdout:  # the summary ends the run
            if line.startswith("Requests"):
                break

        self.page = base.fetch(url)
        finished = int(float(re.search(
            rf"^{FAMILY}_count\S* (\S+)$", self.page, re.MULTILINE)[1]))

        def listed():
            with open(rows, encoding="utf-8") as file:
                found = [row for row in csv.DictReader(file) if row["e2e"]]
            return len(found) == finished and found

        requests = base.wait_for("the list of requests", listed)
        self.assertGreater(finished, 3000)
        for job in FORMATS:
            all_of_them = f"{FAMILY}_count{{job='{job}'}} == {finished}"
            base.wait_for("the last scrape",
                          lambda query=all_of_them: prometheus.query(query))
        base.wait_for("its twin", lambda: prometheus.query(
            f"histogram_count({FAMILY}{{job='protobuf'}}) == {finished}"))

        self.check_quantiles(prometheus, requests)
        self.check_exemplars(prometheus, requests)
        # What 2.42 does with a series that has both, and the docs tell.
        self.assertEqual(prometheus.query(
            f"count({FAMILY}_bucket{{job='protobuf'}})"), [])
        self.assertEqual(prometheus.query("min(up)"), [1.0])

    def check_quantiles(self, prometheus, requests):
        # A rate knows what came after the first scrape.
        (known,) = prometheus.query(
            f"min_over_time({FAMILY}_count{{job='text'}}[{WINDOW}])")
        latencies = sorted(float(row["e2e"]) for row in requests[int(known):])
        exact = latencies[int(QUANTILE * len(latencies))]
        (native,) = prometheus.query(
            f"histogram_quantile({QUANTILE}, "
            f"rate({FAMILY}{{job='protobuf'}}[{WINDOW}]))")
        (classic,) = prometheus.query(
            f"histogram_quantile({QUANTILE}, sum by (le) "
            f"(rate({FAMILY}_bucket{{job='text'}}[{WINDOW}])))")
        print(f"p99 of {len(latencies)}: exact {exact:.3f} s, native {native:.3f} s, "
              f"classic {classic:.3f} s")
        self.assertLess(abs(native - exact), 0.05 * exact)
        self.assertGreater(abs(classic - exact), 0.05 * exact)

    def check_exemplars(self, prometheus, requests):
        latency_of = {(row["trace_id"], row["id"]): float(row["e2e"])
                      for row in requests}
        self.assertEqual(len(latency_of), len(requests))
        bounds = sorted(
            float(le) for le in re.findall(
                rf'^{FAMILY}_bucket{{.*le="([^"]+)"', self.page, re.MULTILINE))
        found = {job: [] for job in ("protobuf", *FORMATS)}
        for name in (FAMILY, f"{FAMILY}_bucket"):
            for series in prometheus.exemplars(name, BEGIN, BEGIN + SECONDS):
                labels = series["seriesLabels"]
                le = float(labels.get("le", "+Inf"))
                below = max((b for b in bounds if b < le), default=0.0)
                for exemplar in series["exemplars"]:
                    latency = float(exemplar["value"])
                    ids = exemplar["labels"]["trace_id"], exemplar["labels"]["request_id"]
                    self.assertEqual(latency, latency_of[ids])
                    self.assertLessEqual(latency, le)
                    if "le" in labels:
                        self.assertGreater(latency, below)
                    found[labels["job"]].append(exemplar)
        print({job: len(exemplars) for job, exemplars in found.items()})
        self.assertGreater(len(found["open_metrics"]), 3)
        self.assertGreater(len(found["protobuf"]), 3)
        self.assertEqual(found["text"], [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path)
    arguments = parser.parse_args()
    NativeHistograms.build_dir = arguments.build_dir
    if shutil.which("prometheus") is None:
        print("skipped: no prometheus here (Debian: prometheus)")
    else:
        unittest.main(argv=[__file__, "-v"])
