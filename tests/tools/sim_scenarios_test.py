"""Each scenario has the evidence of its case on its pages, and no other does.

The window is from 60 to 120 virtual seconds. Only what an operator can see is
used: the engine's families, those of DCGM, and the clock.
"""

import sim_program

SEEDS = (0, 11)


class Window:
    """What two pages of one run tell."""

    def __init__(self, before, after):
        self.before, self.after = before, after
        self.seconds = self.increase("vllm_metrics_sim_seconds")

    def increase(self, name, **labels):
        return self.after.sum(name, **labels) - self.before.sum(name, **labels)

    def mean(self, name, **labels):
        count = self.increase(name + "_count", **labels)
        return self.increase(name + "_sum", **labels) / count if count else 0.0

    def quantile(self, name, q):
        """The upper bound of the bucket it lies in; 0 without samples."""
        before = dict(self.before.buckets(name))
        buckets = [(le, n - before[le]) for le, n in self.after.buckets(name)]
        rank = q * buckets[-1][1]
        return next((le for le, n in buckets if n >= rank > 0), 0.0)

    def gauge(self, name):
        """Mean over engines or devices, at the end."""
        samples = self.after.samples[name]
        return sum(value for _, value in samples) / len(samples)

    # The words of the cases.
    @property
    def waiting(self):
        return self.after.sum("vllm:num_requests_waiting")

    @property
    def waiting_grew(self):
        return self.increase("vllm:num_requests_waiting")

    @property
    def running(self):
        return self.after.sum("vllm:num_requests_running")

    @property
    def usage(self):
        return self.gauge("vllm:kv_cache_usage_perc")

    @property
    def queue(self):
        return self.mean("vllm:request_queue_time_seconds")

    @property
    def prefill(self):
        return self.mean("vllm:request_prefill_time_seconds")

    @property
    def decode(self):
        return self.mean("vllm:request_decode_time_seconds")

    @property
    def preemptions(self):
        return self.increase("vllm:num_preemptions_total") / self.seconds

    @property
    def step_tokens(self):
        return self.mean("vllm:iteration_tokens_total")

    @property
    def itl(self):
        return self.mean("vllm:inter_token_latency_seconds")

    @property
    def itl_p99(self):
        return self.quantile("vllm:inter_token_latency_seconds", 0.99)

    @property
    def tpot(self):
        return self.mean("vllm:request_time_per_output_token_seconds")

    @property
    def ttft(self):
        return self.mean("vllm:time_to_first_token_seconds")

    @property
    def hit_rate(self):
        queries = self.increase("vllm:prefix_cache_queries_total")
        return (self.increase("vllm:prefix_cache_hits_total") / queries
                if queries else 0.0)

    @property
    def hit_rate_before(self):
        return (self.before.sum("vllm:prefix_cache_hits_total") /
                max(1.0, self.before.sum("vllm:prefix_cache_queries_total")))

    @property
    def prompt(self):
        return self.mean("vllm:request_prompt_tokens")

    def ended(self, reason):
        """The share of those that ended."""
        name = "vllm:request_success_total"
        return (self.increase(name, finished_reason=reason) /
                max(1.0, self.increase(name)))

    @property
    def idle_before_evict(self):
        return self.mean("vllm:kv_block_idle_before_evict_seconds")

    @property
    def tensor(self):
        return self.gauge("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")

    @property
    def dram(self):
        return self.gauge("DCGM_FI_PROF_DRAM_ACTIVE")

    @property
    def balance(self):
        """Requests of the busiest engine by those of the mean one."""
        name = "vllm:request_success_total"
        each = [self.increase(name, engine=e) for e in self.after.engines()]
        return max(each) * len(each) / max(1.0, sum(each))

    WORDS = ("waiting", "waiting_grew", "running", "usage", "queue", "prefill",
             "decode", "preemptions", "step_tokens", "itl", "itl_p99", "tpot",
             "ttft", "hit_rate", "hit_rate_before", "prompt",
             "idle_before_evict", "tensor", "dram", "balance")

    def __str__(self):
        words = [f"{word}={getattr(self, word):.4g}" for word in self.WORDS]
        return " ".join(words + [f"abort={self.ended('abort'):.3f}"])


