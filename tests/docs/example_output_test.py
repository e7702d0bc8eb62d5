"""Examples print what the pages show of them, and what their own text says."""

import re
import subprocess

import pages

# Patterns of lines that each example prints, in this order.
EXPECTED = {
    "example_02_step_loop": [
        # Three requests of 100, 100 and 64 tokens; the preempted one looks up its
        # prompt twice and is counted once.
        r'vllm:prefix_cache_queries_total\{.*\} 264\.0',
        r'vllm:num_preemptions_total\{.*\} 1\.0',
        r'vllm:generation_tokens_total\{.*\} 14\.0',
        r'vllm:request_success_total\{.*"length".*\} 3\.0',
        r'vllm:request_success_total\{.*"abort".*\} 1\.0',
        r'vllm:inter_token_latency_seconds_count\{.*\} 11\.0',
        # One prompt of n = 2, one single request, one that was given up.
        r'vllm:request_params_n_count\{.*\} 3\.0',
        r'vllm:request_params_n_sum\{.*\} 4\.0',
    ],
    "example_03_custom_stat_logger": [
        r'\{"time":\d+,"engine":0,"tokens":24,"finished":3,"p50_latency":0\.5\}',
        r'\{"time":\d+,"engine":1,"tokens":8,"finished":1,"p50_latency":4\}',
    ],
    "example_04_own_metrics": [
        r'acme_batch_slots\{engine="0",model_name="tiny-1b"\} 8\.0',
        r'acme_padded_tokens_total\{engine="0",model_name="tiny-1b"\} 2\.0',
        r'acme_connections_total\{protocol="grpc"\} 1\.0',
        r'acme_tokenize_seconds_bucket\{le="0\.01"\} 1\.0',
        r'mean wait 0\.25 s',
    ],
    "example_06_log_sinks": [
        r'tiny-engine: Engine 000: Avg prompt throughput: .* Running: 3 reqs, .*',
    ],
    "example_07_data_parallel": [
        r'INFO .*4 Engines Aggregated: .* Running: 38 reqs, .* usage: 25\.0%, .*',
        r'vllm:generation_tokens_total\{engine="0",.*\} 8000\.0',
        r'vllm:generation_tokens_total\{engine="3",.*\} 11000\.0',
    ],
    "example_08_serve_http": [
        r'serving http://127\.0\.0\.1:\d+/metrics',
        r'HTTP/1\.1 200 OK',
    ],
    "example_09_read_metrics_http": [
        # 50 steps of 8 tokens in 2 s, of 20 ms: the slow steps came before.
        r"tokens per second 200",
        r"latency mean 0\.02 s, p50 0\.0175 s, p99 0\.02485 s",
        r"running 8",
        r"ended by abort: 0",
    ],
}


class Output(pages.PagesTest):
    def run_example(self, name):
        program = self.project.program(name)
        if program is None:
            self.skipTest(f"{name} is not built")
        done = subprocess.run(
            [program],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def test_each_example_prints_its_values(self):
        for name, patterns in EXPECTED.items():
            with self.subTest(example=name):
                lines = iter(self.run_example(name))
                for pattern in patterns:
                    self.assertTrue(
                        any(re.fullmatch(pattern, line) for line in lines),
                        f"no line {pattern}",
                    )

    def test_what_a_page_shows_is_what_the_example_prints(self):
        shown = 0
        for page in self.project.pages():
            for note, text in page.blocks("text"):
                match = re.fullmatch(r"output of (\w+)", note or "")
                if not match:
                    continue
                shown += 1
                with self.subTest(page=page.name, example=match[1]):
                    lines = iter(self.run_example(match[1]))
                    for wanted in text.splitlines():
                        self.assertTrue(
                            wanted == "..."
                            or any(line.endswith(wanted) for line in lines),
                            wanted,
                        )
        self.assertGreaterEqual(shown, 2)


if __name__ == "__main__":
    pages.main()
