"""vllm-metrics-sim --processes: one page for all, whatever becomes of them."""

import math
import os
import re
import signal
import subprocess
import time

import sim_program


class Processes(sim_program.SimTest):
    def setUp(self):
        super().setUp()
        shared = self.folder / "shared"
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared)
        self.addCleanup(os.environ.pop, "PROMETHEUS_MULTIPROC_DIR")

    def start(self, *flags):
        """Of three processes: the first one, its URL, the pids of the others."""
        process, url = self.start_sim("--processes", 3, "--speed", 20,
                                      *flags)
        lines = [process.stdout.readline() for _ in range(3)]
        found = [re.fullmatch(r"Process \d: pid (\d+), seed \d+\n", line)
                 for line in lines]
        return process, url, [int(match[1]) for match in found]

    def page_when(self, url, is_wanted):
        deadline = time.monotonic() + 60
        while True:
            page = sim_program.scrape(url)
            if is_wanted(page) or time.monotonic() > deadline:
                return page

    @staticmethod
    def arrived(page):
        return page.sum("vllm_metrics_sim_requests_arrived_total")

    def test_the_page_is_the_sum_of_the_runs_with_their_seeds(self):
        run = ("--seconds", 20, "--engines", 2, "--rate", 20)
        merged = self.run_to_page("--processes", 3, "--seed", 7, *run)
        singles = [self.run_to_page("--seed", seed, *run) for seed in (7, 8, 9)]
        added = [name for name in merged.samples
                 if name.endswith(("_total", "_bucket", "_count", "_sum"))
                 and not name.startswith(sim_program.OUTSIDE)]
        self.assertGreater(len(added), 60)
        for name in added:
            for labels, value in merged.samples[name]:
                parts = [page.sum(name, **labels) for page in singles]
                self.assertEqual(value, math.fsum(parts), (name, labels))
        self.assertGreater(self.arrived(merged), 1000)
        # A gauge is the value that was set last.
        for labels, value in merged.samples["vllm:num_requests_running"]:
            self.assertIn(value, [page.sum("vllm:num_requests_running", **labels)
                                  for page in singles])

    def test_one_that_dies_is_said_and_stays_in_the_sums(self):
        process, url, pids = self.start("--seed", 3)
        before = self.page_when(url, lambda page: self.arrived(page) > 20)
        os.kill(pids[1], signal.SIGKILL)
        after = self.page_when(
            url, lambda page: page.sum("vllm_metrics_shared_processes") == 3)
        self.assertGreaterEqual(self.arrived(after), self.arrived(before))
        later = self.page_when(
            url, lambda page: self.arrived(page) > self.arrived(after) + 5)
        self.assertGreater(self.arrived(later), self.arrived(after) + 5)
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
        self.assertEqual(process.wait(), 1)
        self.assertEqual(output.count("interrupted"), 2, output)
        self.assertIn("Process 2, seed 4\nno summary\n\nProcess 3", output)

    def test_ctrl_c_ends_all_of_them(self):
        process, url, pids = self.start("--trace", self.file(
            "trace", sim_program.json_lines(sim_program.made_up_trace(1))))
        self.page_when(url, lambda page: self.arrived(page) > 3)
        os.kill(pids[2], signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
        self.assertEqual(process.wait(), 0, output)
        self.assertEqual(output.count("interrupted"), 3, output)
        for pid in pids:
            self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_they_end_with_the_first_one(self):
        process, _, pids = self.start()
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            alive = [pid for pid in pids if self.runs(pid)]
            if not alive:
                break
        self.assertEqual(alive, [])

    @staticmethod
    def runs(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                return stat.read().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    def test_what_makes_no_sense_is_named(self):
        for message, *flags in (
                ("--page-at: allowed only without --processes, which have a "
                 "time each", "--page-at", "1:page"),
                ("--itl: allowed only without --processes, which have requests "
                 "each", "--itl", "file"),
                ("--processes = 0; allowed: a whole number from 1 to 64",
                 "--processes", 0)):
            done = subprocess.run(self.command("--processes", 2, *flags),
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr, f"vllm-metrics-sim: {message}\n")
            self.assertEqual(done.returncode, 2)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self.folder / "a" / "b")
        done = subprocess.run(self.command("--processes", 2),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr,
                         f"vllm-metrics-sim: folder {self.folder}/a/b: No such "
                         "file or directory\n")
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    sim_program.main()
