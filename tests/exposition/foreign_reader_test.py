"""The parser reads what Prometheus's own Python parsers read: every value of
every page that the golden traces give, and of pages with each peculiarity."""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import debian_python  # noqa: E402

debian_python.needs("prometheus_client")
try:
    from prometheus_client.openmetrics import parser as open_metrics
    from prometheus_client import parser as text_format
except ImportError:
    open_metrics = text_format = None

TEXT = r"""# HELP odd_total A "quoted"\\ help\n with escapes and a blank at its end 
# TYPE odd_total counter
odd_total{b="2",a="1"} 1.9392065536e+010
odd_total{a="\\ \" \n {,}= #",b="é"} 3 1700000000500
# TYPE late_sum gauge
late_sum 4
# TYPE sums_first histogram
sums_first_sum{model="x"} 2351898.01
sums_first_bucket{le="0.07500000000000001",model="x"} 5
sums_first_bucket{le="10.0",model="x"} 7
sums_first_bucket{le="+Inf",model="x"} 11008
sums_first_count{model="x"} 11008
# TYPE steps_total histogram
steps_total_bucket{le="-1"} 0
steps_total_bucket{le="1e+06"} 1
steps_total_bucket{le="+Inf"} 2
steps_total_count 2
steps_total_sum 1e-320
# TYPE steps_total_created gauge
steps_total_created 1.78e+09
# TYPE quantiles summary
quantiles{quantile="0.5"} NaN
quantiles{quantile="0.99"} -Inf
quantiles_sum 12
quantiles_count 0
# TYPE empty counter
# no family at all
free 5
free_bucket{le="1"} 2
# TYPE declared untyped
declared{x=""} +Inf
"""

OPEN_METRICS = r"""# HELP wait_seconds Time.
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
wait_seconds_bucket{le="0.5"} 1 # {id="a"} 0.25 1700000000.5
wait_seconds_bucket{le="+Inf"} 2.0
wait_seconds_count 2
wait_seconds_sum 7.25
wait_seconds_created 1600000000.25
# TYPE jobs counter
jobs_total{q="a\"b"} 5.0 12.5 # {id="b"} 1
jobs_created{q="a\"b"} 3.0 12.5
# TYPE load gauge
load -1e-3
# EOF
"""

PRINTED = {"unknown": "untyped"}


class Reader:
    """The program that shows what our parser makes of a page."""

    def __init__(self, build_dir, source_dir):
        self.program = build_dir / "tests" / "read_page"
        self.replay = build_dir / "bin" / "vllm-metrics-replay"
        self.golden = source_dir / "tests" / "golden"

    def run(self, *arguments):
        done = subprocess.run(
            [self.program, *arguments], capture_output=True, timeout=60
        )
        if done.returncode:
            raise AssertionError(done.stderr.decode())
        return done.stdout

    def samples(self, path):
        return [json.loads(line) for line in self.run(path).splitlines()]


def number(text):
    value = float(text)
    return "NaN" if math.isnan(value) else value


def normal(labels):
    return tuple(
        sorted((n, number(v) if n in ("le", "quantile") else v)
               for n, v in labels.items())
    )


class ForeignReader(unittest.TestCase):
    reader = None
    maxDiff = None

    def setUp(self):
        if text_format is None:
            self.skipTest("python3-prometheus-client is not installed")

    def check(self, text, parser, with_types=True):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page"
            path.write_text(text, "utf-8")
            ours = {
                (sample, normal(labels)): (kind, number(value), time)
                for _, kind, sample, labels, value, time in self.reader.samples(path)
            }
        theirs = {}
        for family in parser.text_string_to_metric_families(text):
            for s in family.samples:
                time = None if s.timestamp is None else float(s.timestamp)
                key = (s.name, normal(s.labels))
                theirs[key] = (PRINTED.get(family.type, family.type),
                               number(s.value), time)
        if not with_types:
            ours = {key: value[1:] for key, value in ours.items()}
            theirs = {key: value[1:] for key, value in theirs.items()}
        self.assertEqual(sorted(ours.items() ^ theirs.items(), key=str), [])
        return len(ours)

    def test_text_with_each_peculiarity(self):
        self.assertGreater(self.check(TEXT, text_format), 15)

    def test_open_metrics(self):
        self.assertEqual(self.check(OPEN_METRICS, open_metrics), 8)

    def test_golden_pages_of_vllm(self):
        pages = sorted(self.reader.golden.glob("*.prom"))
        self.assertGreater(len(pages), 7)
        for page in pages:
            with self.subTest(page=page.name):
                # Sorted: their parser wants a TYPE right above its samples.
                self.check(page.read_text("utf-8"), text_format, with_types=False)

    def test_pages_of_this_library_and_the_way_back(self):
        if not self.reader.replay.exists():
            self.skipTest("vllm-metrics-replay is not built")
        for trace in sorted(self.reader.golden.glob("*.jsonl")):
            with self.subTest(trace=trace.name):
                page = subprocess.run(
                    [self.reader.replay, trace], capture_output=True, timeout=60
                ).stdout
                self.assertGreater(self.check(page.decode(), text_format), 300)
                with tempfile.NamedTemporaryFile() as file:
                    file.write(page)
                    file.flush()
                    self.assertEqual(self.reader.run("--render", file.name), page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    ForeignReader.reader = Reader(arguments.build_dir, arguments.source_dir)
    unittest.main(argv=[sys.argv[0], *rest])
