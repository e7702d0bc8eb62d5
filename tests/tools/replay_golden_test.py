"""vllm-metrics-replay gives the page, log and snapshot of every golden trace."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest


class Replay:
    """The program under test and the traces it is held against."""

    def __init__(self, build_dir, source_dir):
        self.program = build_dir / "bin" / "vllm-metrics-replay"
        self.golden = source_dir / "tests" / "golden"

    def traces(self):
        return sorted(
            trace
            for trace in self.golden.glob("*.jsonl")
            if list(self.golden.glob(trace.stem + ".expected.*"))
        )

    def run(self, trace, folder):
        page, log, snapshot = folder / "page", folder / "log", folder / "snapshot"
        subprocess.run(
            [self.program, "--page", page, "--log", log, "--snapshot", snapshot]
            + [trace],
            check=True,
            timeout=60,
        )
        return page, log, snapshot


class GoldenTraces(unittest.TestCase):
    replay = None
    maxDiff = None

    def test_there_are_traces(self):
        self.assertGreaterEqual(len(self.replay.traces()), 3)

    def check(self, trace, page, log, snapshot):
        expected = str(trace.with_suffix("")) + ".expected"
        prom = pathlib.Path(expected + ".prom")
        if prom.exists():
            compared = subprocess.run(
                [sys.executable, self.replay.golden / "compare.py", prom, page],
                capture_output=True,
                text=True,
            )
            self.assertEqual(compared.returncode, 0, compared.stdout)
        text = pathlib.Path(expected + ".log")
        if text.exists():
            self.assertEqual(log.read_text("utf-8"), text.read_text("utf-8"))
        taken = pathlib.Path(expected + ".snapshot.json")
        if taken.exists():
            self.assertEqual(
                json.loads(snapshot.read_text("utf-8")),
                json.loads(taken.read_text("utf-8")),
            )

    def test_page_log_and_snapshot_are_as_expected(self):
        for trace in self.replay.traces():
            with self.subTest(trace.name), tempfile.TemporaryDirectory() as folder:
                outputs = self.replay.run(trace, pathlib.Path(folder))
                self.check(trace, *outputs)

    def test_line_ends_of_windows_and_blank_lines_change_nothing(self):
        trace = self.replay.golden / "d01_basic.jsonl"
        text = trace.read_bytes()
        plain = subprocess.run(
            [self.replay.program, "-"], input=text, capture_output=True, check=True
        )
        other = subprocess.run(
            [self.replay.program, "-"],
            input=b"\n \r\n" + text.replace(b"\n", b"\r\n\r\n"),
            capture_output=True,
            check=True,
        )
        self.assertEqual(other.stdout, plain.stdout)
        self.assertEqual(other.stderr, b"")
        self.assertIn(b"vllm:num_requests_running", plain.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    GoldenTraces.replay = Replay(arguments.build_dir, arguments.source_dir)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
