"""A real Prometheus scrapes the running simulator.

Its server runs on free loopback ports with a temporary data folder. Waiting is
by polling, and bounded only so that a fault cannot hang the test.
"""

import argparse
import json
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

HANG_GUARD_SECONDS = 120


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_for(what, probe):
    """The first true value of `probe`."""
    end = time.monotonic() + HANG_GUARD_SECONDS
    while time.monotonic() < end:
        try:
            value = probe()
            if value:
                return value
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


class Simulator:
    def __init__(self, program, folder):
        self.log = open(folder / "simulator.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--speed", "10", "--rate", "20",
             "--engines", "2", "--seconds", "unlimited"],
            stdout=self.log, stderr=self.log)

        def url():
            self.log.flush()
            text = pathlib.Path(self.log.name).read_text(encoding="utf-8")
            found = re.search(r"http://127\.0\.0\.1:\d+/metrics", text)
            return found and found.group(0)

        self.url = wait_for("the simulator's URL", url)

    def stop(self):
        self.process.terminate()
        self.process.wait(HANG_GUARD_SECONDS)
        self.log.close()


class Prometheus:
    def __init__(self, jobs, folder, flags=()):
        config = folder / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 250ms, scrape_timeout: 250ms}\n"
            "scrape_configs:\n" +
            "".join(f"  - job_name: {name}\n"
                    f"    static_configs: [{{targets: ['{target}']}}]\n"
                    for name, target in jobs.items()),
            encoding="utf-8")
        port = free_port()
        self.log = open(folder / "prometheus.log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}",
             f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}", *flags],
            stdout=self.log, stderr=self.log)
        self.api = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path, **parameters):
        url = f"{self.api}/{path}?{urllib.parse.urlencode(parameters)}"
        return json.loads(fetch(url))["data"]

    def query(self, expression):
        """The values of an instant query, as numbers."""
        return [float(row["value"][1])
                for row in self.get("query", query=expression)["result"]]

    def exemplars(self, expression, start, end):
        """Each series that has some between two times."""
        return self.get("query_exemplars", query=expression, start=start, end=end)

    def stop(self):
        self.process.terminate()
        self.process.wait(HANG_GUARD_SECONDS)
        self.log.close()


class PrometheusTest(unittest.TestCase):
    build_dir = None

    @classmethod
    def setUpClass(cls):
        if shutil.which("prometheus") is None:
            raise unittest.SkipTest("no prometheus here (Debian: prometheus)")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        cls.simulator = Simulator(cls.build_dir / "bin/vllm-metrics-sim", folder)
        cls.addClassCleanup(cls.simulator.stop)
        target = urllib.parse.urlparse(cls.simulator.url).netloc
        cls.prometheus = Prometheus({"engine": target}, folder)
        cls.addClassCleanup(cls.prometheus.stop)
        finished = "sum(vllm:e2e_request_latency_seconds_count)"
        wait_for("finished requests in Prometheus",
                 lambda: sum(cls.prometheus.query(finished)) > 50)

    def test_target_is_up(self):
        self.assertEqual(self.prometheus.query("up"), [1.0])

    def test_quantiles_are_numbers(self):
        for family in ("time_to_first_token", "inter_token_latency"):
            expression = ("histogram_quantile(0.95, sum by (le, model_name) "
                          f"(rate(vllm:{family}_seconds_bucket[1m])))")
            values = wait_for(family, lambda e=expression: self.prometheus.query(e))
            self.assertEqual(len(values), 1, expression)
            self.assertGreater(values[0], 0.0, expression)
            self.assertLess(values[0], 60.0, expression)

    def test_counters_only_rise(self):
        for counter in ("vllm:generation_tokens_total", "vllm:prompt_tokens_total",
                        "vllm:request_success_total", "vllm:iteration_tokens_total_sum"):
            self.assertGreater(sum(self.prometheus.query(f"max_over_time({counter}[1h])")), 0)
            self.assertEqual(sum(self.prometheus.query(f"resets({counter}[1h])")), 0, counter)

    def test_every_engine_has_its_series(self):
        self.assertEqual(len(self.prometheus.query("vllm:num_requests_running")), 2)

    def test_promtool_finds_only_vllms_own_spelling(self):
        page = fetch(self.simulator.url)
        lint = subprocess.run(["promtool", "check", "metrics"], input=page, text=True,
                              capture_output=True, check=False)
        # The device's families are those of DCGM's exporter, labels too.
        remarks = [remark for remark in (lint.stdout + lint.stderr).splitlines()
                   if not remark.startswith("DCGM_")]
        allowed = ("metric names should not contain ':'",
                   'non-counter metrics should not have "_total" suffix')
        self.assertEqual([r for r in remarks if not r.endswith(allowed)], [])
        self.assertIn(lint.returncode, (0, 3))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path)
    arguments = parser.parse_args()
    PrometheusTest.build_dir = arguments.build_dir
    unittest.main(argv=[__file__, "-v"])
