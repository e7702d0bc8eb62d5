"""A real Prometheus gets the simulator's latencies as native histograms, by
protobuf, and as classic ones, by text: the former come close to the quantile of
the simulator's own list of requests."""

import argparse
import csv
import http.server
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
import urllib.parse
import urllib.request

import prometheus_test as base

QUANTILE = 0.99
# The whole run lies in the window; virtual time is ten times as fast.
WINDOW = "1m"


class TextOnly:
    """Hands on what is asked of it, but asks for text: Prometheus 2.42 asks every
    target for protobuf when it is to take native histograms."""

    def __init__(self, url):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                with urllib.request.urlopen(url, timeout=10) as answer:
                    body = answer.read()
                    kind = answer.headers["Content-Type"]
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.target = f"127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


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
             "--native-histograms", "--rate", "30", "--output-tokens", "60",
             "--speed", "10", "--seconds", "120", "--log-interval", "0",
             "--requests", rows,
             "--linger", "unlimited"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, base.HANG_GUARD_SECONDS)
        self.addCleanup(process.terminate)
        return process, process.stdout.readline().split()[-1], rows

    def test_the_quantile_is_within_a_bucket_of_the_exact_one(self):
        simulator, url, rows = self.start_simulator()
        text = TextOnly(url)
        self.addCleanup(text.stop)
        prometheus = base.Prometheus(
            {"protobuf": urllib.parse.urlparse(url).netloc, "text": text.target},
            self.folder, ["--enable-feature=native-histograms"])
        self.addCleanup(prometheus.stop)
        for line in simulator.stdout:  # the summary ends the run
            if line.startswith("Requests"):
                break

        finished = int(float(re.search(
            r"^vllm:e2e_request_latency_seconds_count\S* (\S+)$",
            base.fetch(url), re.MULTILINE)[1]))

        def listed():
            with open(rows, encoding="utf-8") as file:
                found = [float(row["e2e"] or "nan") for row in csv.DictReader(file)]
            return len(found) == finished and found

        latencies = base.wait_for("the list of requests", listed)
        self.assertGreater(finished, 3000)
        all_of_them = (f"vllm:e2e_request_latency_seconds_count{{job='text'}} == "
                       f"{finished}")
        base.wait_for("the last scrape", lambda: prometheus.query(all_of_them))
        base.wait_for("its twin", lambda: prometheus.query(
            "histogram_count(vllm:e2e_request_latency_seconds{job='protobuf'})"
            f" == {finished}"))

        # A rate knows what came after the first scrape.
        (known,) = prometheus.query(
            "min_over_time(vllm:e2e_request_latency_seconds_count{job='text'}"
            f"[{WINDOW}])")
        latencies = sorted(latencies[int(known):])
        exact = latencies[int(QUANTILE * len(latencies))]
        (native,) = prometheus.query(
            f"histogram_quantile({QUANTILE}, rate("
            f"vllm:e2e_request_latency_seconds{{job='protobuf'}}[{WINDOW}]))")
        (classic,) = prometheus.query(
            f"histogram_quantile({QUANTILE}, sum by (le) (rate("
            f"vllm:e2e_request_latency_seconds_bucket{{job='text'}}[{WINDOW}])))")
        print(f"p99 of {len(latencies)}: exact {exact:.3f} s, native {native:.3f} s, "
              f"classic {classic:.3f} s")
        self.assertLess(abs(native - exact), 0.05 * exact)
        self.assertGreater(abs(classic - exact), abs(native - exact))

        # What 2.42 does with a series that has both, and the docs tell.
        self.assertEqual(prometheus.query(
            "count(vllm:e2e_request_latency_seconds_bucket{job='protobuf'})"), [])
        self.assertEqual(prometheus.query("min(up)"), [1.0])


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
