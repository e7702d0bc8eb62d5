"""vllm-metrics-replay --shared and --merge: one page of several processes."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest


class SharedReplay(unittest.TestCase):
    program = None
    golden = None

    def setUp(self):
        parent = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
        self.temporary = tempfile.TemporaryDirectory(dir=parent)
        self.folder = pathlib.Path(self.temporary.name) / "shared"
        self.traces = sorted(self.golden.glob("d09_multi_p*.jsonl"))

    def tearDown(self):
        self.temporary.cleanup()

    def run_program(self, *arguments, status=0):
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def compare(self, page):
        compared = subprocess.run(
            [
                sys.executable,
                self.golden / "compare.py",
                self.golden / "d09_multi.expected.prom",
                "-",
            ],
            input=page,
            capture_output=True,
            text=True,
        )
        self.assertEqual(compared.returncode, 0, compared.stdout)

    def test_processes_one_after_the_other_give_the_merged_page(self):
        self.assertEqual(len(self.traces), 3)
        for trace in self.traces:
            last = self.run_program("--shared", self.folder, trace)
        self.compare(self.run_program("--merge", self.folder).stdout)
        # The last of them has seen the others' already.
        self.compare(last.stdout)

    def test_processes_at_the_same_time_give_it_too(self):
        running = [
            subprocess.Popen(
                [self.program, "--shared", self.folder, trace],
                stdout=subprocess.DEVNULL,
            )
            for trace in self.traces
        ]
        ended = [process.wait(timeout=120) for process in running]
        self.assertEqual(ended, [0] * len(running))
        merged = self.run_program("--merge", self.folder).stdout
        self.compare(merged)
        self.assertNotIn("_created", merged)

    def test_a_folder_that_is_not_there_is_named(self):
        done = self.run_program("--merge", self.folder, status=2)
        self.assertIn(f"folder {self.folder}: No such file", done.stderr)

    def test_merge_plays_nothing(self):
        done = self.run_program("--merge", self.folder, self.traces[0], status=2)
        self.assertIn("--merge plays no TRACE", done.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, _ = parser.parse_known_args()
    SharedReplay.program = arguments.build_dir / "bin" / "vllm-metrics-replay"
    SharedReplay.golden = arguments.source_dir / "tests" / "golden"
    unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
