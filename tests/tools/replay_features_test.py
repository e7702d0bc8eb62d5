"""vllm-metrics-replay plays the parts of a trace that not every engine has.

What is expected comes from the format's rules and from numbers that were worked
out by hand or by vLLM, not from this library.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONFIG = {
    "op": "config",
    "format": 1,
    "profile": "0.30",
    "vllm_version": "0.30.0",
    "model_name": "m",
    "max_model_len": 4096,
    "wall": 1700000000.0,
    "mono": 1000.0,
    "mono_ns": 0,
}
LOG = {"op": "log", "mono": 1010.0}

DENSE = {
    "dtype": "bfloat16",
    "cache_dtype": "auto",
    "vocab_size": 32000,
    "hidden_size": 4096,
    "num_kv_heads": 8,
    "head_dim": 128,
    "num_experts": 0,
    "dp": 1,
    "tp": 2,
    "pp": 1,
    "ep": False,
    "hf": {
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "intermediate_size": 14336,
    },
}
MOE = {
    "dtype": "bfloat16",
    "cache_dtype": "fp8",
    "quant": "fp8",
    "vocab_size": 151936,
    "hidden_size": 2048,
    "num_kv_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "dp": 2,
    "tp": 4,
    "pp": 2,
    "ep": True,
    "hf": {
        "num_attention_heads": 32,
        "num_hidden_layers": 48,
        "moe_topk": 8,
        "moe_intermediate_size": 768,
        "num_shared_experts": 1,
    },
}
MLA = {
    "dtype": "bfloat16",
    "cache_dtype": "auto",
    "quant": "awq",
    "vocab_size": 129280,
    "hidden_size": 7168,
    "num_kv_heads": 128,
    "head_dim": 192,
    "num_experts": 256,
    "dp": 1,
    "tp": 8,
    "pp": 1,
    "ep": False,
    "is_mla": True,
    "hf": {
        "num_attention_heads": 128,
        "num_hidden_layers": 61,
        "intermediate_size": 18432,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "n_shared_experts": 1,
        "moe_layer_freq": 1,
        "first_k_dense_replace": 3,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "q_lora_rank": 1536,
    },
}
# Model, new and cached requests, and what vLLM makes of them: FLOPs, bytes
# read, bytes written.
ESTIMATES = [
    (DENSE, [[512, 0]], [], 3642263339008, 8251252736, 1107328256),
    (DENSE, [], [[1, 1023]], 7378829312, 7179673600, 2194688),
    (DENSE, [[512, 0]], [[1, 1023]], 3649642168320, 8320532480, 1109522944),
    (DENSE, [], [], 0, 7110393856, 0),
    (
        {**DENSE, "tp": 1, "quant": "fp8", "cache_dtype": "fp8"},
        [],
        [[1, 1023]],
        14757658624,
        7312384000,
        3799552,
    ),
    ({**DENSE, "quant": "?"}, [[4, 0]], [], 131072000, 131080192, 32000),
    ({**DENSE, "tp": 64}, [[4, 0]], [], 1245872128, 316882944, 2434024),
    (MOE, [[100, 0]], [[1, 500], [1, 700]], 70874628096, 2265309184, 59763264),
    (MLA, [[64, 0]], [[1, 4095]], 688986521600, 43494682112, 679093120),
]


def record(**scheduler):
    return {"op": "record", "scheduler": scheduler}


def block(event, number, mono_ns, engine=0):
    return {
        "op": "kv_block",
        "engine": engine,
        "event": event,
        "block": number,
        "mono_ns": mono_ns,
    }


class Played:
    """The page and the log that a trace gives."""

    def __init__(self, program, events, config):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.jsonl"
            log = pathlib.Path(folder) / "log"
            lines = [{**CONFIG, **config}, *events]
            trace.write_text("\n".join(map(json.dumps, lines)), "utf-8")
            run = subprocess.run(
                [program, "--log", log, trace],
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.error = run.stderr
            self.status = run.returncode
            self.page = run.stdout.splitlines()
            self.log = log.read_text("utf-8").splitlines()

    def sample(self, name, engine=0):
        """The number behind a sample of `vllm:` without a label of its own."""
        start = f'vllm:{name}{{engine="{engine}",model_name="m"}} '
        found = [line for line in self.page if line.startswith(start)]
        return float(found[0].split()[-1]) if found else None

    def records(self, words):
        """The log's lines that have `words`."""
        return [line for line in self.log if words in line]


