"""A trace that the example records plays back to the live engines' page."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest


def vllm_lines(page):
    """The lines of vLLM's families, as they are on the page."""
    starts = ("vllm:", "# TYPE vllm:", "# HELP vllm:")
    return [line for line in page.splitlines() if line.startswith(starts)]


class RecordedTrace(unittest.TestCase):
    example = None
    replay = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if not cls.example.exists():
            raise unittest.SkipTest("the examples are not built")
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        cls.trace, cls.page = folder / "steps.jsonl", folder / "page"
        cls.live = subprocess.run(
            [cls.example, cls.trace, cls.page],
            capture_output=True,
            check=True,
            text=True,
        )
        cls.log = folder / "log"
        cls.played = subprocess.run(
            [cls.replay, "--log", cls.log, cls.trace],
            capture_output=True,
            check=True,
            text=True,
        )

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_page_is_the_same_to_the_byte(self):
        live = vllm_lines(self.page.read_text("utf-8"))
        self.assertGreater(len(live), 500)
        self.assertEqual(vllm_lines(self.played.stdout), live)
        self.assertEqual(self.played.stderr, "")

    def test_the_page_has_what_the_engines_did(self):
        live = self.page.read_text("utf-8").splitlines()
        labels = 'engine="1",model_name="acme/test-7b"'
        for sample in [
            f"vllm:generation_tokens_total{{{labels}}} 50.0",
            f"vllm:num_preemptions_total{{{labels}}} 2.0",
            f"vllm:request_params_n_sum{{{labels}}} 3.0",
            f"vllm:mm_cache_hits_total{{{labels}}} 1.0",
            f"vllm:request_decode_time_seconds_count{{{labels}}} 2.0",
            f"vllm:request_queue_time_seconds_count{{{labels}}} 3.0",
            f"vllm:spec_decode_num_drafts_total{{{labels}}} 25.0",
            f"vllm:nixl_num_failed_notifications_total{{{labels}}} 5.0",
            f"vllm:kv_block_reuse_gap_seconds_count{{{labels}}} 50.0",
        ]:
            self.assertIn(sample, live)

    def test_the_page_has_the_adapters_of_both_engines(self):
        lines = self.page.read_text("utf-8").splitlines()
        infos = [x for x in lines if x.startswith("vllm:lora_requests_info{")]
        self.assertEqual(
            [line.split(" 1.7000000")[0] for line in infos],
            [
                'vllm:lora_requests_info{max_lora="2",running_lora_adapters='
                f'"{name}",waiting_lora_adapters="{name}"}}'
                for name in ["sql", 'a \\"quoted\\" adapter']
            ],
        )

    def test_the_text_records_are_the_same(self):
        head = re.compile(r"(INFO|WARNING) \S+ \S+ \[vllm_metrics\] ")
        parts = head.split(self.live.stderr)[1:]
        live = [
            level + " " + text.removesuffix("\n").replace("\n", "\\n")
            for level, text in zip(parts[::2], parts[1::2])
        ]
        played = self.log.read_text("utf-8").splitlines()
        self.assertEqual([x for x in played if not x.startswith("DEBUG ")], live)
        for words, count in {
            "Avg prompt throughput: ": 4,
            "SpecDecoding metrics: ": 4,
            "KV Transfer metrics: ": 4,
            "**CUDAGraph Stats:**": 4,
            "MFU: ": 4,
            "Iteration(9): ": 2,
            "vllm:lora_requests_info": 1,
        }.items():
            self.assertEqual(sum(words in line for line in live), count, words)

    def test_every_line_is_json_and_has_its_time(self):
        lines = [json.loads(line) for line in self.trace.read_text().splitlines()]
        self.assertEqual(lines[0]["op"], "config")
        self.assertEqual(lines[1]["op"], "init")
        self.assertEqual(lines[-1]["op"], "sleep")
        self.assertEqual([line["op"] for line in lines].count("record"), 50)
        self.assertTrue(all("wall" in line and "mono" in line for line in lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    build = arguments.build_dir
    RecordedTrace.example = build / "examples" / "example_05_record_trace"
    RecordedTrace.replay = build / "bin" / "vllm-metrics-replay"
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