class Scenarios(sim_program.SimTest):
    windows = {}

    def window(self, scenario, seed):
        key = scenario, seed
        if key not in self.windows:
            before, after = self.folder / "before", self.folder / "after"
            self.run_sim("--scenario", scenario, "--seed", seed, "--speed",
                         "max", "--log-interval", "0", "--seconds", "120",
                         "--page-at", f"60:{before}", "--page-at",
                         f"120:{after}")
            self.windows[key] = Window(
                *(sim_program.Page(p.read_text("utf-8"))
                  for p in (before, after)))
        return self.windows[key]

    def check(self, scenario, *evidence):
        for seed in SEEDS:
            window = self.window(scenario, seed)
            for holds in evidence:
                with self.subTest(scenario=scenario, seed=seed):
                    self.assertTrue(eval(holds, {"w": window}),
                                    f"{holds}: {window}")


    def test_healthy(self):
        self.check("healthy", "w.waiting == 0", "w.queue < 0.01",
                   "w.preemptions == 0", "w.usage < 0.5", "w.ttft < 0.1",
                   "w.itl_p99 < 5 * w.itl", "w.hit_rate > 0.4",
                   "w.tensor < 0.3", "w.ended('abort') == 0",
                   "w.running > 0")

    def test_idle(self):
        self.check("idle", "w.running == 0", "w.waiting == 0",
                   "w.increase('vllm:prompt_tokens_total') == 0",
                   "w.gauge('DCGM_FI_DEV_GPU_UTIL') == 0",
                   "w.gauge('DCGM_FI_DEV_FB_USED') > 50000")

    def test_queue_saturated(self):
        self.check("queue-saturated", "w.usage > 0.88", "w.waiting_grew > 100",
                   "w.queue > 10 * w.prefill", "w.queue > w.decode",
                   "w.mean('vllm:request_num_preemptions') < 0.4",
                   "w.tensor < 0.5", "w.dram < 0.75")

    def test_false_saturation(self):
        self.check("false-saturation", "0.2 < w.usage < 0.65",
                   "30 <= w.running <= 32", "w.waiting_grew > 100",
                   "w.queue > 10 * w.prefill", "w.preemptions == 0",
                   "w.tensor < 0.5")

    def test_long_prompts(self):
        self.check("long-prompts", "w.prompt > 12000", "w.ttft > 0.5",
                   "w.prefill > 0.6 * w.ttft", "w.prefill > 2 * w.queue",
                   "w.hit_rate == 0", "w.usage < 0.5",
                   "w.itl_p99 <= 0.05", "w.waiting < 3",
                   # Chunks of what is left beside the decodes.
                   "w.prefill > 10 * w.itl")

    def test_prefill_interference(self):
        self.check("prefill-interference", "w.itl_p99 > 6 * w.tpot",
                   "w.tpot < 0.03", "w.itl_p99 > 0.1", "w.waiting < 3",
                   "w.queue < 0.05",
                   "w.usage < 0.5", "w.tensor < 0.6")

    def test_bandwidth_bound(self):
        self.check("bandwidth-bound", "w.dram > 0.75", "w.tensor < 0.25",
                   "w.decode > 0.85 * (w.queue + w.prefill + w.decode)",
                   "w.tpot > 0.05", "w.usage < 0.85", "w.waiting == 0")

    def test_decode_slows_with_concurrency(self):
        few = self.run_to_page("--scenario", "bandwidth-bound", "--seconds",
                               "60", "--concurrency", "16")
        name = "vllm:inter_token_latency_seconds"
        itl = few.sum(name + "_sum") / few.sum(name + "_count")
        self.assertLess(itl, 0.7 * self.window("bandwidth-bound", 0).itl)

    def test_compute_bound(self):
        self.check("compute-bound", "w.tensor > 0.7", "w.dram < 0.3",
                   "w.prefill > w.decode", "w.step_tokens > 14000",
                   "w.waiting_grew > 0", "w.waiting > 20", "w.usage < 0.85")

    def test_preemption_storm(self):
        self.check("preemption-storm", "w.preemptions > 1", "w.usage > 0.95",
                   "w.waiting > 0",
                   "w.mean('vllm:request_num_preemptions') > 0.5",
                   "w.tensor < 0.5")

    def test_fewer_places_end_the_storm(self):
        page = self.run_to_page("--scenario", "preemption-storm", "--seconds",
                                "60", "--max-num-active-seqs", "20")
        self.assertEqual(page.sum("vllm:num_preemptions_total"), 0)

    def test_cache_thrashing(self):
        # Its clients think for 30 s.
        self.check("cache-thrashing", "w.hit_rate < 0.25",
                   "0 < w.idle_before_evict < 12", "w.prompt > 2000",
                   "w.waiting < 3", "w.preemptions < 0.1", "w.usage < 0.5",
                   "w.balance == 1")

    def test_a_larger_cache_ends_the_thrashing(self):
        page = self.run_to_page("--scenario", "cache-thrashing", "--seconds",
                                "120", "--num-gpu-blocks", "24000")
        self.assertGreater(
            page.sum("vllm:prefix_cache_hits_total"),
            0.6 * page.sum("vllm:prefix_cache_queries_total"))

    def test_scattered_sessions(self):
        self.check("scattered-sessions", "w.hit_rate < 0.3",
                   "w.hit_rate_before > 2 * w.hit_rate", "w.balance < 1.15",
                   "len(w.after.engines()) == 8",
                   # Its prompts are alike before and after.
                   "0.6 < w.prompt / w.before.mean_of("
                   "'vllm:request_prompt_tokens') < 1.7",
                   "w.usage < 0.5", "w.waiting == 0")

    def test_clients_give_up(self):
        self.check("clients-give-up", "w.ended('abort') > 0.3", "w.ttft > 5",
                   "w.queue > 5", "w.waiting > 50", "w.usage < 0.5",
                   "w.increase('vllm:e2e_request_latency_seconds_bucket',"
                   " le='30.0') == "
                   "w.increase('vllm:e2e_request_latency_seconds_count')")

    def test_only_the_storm_preempts_and_only_one_client_gives_up(self):
        for scenario in self.names():
            window = self.window(scenario, 0)
            with self.subTest(scenario=scenario):
                self.assertEqual(
                    window.preemptions > 1 and
                    window.mean("vllm:request_num_preemptions") > 0.5,
                    scenario == "preemption-storm")
                self.assertEqual(window.ended("abort") > 0,
                                 scenario == "clients-give-up")
                self.assertEqual(window.dram > 0.75,
                                 scenario == "bandwidth-bound")
                self.assertEqual(
                    window.hit_rate_before > max(0.5, 2 * window.hit_rate),
                    scenario == "scattered-sessions")

    def names(self):
        help_text = " ".join(self.run_sim("--help").stdout.split())
        names = help_text.split("change them. One of ")[1].split(" --trace")[0]
        names = names.split(", ")
        self.assertEqual(len(names), 12)
        return names


if __name__ == "__main__":
    sim_program.main()
