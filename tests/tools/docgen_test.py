"""docs/metrics.md is what the catalogue says, and its queries parse."""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest


class DocgenTest(unittest.TestCase):
    program = None
    page = None

    def run_program(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True,
                              check=False, timeout=60)

    def test_the_page_is_not_stale(self):
        checked = self.run_program("--check", self.page)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_the_page_of_opentelemetry_is_not_stale(self):
        page = self.page.parent / "opentelemetry_metrics.md"
        self.assertEqual(self.run_program("--otlp").stdout,
                         page.read_text("utf-8"),
                         f"vllm-metrics-docgen --otlp > {page}")

    def test_a_stale_page_is_told(self):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write("# Metrics\n")
            file.flush()
            checked = self.run_program("--check", file.name)
        self.assertEqual(checked.returncode, 1)
        self.assertIn(f"{file.name} is stale", checked.stderr)
        self.assertEqual(self.run_program("--check", "/no/such/file").returncode, 1)

    def test_json_and_page_name_the_same_families(self):
        reference = json.loads(self.run_program("--json").stdout)
        names = [metric["name"] for metric in reference["metrics"]]
        names += [metric["family"] for metric in reference["gone"]]
        self.assertEqual(len(names), len(set(names)))
        rows = re.findall(r"^\| `([^`]+)` \|", self.page.read_text("utf-8"), re.M)
        self.assertEqual(rows, names)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool (Debian: prometheus)")
    def test_every_query_is_promql(self):
        reference = json.loads(self.run_program("--json").stdout)
        rules = [{"record": f"job:recipe_{i}:x", "expr": metric["promql"]}
                 for i, metric in enumerate(reference["metrics"])]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "recipes", "rules": rules}]}, file)
            file.flush()
            checked = subprocess.run(["promtool", "check", "rules", file.name],
                                     capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_wrong_arguments_get_the_help(self):
        wrong = self.run_program("--bogus")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--check FILE", wrong.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    DocgenTest.program = arguments.build_dir / "bin/vllm-metrics-docgen"
    DocgenTest.page = arguments.source_dir / "docs/metrics.md"
    unittest.main(argv=[__file__, "-v"])
