"""On each classic case of the simulator, the alerts that name it fire, and no
others; on a healthy engine none does.

The pages of every half minute become the input of promtool, which evaluates the
rules over them in virtual time.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import tempfile

import observability
import yaml

MINUTES = 16  # the longest `for` is ten, the longest window of a rate is ten too
STEP = 30  # seconds

# What fires at the end of each. scattered-sessions is not among them: its alert
# compares with an hour before.
FIRING = {
    "healthy": [],
    "idle": [],
    "queue-saturated": [
        "VllmCapacityBound", "VllmKvCacheNearlyFull", "VllmPreemptions",
        "VllmRequestsWaiting", "VllmScaleOut", "VllmTtftHigh",
        "VllmTtftQueueDominates",
    ],
    "false-saturation": [
        "VllmFalseSaturation", "VllmRequestsWaiting", "VllmTtftHigh",
        "VllmTtftQueueDominates",
    ],
    "long-prompts": ["VllmTtftHigh", "VllmTtftPrefillDominates"],
    "prefill-interference": ["VllmStreamsStutter"],
    "bandwidth-bound": ["VllmDecodeSlow", "VllmMemoryBandwidthBound"],
    "compute-bound": [
        "VllmComputeBound", "VllmRequestsWaiting", "VllmStepBudgetFull",
        "VllmTtftHigh", "VllmTtftQueueDominates",
    ],
    "preemption-storm": [
        "VllmCapacityBound", "VllmKvCacheFull", "VllmKvCacheNearlyFull",
        "VllmPreemptions", "VllmRequestsWaiting", "VllmScaleOut", "VllmTtftHigh",
        "VllmTtftQueueDominates",
    ],
    "cache-thrashing": ["VllmKvCacheThrashing"],
    "clients-give-up": [
        "VllmClientsGiveUp", "VllmFalseSaturation", "VllmRequestsWaiting",
        "VllmTtftHigh", "VllmTtftQueueDominates",
    ],
}  # fmt: skip

SAMPLE = re.compile(r"^([\w:]+)(?:{(.*)})? (\S+)$")


def samples_of(page, wanted):
    """(series, value) of each sample whose name is wanted."""
    for line in page.splitlines():
        match = SAMPLE.match(line)
        if match and match[1] in wanted:
            labels = f'{match[2]},' if match[2] else ""
            target = 'instance="a",job="vllm",node="a"'
            yield f"{match[1]}{{{labels}{target}}}", match[3]


class Scenarios(observability.ObservabilityTest):
    def run_scenario(self, name, folder):
        """The series that rules look at: their values at each moment, or _."""
        times = range(STEP, 60 * MINUTES, STEP)
        pages = [f"{time}:{folder / f'{name}.{time}'}" for time in times]
        subprocess.run(
            [self.project.build_dir / "bin" / "vllm-metrics-sim", "--scenario", name,
             "--speed", "max", "--seconds", str(60 * MINUTES), "--log-interval", "0",
             *(word for page in pages for word in ("--page-at", page))],
            stdout=subprocess.DEVNULL, check=True, timeout=300,
        )  # fmt: skip
        series = {}
        for i, page in enumerate(pages):
            text = pathlib.Path(page.split(":", 1)[1]).read_text("utf-8")
            for key, value in samples_of(text, self.wanted):
                values = series.setdefault(key, [])
                values += ["_"] * (i - len(values))
                values.append(value)
        series['up{instance="a",job="vllm",node="a"}'] = ["1"] * len(pages)
        return series

    def unit_test(self, name, folder):
        series = self.run_scenario(name, folder)
        query = 'count by (alertname) (ALERTS{alertstate="firing"})'
        expected = [
            {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in FIRING[name]
        ]
        return {
            "name": name,
            "interval": f"{STEP}s",
            "input_series": [
                {"series": key, "values": " ".join(values)}
                for key, values in series.items()
            ],
            "promql_expr_test": [
                {
                    "expr": query,
                    "eval_time": f"{60 * MINUTES - 2 * STEP}s",
                    "exp_samples": expected,
                }
            ],
        }

    def test_each_scenario_fires_its_alerts_and_no_others(self):
        self.wanted = {
            name
            for rule in self.project.rules
            for name in observability.Expression(rule["expr"]).metrics
        }
        with tempfile.TemporaryDirectory() as folder:
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                tests = list(
                    pool.map(lambda n: self.unit_test(n, pathlib.Path(folder)), FIRING)
                )
            content = {
                "rule_files": [str(file) for file in self.project.rule_files],
                "group_eval_order": self.project.rule_groups,
                "evaluation_interval": f"{STEP}s",
                "tests": tests,
            }
            file = pathlib.Path(folder) / "scenarios.yml"
            file.write_text(yaml.safe_dump(content, width=10**6), "utf-8")
            done = subprocess.run(
                ["promtool", "test", "rules", file],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
                check=False,
            )
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    observability.main()
