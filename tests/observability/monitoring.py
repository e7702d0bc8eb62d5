"""A Prometheus with the shipped configuration, and something to scrape: simulated
engines, and pages that grow for what no simulator has."""

import concurrent.futures
import contextlib
import itertools
import json
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from page_server import PageServer  # noqa: E402

HANG_GUARD_SECONDS = 120
SCRAPES = 12
GROWS = "$n"

# Always on the page, and always 0 in a simulator.
UNMOVED = {
    "vllm:mm_cache_queries_total",
    "vllm:mm_cache_hits_total",
}

# Together they have every family that the simulator knows. All begin at once and
# run twenty times as fast as an engine would. The first is short of KV blocks.
SIMULATORS = [
    ["--engines", "2", "--rate", "14", "--num-gpu-blocks", "2500",
     "--kv-cache-metrics", "--kv-cache-metrics-sample", "1", "--lora-adapters", "4",
     "--patience", "30", "--compute-nans-in-logits", "--corrupted-share", "0.05"],
    ["--seed", "1", "--rate", "6", "--speculative-tokens", "3",
     "--enable-mfu-metrics"],
    ["--seed", "2", "--rate", "4", "--kv-transfer"],
]  # fmt: skip


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode("utf-8")


def wait_for(what, probe):
    """The first true value of `probe`."""
    end = time.monotonic() + HANG_GUARD_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            value = probe()
            if value:
                return value
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def families_in(page):
    return set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))


def page_of(metric):
    """A family of the catalogue as text, with one sample for each label value. A
    tenth of a histogram's samples are in its first bucket."""
    name, kind = metric["name"], metric["type"]
    label_sets = [""]
    for label in metric["labels"]:
        values = metric.get("label_values", {}).get(label, ["0"])
        label_sets = [f'{s}{label}="{v}",' for s in label_sets for v in values]
    lines = [f"# TYPE {name} {kind}"]
    for labels in label_sets:
        if kind == "histogram":
            bound = float(metric["buckets"][0])
            lines += [
                f'{name}_bucket{{{labels}le="{bound}"}} {GROWS}',
                f'{name}_bucket{{{labels}le="+Inf"}} {GROWS}0',
                f"{name}_count{{{labels}}} {GROWS}0",
                f"{name}_sum{{{labels}}} {GROWS}",
            ]
        else:
            value = GROWS if kind == "counter" else 1
            lines.append(f"{name}{{{labels}}} {value}")
    return "\n".join(lines) + "\n"


class Monitoring:
    """Everything runs, and Prometheus has scraped each target a dozen times, when
    the constructor returns; stop() ends what it started."""

    def __init__(self, project, folder):
        self.folder = folder
        self.stack = contextlib.ExitStack()
        try:
            self._start(project)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        self.stack.close()

    def _start(self, project):
        program = project.build_dir / "bin" / "vllm-metrics-sim"
        engines = [
            self._simulator(program, number, flags)
            for number, flags in enumerate(SIMULATORS)
        ]
        simulated = set().union(
            *(families_in(fetch(f"http://{target}/metrics")) for target in engines)
        )
        rest = [m for m in project.metrics if m["name"] not in simulated - UNMOVED]
        self.made_up = {metric["name"] for metric in rest}
        engines.append(self._page("".join(page_of(metric) for metric in rest)))
        hardware = self._page((HERE / "hardware.prom").read_text("utf-8"))
        self.api = self._prometheus(
            project, {"vllm": engines, "dcgm": [hardware], "node": [hardware]}
        )
        wait_for(
            "scrapes",
            lambda: self.value(f"count(sum_over_time(up[1h]) >= {SCRAPES})")
            == len(engines) + 2,
        )

    def _process(self, command, name):
        log = self.stack.enter_context(
            open(self.folder / f"{name}.log", "w+", encoding="utf-8")
        )
        process = subprocess.Popen(command, stdout=log, stderr=log)

        def stop():
            process.terminate()
            process.wait(HANG_GUARD_SECONDS)

        self.stack.callback(stop)
        return pathlib.Path(log.name)

    def _simulator(self, program, number, flags):
        log = self._process(
            [program, "--listen", "127.0.0.1:0", "--speed", "20", "--seconds",
             "unlimited", "--log-interval", "0", *flags],
            f"simulator{number}",
        )  # fmt: skip

        def target():
            found = re.search(r"http://(127\.0\.0\.1:\d+)/", log.read_text("utf-8"))
            return found and found[1]

        return wait_for("the simulator's URL", target)

    def _page(self, text):
        """With the number of the scrape for GROWS."""
        scrapes = itertools.count(1)
        page = PageServer(lambda: text.replace(GROWS, str(next(scrapes))))
        self.stack.callback(page.stop)
        return page.target

    def _prometheus(self, project, targets):
        shipped = project.examples / "prometheus" / "machines.yml"
        config = yaml.safe_load(shipped.read_text("utf-8"))
        config["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(file) for file in project.rule_files]
        del config["alerting"], config["remote_write"]
        for job in config["scrape_configs"]:
            job["static_configs"] = [{"targets": targets[job["job_name"]]}]
        file = self.folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config), "utf-8")
        port = free_port()
        self._process(
            ["prometheus", f"--config.file={file}",
             f"--storage.tsdb.path={self.folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            "prometheus",
        )  # fmt: skip
        address = f"http://127.0.0.1:{port}"
        wait_for("Prometheus", lambda: fetch(f"{address}/-/ready"))
        return f"{address}/api/v1"

    def get(self, path, **parameters):
        url = f"{self.api}/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            return json.loads(fetch(url))["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read()}") from error

    def query(self, expression):
        """Values of an instant query that are numbers."""
        result = self.get("query", query=expression)["result"]
        values = [float(row["value"][1]) for row in result]
        return [value for value in values if value == value]

    def value(self, expression):
        """The only one; 0 if there is none."""
        return sum(self.query(expression))

    def without_data(self, expressions):
        """Those whose query gives no number."""
        expressions = list(expressions)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = list(pool.map(self.query, expressions))
        return [e for e, values in zip(expressions, found) if not values]