class Features(unittest.TestCase):
    program = None
    maxDiff = None

    def play(self, *events, **config):
        played = Played(self.program, events, config)
        self.assertEqual((played.status, played.error), (0, ""))
        return played

    def adapters(self, played):
        infos = [x for x in played.page if x.startswith("vllm:lora_requests_info{")]
        found = re.findall(r'(running|waiting)_lora_adapters="(.*?)"[,}]', infos[0])
        self.assertEqual(len(infos), 1)
        return dict(found)

    def test_adapters_of_a_record_keep_the_order_of_their_object(self):
        played = self.play(
            record(
                running_lora_adapters={"b": 1, "a": 0},
                waiting_lora_adapters={"z": 0, "b": 2, "a": 1},
            ),
            lora={"max_loras": 3},
        )
        self.assertEqual(
            self.adapters(played), {"running": "b,a", "waiting": "z,b,a"}
        )

    def test_adapters_of_live_requests_come_behind_those_of_the_scheduler(self):
        requests = [
            {"op": "request", "id": name, "arrival": 0.0, "prompt_len": 1, "lora": name}
            for name in ["a", "b"]
        ]
        output = {
            "op": "output",
            "ts": 1000.5,
            "outputs": [
                {"id": "b", "events": [["queued", 1000.1]]},
                {"id": "a", "events": [["queued", 1000.2]]},
            ],
            "scheduler": {"running_lora_adapters": {"x": 1, "a": 1}},
        }
        lora = {"max_loras": 3}
        played = self.play(*requests, output, lora=lora)
        self.assertEqual(
            self.adapters(played), {"running": "x,a,b", "waiting": "b,a"}
        )
        dropped = {"op": "abort", "ids": ["b"]}
        again = {**output, "outputs": [], "scheduler": {}}
        played = self.play(*requests, output, dropped, again, lora=lora)
        self.assertEqual(self.adapters(played), {"running": "a", "waiting": "a"})

    def test_drafts_one_by_one_are_their_sums(self):
        config = {"speculative": {"num_speculative_tokens": 2}}
        drafts = {"num_spec_tokens": 2, "drafts": [[2, 2], [2, 0], [1, 1]]}
        sums = {
            "num_spec_tokens": 2,
            "num_drafts": 3,
            "num_draft_tokens": 5,
            "num_accepted_tokens": 3,
            "num_accepted_tokens_per_pos": [2, 1],
        }
        one_by_one = self.play(record(spec_decoding_stats=drafts), LOG, **config)
        at_once = self.play(record(spec_decoding_stats=sums), LOG, **config)
        self.assertEqual(one_by_one.page, at_once.page)
        self.assertEqual(one_by_one.log, at_once.log)
        self.assertEqual(one_by_one.sample("spec_decode_num_drafts_total"), 3)
        self.assertIn("Accepted: 3 tokens, Drafted: 5 tokens", one_by_one.log[-1])

    def test_blocks_go_from_allocation_to_eviction_by_engine(self):
        played = self.play(
            block("alloc", 7, 1_000_000_000),
            block("access", 7, 2_000_000_000),
            block("access", 7, 2_500_000_000),
            block("alloc", 7, 3_000_000_000, engine=1),
            block("evict", 7, 9_000_000_000),
            block("evict", 7, 9_500_000_000),
            block("alloc", 8, 9_500_000_000),
            block("reset", None, 9_600_000_000, engine=1),
            block("evict", 7, 9_700_000_000, engine=1),
            {**record(kv_drain=True), "engine": 1},
            record(
                kv_drain=True,
                kv_cache_eviction_events=[
                    {
                        "lifetime_seconds": 100.0,
                        "idle_seconds": 50.0,
                        "reuse_gaps_seconds": [1.0, 2.0, 3.0],
                    }
                ],
            ),
            record(kv_drain=True),
            kv_cache_metrics=True,
            engine_indexes=[0, 1],
        )
        for name, count, total in [
            ("kv_block_lifetime_seconds", 2, 108.0),
            ("kv_block_idle_before_evict_seconds", 2, 56.5),
            ("kv_block_reuse_gap_seconds", 4, 6.5),
        ]:
            self.assertEqual(played.sample(name + "_count"), count, name)
            self.assertEqual(played.sample(name + "_sum"), total, name)
            self.assertEqual(played.sample(name + "_count", engine=1), 0, name)

    def test_evictions_wait_for_a_step_that_drains_them(self):
        played = self.play(
            block("alloc", 0, 0),
            block("evict", 0, 1000),
            record(),
            record(kv_drain=False),
            kv_cache_metrics=True,
        )
        self.assertEqual(played.sample("kv_block_lifetime_seconds_count"), 0)

    def test_work_is_estimated_from_the_models_shape(self):
        for model, new, cached, *expected in ESTIMATES:
            step = record(perf_stats={"new": new, "cached": cached})
            with self.subTest(model=model, new=new, cached=cached):
                played = self.play(step, model=model)
                names = ["flops", "read_bytes", "write_bytes"]
                found = [
                    played.sample(f"estimated_{name}_per_gpu_total") for name in names
                ]
                self.assertEqual(found, expected)

    def test_work_is_taken_as_it_stands(self):
        plain = {
            "num_flops_per_gpu": 2e13,
            "num_read_bytes_per_gpu": 3e10,
            "num_write_bytes_per_gpu": 1e10,
        }
        played = self.play(record(perf_stats=plain), LOG, enable_mfu_metrics=True)
        self.assertEqual(played.sample("estimated_flops_per_gpu_total"), 2e13)
        self.assertEqual(
            played.log[-1], "DEBUG Engine 000: MFU: 2.0 TF/s/GPU 4.0 GB/s/GPU"
        )

    def test_the_debug_record_of_an_estimate_has_its_parts(self):
        step = record(perf_stats={"new": [[512, 0]], "cached": []})
        config = {"model": DENSE, "debug_mfu": True}
        played = self.play(step, LOG, enable_mfu_metrics=True, **config)
        text = played.records("MFU details: ")[0].replace("\\n", "\n")
        details = json.loads(text.split("MFU details: ")[1])
        self.assertEqual(details["num_batches"], 1)
        self.assertEqual(details["context_breakdown"]["prefill_num_tokens"], 512)
        self.assertEqual(details["flops_breakdown"]["ffn.dense_ffn"], "2.9TF")
        self.assertEqual(details["duration"], "10.0s")
        self.assertEqual(self.play(step, LOG, **config).records("MFU"), [])

    def test_a_shape_that_vllm_would_warn_of_is_warned_of(self):
        played = Played(self.program, [], {"model": {**DENSE, "dtype": "int3"}})
        self.assertEqual(played.status, 0)
        self.assertIn("vllm-metrics-replay: warning: ", played.error)
        self.assertIn("int3", played.error)

    def test_features_that_are_off_leave_no_trace(self):
        stats = {
            "transfer_duration": [0.5],
            "post_duration": [0.1],
            "bytes_transferred": [1024],
            "num_descriptors": [1],
            "num_failed_transfers": [],
            "num_failed_notifications": [],
            "num_kv_expired_reqs": [],
        }
        padded = {
            "num_unpadded_tokens": 3,
            "num_padded_tokens": 4,
            "num_paddings": 1,
            "runtime_mode": "FULL",
        }
        events = [
            record(
                kv_connector_stats=stats,
                cudagraph_stats=padded,
                running_lora_adapters={"a": 1},
                spec_decoding_stats=None,
                perf_stats=None,
                iteration_details=None,
                kv_cache_eviction_events=[],
            ),
            LOG,
        ]
        played = self.play(*events)
        self.assertEqual(len(played.log), 1)
        self.assertEqual(self.play(record(), LOG).page, played.page)
        on = self.play(
            *events,
            kv_connector="nixl",
            cudagraph={"mode": "FULL", "capture_sizes": [4]},
        )
        self.assertEqual(on.sample("nixl_bytes_transferred_sum"), 1024)
        self.assertEqual(len(on.log), 3)

    def test_the_version_whose_hidden_families_are_shown(self):
        for text in ["0.29", "0.28", "0.29.0", "v1.2rc1+local.7", None]:
            self.play(show_hidden_metrics_for_version=text)
        for text in ["garbage!", "", "0.29 0.30"]:
            with self.subTest(text):
                config = {"show_hidden_metrics_for_version": text}
                played = Played(self.program, [], config)
                self.assertEqual(played.status, 2)
                self.assertIn("show_hidden_metrics_for_version", played.error)
                self.assertIn(f'"{text}"', played.error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    Features.program = arguments.build_dir / "bin" / "vllm-metrics-replay"
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
