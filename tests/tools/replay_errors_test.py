"""vllm-metrics-replay names the file, line and field of what is wrong."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CONFIG = {
    "op": "config",
    "format": 1,
    "profile": "0.30",
    "model_name": "acme/test-7b",
    "max_model_len": 4096,
    "wall": 1700000000.0,
    "mono": 1000.0,
}
REQUEST = {"op": "request", "id": "r1", "arrival": 1700000000.0, "prompt_len": 4}
OUTPUT = {"op": "output", "ts": 1000.5, "outputs": [{"id": "r1", "tokens": 1}]}


def output(**fields):
    """An output line whose one entry has `fields`."""
    return {**OUTPUT, "outputs": [{"id": "r1", **fields}]}


def finished(**fields):
    return {"op": "record", "iteration": {"finished_requests": [fields]}}


# Lines that follow the configuration, and what the message has to say: the line
# of the trace, the field, and what is allowed.
BAD_LINES = {
    "unknown op": ([{"op": "jump"}], 2, "op", '"jump"', "record"),
    "no op": ([{"wall": 1.0}], 2, "op", "missing"),
    "op of a wrong type": ([{"op": 5}], 2, "op", "5", "text"),
    "line that is no object": ([[1, 2]], 2, "object"),
    "second config": ([CONFIG], 2, "op", "first line"),
    "wall as text": ([{"op": "log", "wall": "now"}], 2, "wall", '"now"', "number"),
    "NaN where it is not allowed": (
        [{"op": "log", "mono": "NaN"}],
        2,
        "mono",
        "a number",
    ),
    "mono_ns with a fraction": (
        [{"op": "log", "mono_ns": 1.5}],
        2,
        "mono_ns",
        "whole number",
    ),
    "count as text": (
        [{"op": "record", "scheduler": {"num_running_reqs": "3"}}],
        2,
        "scheduler.num_running_reqs",
        '"3"',
        "whole number",
    ),
    "count with a fraction": (
        [{"op": "record", "scheduler": {"num_waiting_reqs": 2.5}}],
        2,
        "scheduler.num_waiting_reqs",
        "2.5",
    ),
    "count above 64 bits": (
        [{"op": "record", "iteration": {"num_generation_tokens": 2**63}}],
        2,
        "iteration.num_generation_tokens",
        str(2**63),
        "2^63",
    ),
    "engine above 32 bits": (
        [{"op": "record", "engine": 2**40}],
        2,
        "engine",
        "32 bits",
    ),
    "scheduler that is a list": (
        [{"op": "record", "scheduler": []}],
        2,
        "scheduler",
        "an object",
    ),
    "reset that is a number": (
        [{"op": "record", "mm_cache": {"reset": 1}}],
        2,
        "mm_cache.reset",
        "true or false",
    ),
    "latency of a wrong type": (
        [{"op": "record", "iteration": {"inter_token_latencies_iter": [0.1, None]}}],
        2,
        "iteration.inter_token_latencies_iter[1]",
        "Infinity",
    ),
    "unknown finish reason of a record": (
        [finished(finish_reason="done")],
        2,
        "iteration.finished_requests[0].finish_reason",
        '"done"',
        "repetition",
    ),
    "unknown finish reason of an output": (
        [REQUEST, output(finish="eos")],
        3,
        "outputs[0].finish",
        '"eos"',
        "stop, length, abort",
    ),
    "request without id": (
        [{"op": "request", "arrival": 1.0, "prompt_len": 1}],
        2,
        "id",
        "missing",
    ),
    "output entry without id": (
        [{**OUTPUT, "outputs": [{"id": "r1"}, {"tokens": 1}]}],
        2,
        "outputs[1].id",
        "missing",
    ),
    "unknown event name": (
        [REQUEST, output(events=[["queued", 1.0], ["started", 2.0]])],
        3,
        "outputs[0].events[1][0]",
        '"started"',
        "preempted",
    ),
    "event without timestamp": (
        [REQUEST, output(events=[["queued"]])],
        3,
        "outputs[0].events[0]",
        "timestamp",
    ),
    "prefill of two numbers": (
        [REQUEST, output(prefill=[1, 2])],
        3,
        "outputs[0].prefill",
        "external cached",
    ),
    "parent of no children": (
        [{**REQUEST, "parent": ["p", 0]}],
        2,
        "parent[1]",
        "1 or more",
    ),
    "parents that disagree": (
        [{**REQUEST, "parent": ["p", 2]}, {**REQUEST, "id": "r2", "parent": ["p", 3]}],
        3,
        "parent[1]",
        "n = 2",
    ),
    "request that runs already": ([REQUEST, REQUEST], 3, "id", '"r1"'),
    "abort without ids": ([{"op": "abort"}], 2, "ids", "missing"),
    "sleep without state": ([{"op": "sleep", "level": 1}], 2, "sleep", "missing"),
    "unknown call of a block": (
        [{"op": "kv_block", "event": "free", "block": 1}],
        2,
        "event",
        '"free"',
        "evict",
    ),
    "block that no pool has": (
        [{"op": "kv_block", "event": "alloc", "block": -1}],
        2,
        "block",
        "-1",
        "0 to",
    ),
    "adapters as a list": (
        [{"op": "record", "scheduler": {"running_lora_adapters": ["a"]}}],
        2,
        "scheduler.running_lora_adapters",
        "an object",
    ),
    "adapter without a count": (
        [{"op": "record", "scheduler": {"waiting_lora_adapters": {"a": None}}}],
        2,
        "scheduler.waiting_lora_adapters.a",
        "whole number",
    ),
    "draft of one number": (
        [{"op": "record", "scheduler": {"spec_decoding_stats": {"drafts": [[1]]}}}],
        2,
        "scheduler.spec_decoding_stats.drafts[0]",
        "accepted tokens",
    ),
    "four reuse gaps": (
        [
            {
                "op": "record",
                "scheduler": {
                    "kv_cache_eviction_events": [{"reuse_gaps_seconds": [1, 2, 3, 4]}]
                },
            }
        ],
        2,
        "scheduler.kv_cache_eviction_events[0].reuse_gaps_seconds",
        "3 at most",
    ),
    "transfer of a wrong type": (
        [
            {
                "op": "record",
                "scheduler": {"kv_connector_stats": {"transfer_duration": ["1"]}},
            }
        ],
        2,
        "scheduler.kv_connector_stats.transfer_duration[0]",
        "a number",
    ),
    "request of no tokens to estimate": (
        [{"op": "record", "scheduler": {"perf_stats": {"new": [5]}}}],
        2,
        "scheduler.perf_stats.new[0]",
        "already computed",
    ),
    "estimate without a model": (
        [{"op": "record", "scheduler": {"perf_stats": {"cached": []}}}],
        2,
        "scheduler.perf_stats",
        '"model"',
    ),
    "runtime mode that is a number": (
        [{"op": "record", "scheduler": {"cudagraph_stats": {"runtime_mode": 1}}}],
        2,
        "scheduler.cudagraph_stats.runtime_mode",
        "text",
    ),
    "abort of a number": ([{"op": "abort", "ids": [7]}], 2, "ids[0]", "text"),
}

# Fields of the configuration, and what the message has to say.
BAD_CONFIGS = {
    "format 2": ({"format": 2}, "format", "2", "1"),
    "no format": ({"format": None}, "format"),
    "unknown profile": ({"profile": "0.12"}, "profile", '"0.12"', "0.30"),
    "unknown logger": ({"logger": "both"}, "logger", '"both"', "aggregated"),
    "max_model_len 0": ({"max_model_len": 0}, "max_model_len", "0"),
    "max_model_len as text": ({"max_model_len": "4k"}, "max_model_len", "whole"),
    "empty model name": ({"model_name": ""}, "model_name"),
    "engine index as text": ({"engine_indexes": [0, "1"]}, "engine_indexes[1]"),
    "engine index twice": ({"engine_indexes": [3, 3]}, "engine_indexes", "3"),
    "lora without max_loras": ({"lora": {}}, "lora.max_loras", "missing"),
    "lora with max_loras 0": ({"lora": {"max_loras": 0}}, "max_loras", "0"),
    "speculative as a number": ({"speculative": 3}, "speculative", "an object"),
    "unknown connector": ({"kv_connector": "x"}, "kv_connector", '"x"', "nixl"),
    "cudagraph without mode": ({"cudagraph": {}}, "cudagraph.mode", "missing"),
    "model without hf": ({"model": {"vocab_size": 1}}, "model.hf", "missing"),
    "model without layers": (
        {"model": {"vocab_size": 1, "hidden_size": 1, "hf": {}}},
        "model: ",
        "num_hidden_layers = 0",
    ),
    "diffusion that is a number": ({"is_diffusion": 1}, "is_diffusion", "true"),
    "client_count 0": ({"client_count": 0}, "client_count", "0"),
    "cache_config as an object": ({"cache_config": {"a": "b"}}, "cache_config"),
    "cache_config with a number": (
        {"cache_config": [["block_size", 16]]},
        "cache_config[0][1]",
        "text",
    ),
}


class BadTraces(unittest.TestCase):
    program = None

    def replay(self, *arguments):
        return subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, timeout=60
        )

    def check(self, text, *said, place):
        """`text` as a trace fails with status 2 and a message at `place`."""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "bad.jsonl"
            trace.write_text(text, "utf-8")
            result = self.replay(str(trace))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        lines = [line for line in result.stderr.splitlines() if "warning" not in line]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(f"{trace}{place}: ", lines[0])
        for words in said:
            self.assertIn(words, lines[0])

    def test_bad_lines(self):
        for name, (lines, number, *said) in BAD_LINES.items():
            with self.subTest(name):
                text = "\n".join(json.dumps(line) for line in [CONFIG, *lines])
                self.check(text, *said, place=f":{number}")

    def test_bad_configurations(self):
        for name, (fields, *said) in BAD_CONFIGS.items():
            with self.subTest(name):
                self.check(json.dumps({**CONFIG, **fields}), *said, place=":1")

    def test_missing_fields_of_the_configuration(self):
        for name in ["format", "model_name", "max_model_len"]:
            with self.subTest(name):
                config = {k: v for k, v in CONFIG.items() if k != name}
                self.check(json.dumps(config), name, "missing", place=":1")

    def test_text_that_is_not_json_is_named_with_its_column(self):
        text = json.dumps(CONFIG) + '\n{"op":"log",}\n'
        self.check(text, "}", "JSON", place=":2:13")

    def test_a_line_that_was_cut_off_is_not_json(self):
        self.check('{"op":"config","format', "JSON", place=":1:23")

    def test_a_number_beyond_all_doubles_is_not_json(self):
        text = json.dumps(CONFIG) + '\n{"op":"log","wall":1e999}\n'
        self.check(text, "1e999", place=":2")

    def test_bytes_that_are_not_utf_8_are_refused_and_shown_as_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "bad.jsonl"
            trace.write_bytes(json.dumps(CONFIG).encode() + b'\n{"op":"\xc3("}')
            result = self.replay(str(trace))
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"{trace}:2:", result.stderr)
        self.assertIn("not JSON", result.stderr)
        self.assertIn("\ufffd", result.stderr)

    def test_blank_lines_count_as_lines(self):
        text = "\n\n" + json.dumps(CONFIG) + "\r\n\r\n" + '{"op":"?"}'
        self.check(text, "op", place=":5")

    def test_a_trace_without_config_line(self):
        self.check('{"op":"log"}', "op", "config", place=":1")

    def test_an_empty_trace(self):
        self.check("", "empty", "config", place="")
        self.check("\n \n", "empty", "config", place="")

    def test_an_unknown_field_is_named_once_and_not_read(self):
        lines = [CONFIG, {"op": "log", "colour": 1}, {"op": "log", "colour": 2}]
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "new.jsonl"
            trace.write_text("\n".join(json.dumps(line) for line in lines))
            result = self.replay(str(trace))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("colour"), 1)
        self.assertIn(f"{trace}:2: warning: colour", result.stderr)

    def test_files_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in [folder + "/none.jsonl", folder]:
                result = self.replay(path)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(path, result.stderr)

    def test_a_file_that_cannot_be_written_is_another_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "good.jsonl"
            trace.write_text(json.dumps(CONFIG))
            for option in ["--page", "--log", "--snapshot"]:
                result = self.replay(option, folder + "/no/file", str(trace))
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("/no/file", result.stderr)
            for option in ["--page", "--snapshot"]:
                result = self.replay(option, "/dev/full", str(trace))
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("/dev/full", result.stderr)

    def test_usage(self):
        for arguments in [[], ["a", "b"], ["--page"], ["--pages", "x", "a"]]:
            with self.subTest(arguments):
                result = self.replay(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertIn("usage: vllm-metrics-replay", result.stderr)
        self.assertEqual(self.replay("--help").returncode, 0)
        self.assertIn("--snapshot", self.replay("--help").stdout)
        self.assertRegex(self.replay("--version").stdout, r"\d+\.\d+\.\d+")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    BadTraces.program = arguments.build_dir / "bin" / "vllm-metrics-replay"
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
