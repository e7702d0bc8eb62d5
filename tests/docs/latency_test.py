"""The timeline of docs/latency.md is what the library observes."""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile

import pages

WALL, MONO = 1700000000.0, 1000.0


def trace(drawn):
    """The drawn request as a trace, one output for each of its tokens."""
    yield {"op": "config", "format": 1, "profile": "0.30", "vllm_version": "0.30.0",
           "model_name": "drawn", "max_model_len": 4096, "engine_indexes": [0],
           "logger": "none", "wall": WALL, "mono": MONO}  # fmt: skip
    yield {"op": "request", "id": "a", "arrival": WALL, "prompt_len": 3000}
    for token in drawn.TOKENS:
        output = {"id": "a", "tokens": 1}
        if token == drawn.FIRST:
            events = [("queued", drawn.QUEUED), ("scheduled", drawn.SCHEDULED)]
            output["events"] = [[what, MONO + at / 1000] for what, at in events]
            output["prefill"] = [3000, 0, 0]
        if token == drawn.LAST:
            output["finish"] = "stop"
        yield {"op": "output", "engine": 0, "wall": WALL + (token + drawn.FRONT_END) / 1000,
               "ts": MONO + token / 1000, "outputs": [output]}  # fmt: skip


class Latency(pages.PagesTest):
    @classmethod
    def setUpClass(cls):
        cls.script = cls.project.source_dir / "docs" / "draw_latency.py"
        spec = importlib.util.spec_from_file_location("draw_latency", cls.script)
        cls.drawn = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.drawn)

    def test_the_drawing_is_that_of_the_script(self):
        done = subprocess.run(
            [sys.executable, self.script, "--check"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_library_observes_what_is_drawn(self):
        replay = self.project.program("vllm-metrics-replay")
        if replay is None:
            self.skipTest("vllm-metrics-replay is not built")
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps(line) + "\n" for line in trace(self.drawn))
            file.flush()
            page = subprocess.run(
                [replay, file.name],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout
        for name, drawn in self.drawn.LATENCIES.items():
            samples = drawn if isinstance(drawn, list) else [drawn]
            found = {
                which: float(value)
                for which, value in re.findall(
                    rf"^vllm:{name}_seconds_(count|sum){{[^}}]*}} (\S+)$", page, re.M
                )
            }
            with self.subTest(name=name):
                self.assertEqual(found["count"], len(samples))
                self.assertAlmostEqual(found["sum"], sum(samples) / 1000, 6)

    def test_the_table_has_the_drawn_values(self):
        text = (self.script.parent / "latency.md").read_text("utf-8")
        rows = dict(re.findall(r"^\| `vllm:(\w+)_seconds` \|.*\| (.+?) ms \|$", text, re.M))
        expected = {
            name: ", ".join(f"{v:g}" for v in (value if isinstance(value, list) else [value]))
            for name, value in self.drawn.LATENCIES.items()
        }
        self.assertEqual(rows, expected)


if __name__ == "__main__":
    pages.main()
