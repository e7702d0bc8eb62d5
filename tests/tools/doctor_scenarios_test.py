"""The doctor names each of the simulator's classic cases, whatever the seed, the
model's name and the load, from vLLM's families and the GPUs' alone."""

import collections
import concurrent.futures
import json
import re
import subprocess
import sys
import unittest

import sim_program

# What may be found beside the case itself: its cause.
BESIDE = {"clients-give-up": {"false-saturation"}}

# For each case, parameters that leave it what it is.
VARIED = {
    "healthy": [("--rate", "7"), ("--rate", "13"), ("--prompt-tokens", "1000")],
    "queue-saturated": [("--rate", "8.4"), ("--num-gpu-blocks", "1950")],
    "false-saturation": [("--rate", "11.2"), ("--max-num-seqs", "42")],
    "long-prompts": [("--rate", "0.35"), ("--prompt-tokens", "21000")],
    "prefill-interference": [("--rate", "4.2"), ("--output-tokens", "260")],
    "bandwidth-bound": [("--concurrency", "34"), ("--prompt-tokens", "2300")],
    "compute-bound": [("--rate", "14"), ("--prompt-tokens", "4800")],
    "preemption-storm": [("--rate", "9"), ("--output-tokens", "840")],
    "cache-thrashing": [("--concurrency", "56"), ("--think-time", "39")],
    "scattered-sessions": [("--concurrency", "112"), ("--engines", "6")],
    "clients-give-up": [("--rate", "18"), ("--patience", "14")],
}

# Nothing but these is on the pages that the doctor gets.
KEPT = re.compile(r"^(# (HELP|TYPE) )?(vllm:|DCGM_|vllm_metrics_sim_seconds)")


class Scenarios(sim_program.SimTest):
    def scenario_names(self):
        text = subprocess.run([self.program, "--help"], capture_output=True,
                              text=True, check=True).stdout
        listed = re.search(r"One of\s+([a-z,\s-]+?)\s+--trace", text)[1]
        return re.sub(r"\s", "", listed).split(",")

    def stripped(self, path):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        text = "".join(line for line in lines if KEPT.match(line))
        path.write_text(text.replace("sim-8b", 'a "renamed" / model'.replace(
            '"', '\\"')), "utf-8")

    def findings(self, case):
        name, seed, flags = case
        pages = [self.folder / f"{name}.{seed}.{'.'.join(flags)}.{moment}"
                 for moment in (60, 120)]
        self.run_sim("--scenario", name, "--seed", seed, "--seconds", 120,
                     "--speed", "max", "--log-interval", 0,
                     "--page-at", f"60:{pages[0]}",
                     "--page-at", f"120:{pages[1]}", *flags)
        for page in pages:
            self.stripped(page)
        result = subprocess.run(
            [self.build_dir / "bin" / "vllm-metrics-doctor", "--json",
             "--from", pages[0], "--to", pages[1]],
            capture_output=True, text=True, check=False)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        (model,) = json.loads(result.stdout)["models"]
        self.assertEqual(model["model"], 'a "renamed" / model')
        found = [finding["id"] for finding in model["findings"]]
        self.assertEqual(result.returncode, int(model["state"] == "findings"))
        return found or ["healthy"]

    def test_each_case_is_named(self):
        names = self.scenario_names()
        self.assertEqual(len(names), 12)
        cases = [(name, seed, ()) for name in names for seed in (1, 2, 3)]
        cases += [(name, 4, flags) for name in names
                  for flags in VARIED.get(name, [])]
        table = collections.defaultdict(collections.Counter)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case, found in zip(cases, pool.map(self.findings, cases)):
                table[case[0]].update(found)
                with self.subTest(case):
                    self.assertEqual(found[0], case[0])
                    self.assertLessEqual(set(found[1:]),
                                         BESIDE.get(case[0], set()))
        print("simulated: found (times)", file=sys.stderr)
        for name in names:
            found = ", ".join(f"{id} {count}"
                              for id, count in table[name].most_common())
            print(f"  {name}: {found}", file=sys.stderr)


if __name__ == "__main__":
    sim_program.main()
