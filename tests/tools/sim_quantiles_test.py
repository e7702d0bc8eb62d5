"""Histograms agree with the exact times of every request."""

import csv
import math

import sim_program


def quantile(values, q):
    """The smallest value that at least a part `q` of all does not exceed."""
    values = sorted(values)
    return values[max(1, math.ceil(q * len(values))) - 1]


def histogram_quantile_bucket(buckets, q):
    """The bucket (lower, upper] that PromQL's histogram_quantile() is from."""
    rank, lower = q * buckets[-1][1], -math.inf
    for upper, count in buckets:
        if count >= rank:
            return lower, upper
        lower = upper
    raise AssertionError("no +Inf bucket")


class Quantiles(sim_program.SimTest):
    FAMILIES = {"vllm:time_to_first_token_seconds": "ttft",
                "vllm:e2e_request_latency_seconds": "e2e",
                "vllm:request_queue_time_seconds": "queue",
                "vllm:request_prefill_time_seconds": "prefill",
                "vllm:request_decode_time_seconds": "decode"}

    def setUp(self):
        super().setUp()
        requests, itl = self.folder / "requests.csv", self.folder / "itl.csv"
        self.page = self.run_to_page(
            "--rate", "20", "--num-gpu-blocks", "3000", "--engines", "2",
            "--requests", requests, "--itl", itl)
        with open(requests, newline="", encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file))
        with open(itl, newline="", encoding="utf-8") as file:
            self.itl = [float(row["seconds"]) for row in csv.DictReader(file)
                        for _ in range(int(row["count"]))]

    def column(self, name):
        return [float(row[name]) for row in self.rows]

    def check(self, family, values):
        buckets = self.page.buckets(family)
        self.assertEqual(buckets[-1][1], len(values))
        for bound, count in buckets:
            self.assertEqual(count, sum(v <= bound for v in values), bound)
        for q in (0.5, 0.9, 0.99):
            lower, upper = histogram_quantile_bucket(buckets, q)
            exact = quantile(values, q)
            self.assertTrue(lower < exact <= upper, (family, q, exact))
        self.assertTrue(math.isclose(self.page.sum(family + "_sum"),
                                     math.fsum(values), rel_tol=1e-12))

    def test_request_times(self):
        self.assertGreater(len(self.rows), 1000)
        for family, column in self.FAMILIES.items():
            with self.subTest(family=family):
                self.check(family, self.column(column))

    def test_inter_token_latencies(self):
        self.assertGreater(len(self.itl), 100000)
        self.check("vllm:inter_token_latency_seconds", self.itl)

    def test_the_rows_add_up(self):
        for row in self.rows:
            times = {name: float(row[name]) for name in (
                "arrival", "queued", "scheduled", "first_token", "last_token",
                "ttft", "queue", "prefill", "decode", "e2e")}
            self.assertEqual(
                times["e2e"], times["queued"] - times["arrival"] +
                times["queue"] + times["prefill"] + times["decode"])
            self.assertEqual(times["ttft"],
                             times["first_token"] - times["arrival"])
            self.assertIn(row["reason"], ("stop", "length"))
        for column, name in (("prompt", "vllm:prompt_tokens_total"),
                             ("cached", "vllm:prompt_tokens_cached_total"),
                             ("generated", "vllm:generation_tokens_total"),
                             ("preemptions", "vllm:num_preemptions_total")):
            self.assertEqual(sum(self.column(column)), self.page.sum(name))


if __name__ == "__main__":
    sim_program.main()
