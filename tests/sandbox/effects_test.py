"""A parameter that is turned on a running engine moves what docs/sandbox.md
says, as /metrics shows it."""

import sandbox_program

ITL = "vllm:inter_token_latency_seconds"
TTFT = "vllm:time_to_first_token_seconds"
QUEUE = "vllm:request_queue_time_seconds"
PREFILL = "vllm:request_prefill_time_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
STEP = "vllm:iteration_tokens_total"
PREEMPTIONS = "vllm:num_preemptions_total"
USAGE = "vllm:kv_cache_usage_perc"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
OUTPUT = "vllm:generation_tokens_total"
IDLE = "vllm:kv_block_idle_before_evict_seconds"
REFUSED = "vllm_metrics_sim_requests_refused_total"


class Effects(sandbox_program.SandboxTest):
    SETTLE = 12  # virtual seconds
    WATCH = 12

    def turned(self, scenario, change, watch=WATCH, **beside):
        """What happened before and after a parameter was turned."""
        self.order(scenario=scenario, speed=100, parameters=beside)
        self.after(self.SETTLE)
        before = self.span(watch)
        self.order(parameters=change)
        self.after(self.SETTLE)
        return before, self.span(watch)

    def setUp(self):
        super().setUp()
        self.start("--kv-cache-metrics", "--kv-cache-metrics-sample", "1")

    def test_memory_and_active_requests(self):
        # What a newcomer does: first preemptions appear, then they vanish.
        load = {"concurrency": 60, "prompt-tokens": 400, "output-tokens": 600,
                "output-spread": 0.2}
        ample, scarce = self.turned(
            "healthy", {"gpu-memory-utilization": 0.3}, **load)
        self.assertEqual(ample.grown(PREEMPTIONS), 0)
        self.assertGreater(scarce.grown(PREEMPTIONS), 0)
        self.assertGreater(scarce.level(USAGE), ample.level(USAGE))
        self.order(parameters={"max-num-active-seqs": 10})
        self.after(2 * self.SETTLE)
        capped = self.span(self.WATCH)
        self.assertEqual(capped.grown(PREEMPTIONS), 0)
        self.assertLess(capped.level(RUNNING), scarce.level(RUNNING))
        self.assertGreater(capped.mean(QUEUE), scarce.mean(QUEUE))

    def test_kv_cache_dtype(self):
        load = {"device": "L40S", "gpu-memory-utilization": 0.95,
                "concurrency": 30, "prompt-tokens": 2500}
        auto, fp8 = self.turned("bandwidth-bound", {"kv-cache-dtype": "fp8"},
                                **load)
        self.assertLess(fp8.level(USAGE), 0.7 * auto.level(USAGE))
        self.assertLess(fp8.mean(ITL), auto.mean(ITL))
        self.order(parameters={"kv-cache-dtype": "nvfp4"})
        self.after(self.SETTLE)
        nvfp4 = self.span(self.WATCH)
        self.assertLess(nvfp4.level(USAGE), 0.7 * fp8.level(USAGE))

    def test_max_num_batched_tokens(self):
        large, small = self.turned("prefill-interference",
                                   {"max-num-batched-tokens": 512}, watch=40)
        self.assertGreater(large.above(ITL, 0.2), 0)
        self.assertEqual(small.above(ITL, 0.2), 0)
        self.assertLess(small.mean(STEP), large.mean(STEP))
        # One client, prompts of one length: no other request, no chance.
        large, small = self.turned(
            "long-prompts", {"max-num-batched-tokens": 256},
            **{"concurrency": 1, "prompt-spread": 0})
        self.assertGreater(small.mean(PREFILL), large.mean(PREFILL))
        self.assertGreater(small.mean(TTFT), large.mean(TTFT))

    def test_long_prefill_token_threshold(self):
        whole, split = self.turned("prefill-interference",
                                   {"long-prefill-token-threshold": 1024},
                                   watch=60)
        self.assertGreater(whole.above(ITL, 0.2), 0)
        self.assertEqual(split.above(ITL, 0.2), 0)
        # Short prompts no longer wait for long ones.
        self.assertLess(split.above(TTFT, 0.1), whole.above(TTFT, 0.1))

    def test_max_num_seqs(self):
        few, many = self.turned("false-saturation", {"max-num-seqs": 256})
        self.assertGreater(many.level(RUNNING), few.level(RUNNING))
        self.assertLess(many.last.sum(WAITING), few.last.sum(WAITING))
        self.assertGreater(many.mean(ITL), few.mean(ITL))

    def test_max_model_len(self):
        long, short = self.turned("healthy", {"max-model-len": 1024})
        self.assertEqual(long.grown(REFUSED), 0)
        self.assertGreater(short.grown(REFUSED), 0)

    def test_memory_and_hit_rate(self):
        little, much = self.turned("cache-thrashing",
                                   {"gpu-memory-utilization": 0.38}, watch=120)
        self.assertGreater(much.hit_rate(), little.hit_rate())
        self.assertGreater(much.mean(IDLE), 1.1 * little.mean(IDLE))

    def test_block_size(self):
        fine, coarse = self.turned(
            "healthy", {"block-size": 256}, **{"concurrency": 30,
                                               "prompt-tokens": 100,
                                               "prefix-share": 0})
        self.assertGreater(coarse.level(USAGE), fine.level(USAGE))

    def test_prefix_caching(self):
        on, off = self.turned("healthy", {"enable-prefix-caching": False})
        self.assertGreater(on.hit_rate(), 0.3)
        self.assertEqual(off.grown("vllm:prefix_cache_hits_total"), 0)
        self.assertGreater(off.mean(PREFILL), on.mean(PREFILL))
        source = {"source": "local_compute"}
        computed = "vllm:prompt_tokens_by_source_total"
        self.assertGreater(off.rate(computed, **source),
                           1.2 * on.rate(computed, **source))

    def test_speculative_tokens(self):
        off, on = self.turned("healthy", {"speculative-tokens": 3},
                              **{"acceptance-rate": 0.8})
        self.assertLess(on.mean(TPOT), 0.8 * off.mean(TPOT))
        self.assertGreater(on.mean(ITL), off.mean(ITL))

    def test_tensor_parallel_size(self):
        one, two = self.turned("healthy", {"tensor-parallel-size": 2})
        self.assertLess(two.mean(ITL), one.mean(ITL))
        flops = "vllm:estimated_flops_per_gpu_total"
        self.assertLess(two.rate(flops), 0.7 * one.rate(flops))

    def test_expert_parallel(self):
        # A GPU has half the experts, and reads what is routed to them only.
        # Every step is the same prompt, so nothing else moves.
        all_of_it, half = self.turned(
            "healthy", {"enable-expert-parallel": True},
            **{"model": "moe-30b", "tensor-parallel-size": 2,
               "concurrency": 1, "prompt-spread": 0, "prefix-share": 0,
               "output-tokens": 1, "output-spread": 0})
        self.assertLess(half.bytes_per_step(), all_of_it.bytes_per_step())

    def test_engines(self):
        one, four = self.turned("clients-give-up", {"engines": 4})
        self.assertLess(four.last.sum(WAITING), one.last.sum(WAITING))
        self.assertEqual(len(four.last.engines()), 4)

    def test_enforce_eager(self):
        graphs, eager = self.turned("healthy", {"enforce-eager": True})
        self.assertGreater(eager.mean(ITL), 1.2 * graphs.mean(ITL))

    def test_load(self):
        calm, busy = self.turned("healthy", {"rate": 30})
        self.assertGreater(busy.level(RUNNING), calm.level(RUNNING))
        self.assertGreater(busy.rate(OUTPUT), 1.5 * calm.rate(OUTPUT))


if __name__ == "__main__":
    sandbox_program.main()
