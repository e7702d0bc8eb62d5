"""A parameter moves the metrics that it moves on a real engine."""

import sim_program

ITL = "vllm:inter_token_latency_seconds"
TTFT = "vllm:time_to_first_token_seconds"
QUEUE = "vllm:request_queue_time_seconds"
PREFILL = "vllm:request_prefill_time_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
STEP = "vllm:iteration_tokens_total"
IDLE = "vllm:kv_block_idle_before_evict_seconds"


class Levers(sim_program.SimTest):
    def pages(self, scenario, *changes):
        """One page for the scenario, and one for each change of it."""
        base = ("--scenario", scenario, "--seconds", "60")
        return [self.run_to_page(*base, *change.split())
                for change in ("", *changes)]

    def hit_rate(self, page):
        return (page.sum("vllm:prefix_cache_hits_total") /
                page.sum("vllm:prefix_cache_queries_total"))

    def above(self, page, name, bound):
        """The share of observations above a bound."""
        buckets = dict(page.buckets(name))
        return 1.0 - buckets[bound] / page.sum(name + "_count")

    def usage(self, page):
        return page.sum("vllm:kv_cache_usage_perc")

    def test_memory_utilization(self):
        storm = "--concurrency 70 --max-num-seqs 400 --prompt-tokens 8000"
        low, high = (self.run_to_page(
            "--seconds", "60", "--kv-cache-metrics", "--gpu-memory-utilization",
            part, *storm.split()) for part in ("0.4", "0.95"))
        self.assertLess(high.sum("vllm:num_preemptions_total"),
                        0.5 * low.sum("vllm:num_preemptions_total"))
        self.assertGreater(low.sum("vllm:num_requests_waiting"), 10)

    def test_kv_cache_dtype(self):
        page, fp8, nvfp4 = self.pages(
            "bandwidth-bound", "--kv-cache-dtype fp8", "--kv-cache-dtype nvfp4")
        self.assertLess(self.usage(fp8), 0.6 * self.usage(page))
        self.assertLess(self.usage(nvfp4), 0.6 * self.usage(fp8))
        self.assertLess(fp8.mean_of(ITL), 0.9 * page.mean_of(ITL))
        self.assertLess(nvfp4.mean_of(ITL), fp8.mean_of(ITL))
        self.assertGreater(fp8.sum("vllm:generation_tokens_total"),
                           1.1 * page.sum("vllm:generation_tokens_total"))

    def test_max_num_batched_tokens(self):
        page, small = self.pages("prefill-interference",
                                 "--max-num-batched-tokens 512")
        self.assertLess(small.mean_of(STEP), page.mean_of(STEP))
        self.assertGreater(self.above(page, ITL, 0.1), 0.005)
        self.assertEqual(self.above(small, ITL, 0.1), 0)
        page, small = self.pages("long-prompts", "--max-num-batched-tokens 256")
        self.assertGreater(small.mean_of(PREFILL), 1.05 * page.mean_of(PREFILL))
        self.assertGreater(small.mean_of(TTFT), page.mean_of(TTFT))

    def test_long_prefill_token_threshold(self):
        page, split = self.pages("prefill-interference",
                                 "--long-prefill-token-threshold 1024")
        self.assertEqual(self.above(split, ITL, 0.1), 0)
        # Short prompts no longer wait for long ones.
        self.assertLess(self.above(split, TTFT, 0.1),
                        self.above(page, TTFT, 0.1))

    def test_max_num_seqs(self):
        page, more = self.pages("false-saturation", "--max-num-seqs 256")
        self.assertGreater(page.sum("vllm:num_requests_waiting"), 100)
        self.assertLess(more.sum("vllm:num_requests_waiting"), 20)
        self.assertGreater(more.sum("vllm:num_requests_running"), 50)
        self.assertGreater(more.mean_of(ITL), page.mean_of(ITL))

    def test_max_num_active_seqs(self):
        page, fewer = self.pages("preemption-storm", "--max-num-active-seqs 20")
        self.assertGreater(page.sum("vllm:num_preemptions_total"), 50)
        self.assertEqual(fewer.sum("vllm:num_preemptions_total"), 0)
        self.assertGreater(fewer.mean_of(QUEUE), page.mean_of(QUEUE))

    def test_prefix_caching(self):
        page, off = self.pages("healthy", "--no-prefix-caching")
        self.assertGreater(self.hit_rate(page), 0.4)
        self.assertEqual(off.sum("vllm:prefix_cache_hits_total"), 0)
        self.assertGreater(off.mean_of(PREFILL), page.mean_of(PREFILL))
        self.assertGreater(
            off.sum("vllm:prompt_tokens_by_source_total",
                    source="local_compute"),
            1.5 * page.sum("vllm:prompt_tokens_by_source_total",
                           source="local_compute"))

    def test_speculative_tokens(self):
        page, good, bad = self.pages(
            "healthy", "--speculative-tokens 3 --acceptance-rate 0.8",
            "--speculative-tokens 3 --acceptance-rate 0.05")
        self.assertLess(good.mean_of(TPOT), 0.7 * page.mean_of(TPOT))
        self.assertGreater(bad.mean_of(TPOT), page.mean_of(TPOT))
        self.assertGreater(good.mean_of(ITL), page.mean_of(ITL))

    def test_tensor_parallel_size(self):
        page, two = self.pages("bandwidth-bound", "--tensor-parallel-size 2")
        self.assertLess(two.mean_of(ITL), 0.7 * page.mean_of(ITL))
        self.assertLess(self.usage(two), 0.6 * self.usage(page))

    def test_engines(self):
        page, four = self.pages("clients-give-up", "--engines 4")
        self.assertGreater(
            page.sum("vllm:request_success_total", finished_reason="abort"), 20)
        self.assertEqual(four.sum("vllm:num_requests_waiting"), 0)
        self.assertLess(four.mean_of(QUEUE), 0.01)

    def test_enforce_eager(self):
        page, eager = self.pages("healthy", "--enforce-eager")
        ratio = eager.mean_of(ITL) / page.mean_of(ITL)
        self.assertGreater(ratio, 1.25)
        self.assertLess(ratio, 1.6)

    def test_a_larger_pool_keeps_blocks_longer(self):
        page, large = self.pages("cache-thrashing", "--num-gpu-blocks 8000")
        self.assertGreater(large.mean_of(IDLE), 1.5 * page.mean_of(IDLE))
        self.assertGreater(self.hit_rate(large), 1.3 * self.hit_rate(page))

    def test_routing(self):
        sticky = self.run_to_page("--scenario", "scattered-sessions",
                                  "--seconds", "60")
        scattered = self.run_to_page("--scenario", "scattered-sessions",
                                     "--seconds", "60", "--routing",
                                     "round-robin")
        self.assertGreater(self.hit_rate(sticky), 2 * self.hit_rate(scattered))


if __name__ == "__main__":
    sim_program.main()
