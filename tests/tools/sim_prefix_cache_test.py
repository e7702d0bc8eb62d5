"""Prefix cache hits are those that the trace's hash_ids have."""

import sim_program


def expected_hits(requests, block_size):
    """Counted by requests and their leading chunks, without any engine."""
    seen, hits = set(), 0
    for request in requests:
        length, known, chain = request["input_length"], 0, ()
        for chunk in request["hash_ids"]:
            chain = hash((chain, chunk))
            if chain not in seen:
                break
            known += 1
        chain = ()
        for chunk in request["hash_ids"]:
            chain = hash((chain, chunk))
            seen.add(chain)
        tokens = min(512 * known, length - 1)
        hits += tokens // block_size * block_size
    return hits


class PrefixCache(sim_program.SimTest):
    def run_trace(self, requests, *flags):
        trace = self.file("trace.jsonl", sim_program.json_lines(requests))
        return self.run_to_page("--trace", trace, *flags)

    def test_hits_are_those_of_the_trace(self):
        for seed in range(3):
            requests = sim_program.made_up_trace(seed)
            for block_size in (16, 48, 512):
                for budget in (300, 8192):
                    with self.subTest(seed=seed, block_size=block_size,
                                      budget=budget):
                        self.check_hits(requests, block_size, budget)

    def check_hits(self, requests, block_size, budget):
        page = self.run_trace(requests, "--num-gpu-blocks", "unlimited",
                              "--block-size", block_size,
                              "--max-num-batched-tokens", budget)
        prompts = sum(request["input_length"] for request in requests)
        hits = expected_hits(requests, block_size)
        self.assertGreater(hits, prompts / 4)
        self.assertEqual(page.sum("vllm:prefix_cache_hits_total"), hits)
        self.assertEqual(page.sum("vllm:prefix_cache_queries_total"), prompts)
        self.assertEqual(page.sum("vllm:prompt_tokens_total"), prompts)
        self.assertEqual(page.sum("vllm:prompt_tokens_cached_total"), hits)
        self.assertEqual(page.sum("vllm:prompt_tokens_by_source_total",
                                  source="local_compute"), prompts - hits)
        self.assertEqual(page.sum("vllm:kv_cache_usage_perc"), 0)

    def test_without_a_cache_nothing_is_looked_up(self):
        page = self.run_trace(sim_program.made_up_trace(0),
                              "--no-prefix-caching")
        self.assertEqual(page.sum("vllm:prefix_cache_queries_total"), 0)
        self.assertEqual(page.sum("vllm:prompt_tokens_cached_total"), 0)

    def test_a_small_cache_hits_less(self):
        requests = sim_program.made_up_trace(0)
        hits = [self.run_trace(requests, "--num-gpu-blocks", blocks)
                .sum("vllm:prefix_cache_hits_total")
                for blocks in (2000, 20000, 0)]
        self.assertLess(hits[0], hits[1])
        self.assertLess(hits[1], hits[2])
        self.assertEqual(hits[2], expected_hits(requests, 16))

    def test_a_csv_trace_shares_nothing(self):
        rows = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
        rows += [f"2023-11-16 18:17:0{i}.5000000,1000,10" for i in range(9)]
        trace = self.file("trace.csv", "\r\n".join(rows))
        page = self.run_to_page("--trace", trace)
        self.assertEqual(page.sum("vllm:prompt_tokens_total"), 9000)
        self.assertEqual(page.sum("vllm:generation_tokens_total"), 90)
        self.assertEqual(page.sum("vllm:prefix_cache_hits_total"), 0)
        self.assertEqual(page.sum("vllm_metrics_sim_seconds") // 1, 8)


if __name__ == "__main__":
    sim_program.main()
