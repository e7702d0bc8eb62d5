"""A sandbox that is running: orders, pages, and virtual time between them."""

import json
import pathlib
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tools"))
import sim_program  # noqa: E402

LONGEST = 120  # real seconds until virtual ones have passed


class SandboxTest(sim_program.SimTest):
    def start(self, *flags):
        _, self.url = self.start_sim("--log-interval", "0", "--speed", "100",
                                     *flags)
        self.base = self.url.removesuffix("metrics")

    def request(self, path, body=None, **headers):
        """Status and answer; `body` is bytes, of a POST."""
        headers = {name.replace("_", "-"): text
                   for name, text in headers.items()}
        request = urllib.request.Request(self.base + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def order(self, **wanted):
        """Returns when the engine goes by it."""
        status, answer = self.request("api/state", json.dumps(wanted).encode(),
                                      Content_Type="application/json")
        state = json.loads(answer)
        self.assertEqual(status, 200, state)
        revision, end = state["revision"], time.monotonic() + LONGEST
        while state["applied"] < revision:
            self.assertLess(time.monotonic(), end)
            state = self.state()
        return state

    def refused(self, text, content_type="application/json", **headers):
        status, answer = self.request("api/state", text.encode(),
                                      Content_Type=content_type, **headers)
        return status, json.loads(answer)["error"]

    def state(self):
        return json.loads(self.request("api/state")[1])

    def page(self):
        return sim_program.scrape(self.url)

    def after(self, seconds):
        """The page when so many virtual seconds have passed."""
        start = last = self.page()
        end = time.monotonic() + LONGEST
        while self.seconds(last) - self.seconds(start) < seconds:
            self.assertLess(time.monotonic(), end, "the engine is too slow")
            time.sleep(0.02)
            last = self.page()
        return last

    @staticmethod
    def seconds(page):
        return page.sum("vllm_metrics_sim_seconds")

    def span(self, seconds):
        """Two pages with so many virtual seconds between them."""
        before = self.page()
        return Span(before, self.after(seconds))


class Span:
    """What happened between two pages."""

    def __init__(self, before, after):
        self.before, self.last = before, after

    def grown(self, name, **labels):
        return (self.last.sum(name, **labels) -
                self.before.sum(name, **labels))

    def rate(self, name, **labels):
        return (self.grown(name, **labels) /
                self.grown("vllm_metrics_sim_seconds"))

    def mean(self, name):
        count = self.grown(name + "_count")
        return self.grown(name + "_sum") / count if count else 0.0

    def above(self, name, bound):
        """The share of observations above a bound."""
        buckets = [dict(page.buckets(name)) for page in (self.before, self.last)]
        count = self.grown(name + "_count")
        return 1 - (buckets[1][bound] - buckets[0][bound]) / count

    def hit_rate(self):
        return (self.grown("vllm:prefix_cache_hits_total") /
                self.grown("vllm:prefix_cache_queries_total"))

    def bytes_per_step(self):
        moved = [self.grown(f"vllm:estimated_{way}_bytes_per_gpu_total")
                 for way in ("read", "write")]
        return sum(moved) / self.grown("vllm:iteration_tokens_total_count")

    def level(self, name):
        return (self.before.sum(name) + self.last.sum(name)) / 2


main = sim_program.main
