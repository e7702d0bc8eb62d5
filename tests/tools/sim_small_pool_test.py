"""In a pool that is too small requests are preempted, and all finish."""

import re

import sim_program


class SmallPool(sim_program.SimTest):
    def test_halved_until_it_is_full(self):
        requests = sim_program.made_up_trace(1)
        trace = self.file("trace.jsonl", sim_program.json_lines(requests))
        blocks, usage = 40000, 0.0
        while usage < 100.0:
            blocks //= 2
            summary, page = self.run_with(trace, blocks)
            usage = float(re.search(r"KV cache +([\d.]+) %", summary)[1])
            self.check_all_finish(page, requests, blocks)
        self.assertGreater(page.sum("vllm:num_preemptions_total"), 0)
        preemptions = "vllm:request_num_preemptions_sum"
        self.assertEqual(page.sum(preemptions),
                         page.sum("vllm:num_preemptions_total"))

    def run_with(self, trace, blocks):
        path = self.folder / "page"
        done = self.run_sim("--trace", trace, "--speed", "max", "--page", path,
                            "--log-interval", "0", "--num-gpu-blocks", blocks)
        return done.stdout, sim_program.Page(path.read_text("utf-8"))

    def check_all_finish(self, page, requests, blocks):
        def needed(request):
            output = max(1, request["output_length"])
            return -(-(request["input_length"] + output - 1) // 16)

        served = [r for r in requests if needed(r) <= blocks]
        self.assertEqual(page.sum("vllm:request_success_total"), len(served))
        self.assertEqual(page.sum("vllm_metrics_sim_requests_refused_total"),
                         len(requests) - len(served))
        self.assertEqual(page.sum("vllm_metrics_sim_requests_arrived_total"),
                         len(requests))
        self.assertEqual(page.sum("vllm:generation_tokens_total"),
                         sum(max(1, r["output_length"]) for r in served))
        self.assertEqual(page.sum("vllm:prompt_tokens_total"),
                         sum(r["input_length"] for r in served))
        self.assertEqual(page.sum("vllm:kv_cache_usage_perc"), 0)

    def test_too_long_for_the_model_is_refused(self):
        requests = sim_program.made_up_trace(2)
        trace = self.file("trace.jsonl", sim_program.json_lines(requests))
        page = self.run_to_page("--trace", trace, "--max-model-len", "6000")
        fitting = [r for r in requests
                   if r["input_length"] + max(1, r["output_length"]) <= 6000]
        self.assertLess(len(fitting), len(requests))
        self.assertEqual(page.sum("vllm:request_success_total"), len(fitting))
        self.assertEqual(page.sum("vllm_metrics_sim_requests_refused_total"),
                         len(requests) - len(fitting))

    def test_when_all_are_refused_the_page_says_so(self):
        trace = self.file("trace.jsonl", sim_program.json_lines(
            sim_program.made_up_trace(2, requests=20)))
        page = self.run_to_page("--trace", trace, "--max-model-len", "1")
        for name in ("arrived", "refused"):
            self.assertEqual(
                page.sum(f"vllm_metrics_sim_requests_{name}_total"), 20)
        self.assertEqual(page.sum("vllm:request_success_total"), 0)


if __name__ == "__main__":
    sim_program.main()
