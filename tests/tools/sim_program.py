"""Runs vllm-metrics-sim, reads its pages, and makes up traces for it."""

import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
OUTSIDE = ("process_", "vllm_metrics_http_")


class Page:
    """The samples of one scrape."""

    def __init__(self, text):
        self.text = text
        self.samples = collections.defaultdict(list)
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                labels = dict(LABEL.findall(labels or ""))
                self.samples[name].append((labels, float(value)))

    def sum(self, name, **wanted):
        """Of all samples with these labels; 0 when there are none."""
        return sum(value for labels, value in self.samples.get(name, [])
                   if wanted.items() <= labels.items())

    def mean_of(self, name, **wanted):
        """Of a histogram; 0 when it is empty."""
        count = self.sum(name + "_count", **wanted)
        return self.sum(name + "_sum", **wanted) / count if count else 0.0

    def engines(self):
        running = self.samples["vllm:num_requests_running"]
        return [labels["engine"] for labels, _ in running]

    def buckets(self, name, **wanted):
        """(upper bound, cumulative count), all matching series added up."""
        out = collections.defaultdict(float)
        for labels, value in self.samples[name + "_bucket"]:
            if wanted.items() <= labels.items():
                out[float(labels["le"])] += value
        return sorted(out.items())

    def histograms(self):
        """Of the engines."""
        return [name.removesuffix("_bucket") for name in self.samples
                if name.endswith("_bucket") and not name.startswith(OUTSIDE)]

    def own_lines(self):
        """Without what process and endpoint say of themselves."""
        return [line for line in self.text.splitlines()
                if not re.sub("^# (HELP|TYPE) ", "", line).startswith(OUTSIDE)]


def scrape(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return Page(response.read().decode("utf-8"))


def made_up_trace(seed, requests=300, longest=40):
    """Requests of a few conversations that go on, as the Mooncake trace has."""
    draw = random.Random(seed)
    next_id, now, conversations, out = 0, 0, [], []
    for _ in range(requests):
        now += draw.randrange(0, 400)
        if conversations and draw.random() < 0.6:
            chunks = draw.choice(conversations)
        else:
            chunks = conversations[0][:1] if conversations else []
        fresh = draw.randrange(1, 1 + longest // 4)
        chunks = (chunks + list(range(next_id, next_id + fresh)))[:longest]
        next_id += fresh
        conversations.append(chunks)
        # The last chunk may be cut, and goes on as another one then.
        length = 512 * len(chunks) - draw.randrange(0, 512)
        if length % 512 and chunks:
            conversations[-1] = chunks[:-1]
        out.append({"timestamp": now, "input_length": length,
                    "output_length": draw.randrange(0, 120),
                    "hash_ids": chunks})
    return out


def json_lines(requests):
    return "".join(json.dumps(request) + "\n" for request in requests)


class SimTest(unittest.TestCase):
    """A test case with the program and a folder of its own."""

    build_dir = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    @property
    def program(self):
        return self.build_dir / "bin" / "vllm-metrics-sim"

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, "utf-8")
        return path

    def command(self, *flags):
        return [str(self.program), *map(str, flags)]

    def run_sim(self, *flags):
        """To its end; what it printed."""
        done = subprocess.run(self.command(*flags), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def run_to_page(self, *flags):
        path = self.folder / "page"
        self.run_sim("--speed", "max", "--log-interval", "0", "--page", path,
                     *flags)
        return Page(path.read_text("utf-8"))

    def start_sim(self, *flags):
        """Running, with an endpoint; the process and its URL."""
        process = subprocess.Popen(
            self.command("--listen", "127.0.0.1:0", *flags), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        line = process.stdout.readline()
        self.assertRegex(line, r"^Listening on http://127\.0\.0\.1:\d+/metrics$")
        return process, line.split()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path)
    known, rest = parser.parse_known_args()
    SimTest.build_dir = known.build_dir
    if not (known.build_dir / "bin" / "vllm-metrics-sim").exists():
        print("skipped: vllm-metrics-sim is not built")
        return
    unittest.main(argv=[sys.argv[0], *rest])
