"""lint() beside `promtool check metrics`: on the golden pages and on a page of
mistakes, every remark that promtool makes is made by lint(), too."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

# What promtool says, and the rule of lint() for it.
RULES = (
    (r"no help text", "help"),
    (r".*\"_total\" suffix", "total"),
    (r".*\"_(bucket|count|sum)\" suffix", "suffix"),
    (r".*should not have \"(le|quantile)\" label", "label"),
    (r"metric name should not include type", "type_in_name"),
    (r"use base unit", "base_unit"),
    (r"metric names should not contain abbreviated units", "abbreviation"),
    (r"metric names should not contain ':'", "colon"),
    (r".*'snake_case' not 'camelCase'", "case"),
)

UNITS = (
    "amperes bytes celsius grams joules kelvin meters metres seconds volts minutes "
    "hours days weeks kelvins fahrenheit rankine inches yards miles bits calories "
    "pounds ounces moles watts percent litres years"
).split()
PREFIXES = (
    "pico nano micro milli centi deci deca hecto kilo kibi mega mebi mibi giga gibi "
    "tera tebi peta pebi exa"
).split()
SHORT = "s ms us ns sec b kb mb gb tb pb m h d min kib S Ms".split()
TYPES = "counter gauge histogram summary untyped gauge_histogram info Gauge".split()


def family(name, kind="gauge", labels="", help="Help."):
    lines = [f"# HELP {name} {help}"] if help else []
    return [*lines, f"# TYPE {name} {kind}", f"{name}{labels} 1"]


def page_of_mistakes():
    lines = family("nothing_said", help="")
    for unit in UNITS:
        lines += family(f"a_{unit}") + family(f"{unit}_b_x")
        for prefix in PREFIXES:
            lines += family(f"c_{prefix}{unit}_used")
    for word in [*SHORT, *TYPES]:
        lines += family(f"d_{word}") + family(f"d_{word}_e") + family(f"{word}_f")
        lines += family(f"d{word}")
    for suffix in ("total", "bucket", "count", "sum", "created", "info"):
        for kind in ("counter", "gauge", "untyped"):
            lines += family(f"g_{kind[0]}_x_{suffix}", kind)
    for name in ("le", "quantile", "modelName", "model_Name", "A"):
        for kind in ("counter", "gauge", "untyped"):
            lines += family(f"i_{kind[0]}x_{name}", kind, f'{{{name}="1"}}')
    lines += family("j:k") + family("camelCase") + family("Camel_Case", "untyped")
    lines += ["# HELP l_ms L.", "# TYPE l_ms histogram", 'l_ms_bucket{le="1"} 1',
              'l_ms_bucket{le="+Inf"} 1', "l_ms_sum 1", "l_ms_count 1"]
    lines += ["# HELP m_total M.", "# TYPE m_total summary",
              'm_total{quantile="1"} 1', "m_total_sum 1", "m_total_count 1"]
    return "\n".join(lines) + "\n"


@unittest.skipIf(shutil.which("promtool") is None, "promtool is missing")
class Promtool(unittest.TestCase):
    program = None
    golden = None
    maxDiff = None

    def promtool(self, text):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, text=True,
            capture_output=True, timeout=60)
        found = set()
        for line in done.stderr.splitlines() + done.stdout.splitlines():
            name, said = line.split(" ", 1)
            rules = [rule for pattern, rule in RULES if re.match(pattern, said)]
            self.assertEqual(len(rules), 1, line)
            found.add((name, rules[0]))
        return found

    def ours(self, path):
        done = subprocess.run([self.program, path], text=True, timeout=60,
                              capture_output=True, check=True)
        return {tuple(line.split("\t")[:2]) for line in done.stdout.splitlines()}

    def test_golden_pages(self):
        pages = sorted(self.golden.glob("*.expected.prom"))
        self.assertGreaterEqual(len(pages), 3)
        for page in pages:
            with self.subTest(page.name):
                theirs = self.promtool(page.read_text("utf-8"))
                self.assertGreater(len(theirs), 10)
                self.assertEqual(theirs - self.ours(page), set())

    def test_every_mistake(self):
        text = page_of_mistakes()
        with tempfile.NamedTemporaryFile("w", suffix=".prom") as file:
            file.write(text)
            file.flush()
            ours = self.ours(file.name)
        theirs = self.promtool(text)
        self.assertGreater(len(theirs), 300)
        self.assertEqual({rule for _, rule in theirs}, {rule for _, rule in RULES})
        self.assertEqual(theirs - ours, set())
        # What is left is ours alone.
        self.assertEqual(
            {rule for name, rule in ours - theirs if "mebi" not in name}, {"ratio"})


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build-dir", type=pathlib.Path, required=True)
    arguments.add_argument("--source-dir", type=pathlib.Path, required=True)
    options = arguments.parse_args()
    Promtool.program = options.build_dir / "tests" / "lint_page"
    Promtool.golden = options.source_dir / "tests" / "golden"
    unittest.main(argv=sys.argv[:1])
