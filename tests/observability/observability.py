"""What the tests of examples/observability share: its files, the catalogue, and
the names in PromQL."""

import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
import unittest

import yaml

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<range>\[[^\]]*\])"""
    r"|(?P<number>\b\d[\w.]*)|(?P<name>[A-Za-z_:][\w:]*)|(?P<sign>[^\s\w])"
)
_OF_LABELS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_WORDS = _OF_LABELS | {"and", "or", "unless", "bool", "offset", "inf", "nan"}


class Expression:
    """Names in a PromQL expression: `selectors` is a list of (metric, labels that
    are matched), `grouping` all labels in by(), on() and their like."""

    def __init__(self, text):
        self.text = text
        self.selectors = []
        self.grouping = set()
        tokens = [match for match in _TOKEN.finditer(text)]
        words = [match.group() for match in tokens] + ["", ""]
        braces, of_labels, parens = False, None, 0
        for i, match in enumerate(tokens):
            word, after = words[i], words[i + 1]
            parens += (word == "(") - (word == ")")
            braces = (braces or word == "{") and word != "}"
            if of_labels is not None and parens < of_labels:
                of_labels = None
            if match["name"] is None:
                continue
            if word in _OF_LABELS:
                of_labels = parens + 1 if after == "(" else None
            elif of_labels is not None:
                self.grouping.add(word)
            elif braces:
                self.selectors[-1][1].add(word)
            elif word.lower() not in _WORDS and after != "(" and not self._is_function(
                word, words[i + 1 :]
            ):
                self.selectors.append((word, set()))

    @staticmethod
    def _is_function(word, rest):
        return rest[0] in ("by", "without")

    @property
    def metrics(self):
        return {name for name, _ in self.selectors}


class Project:
    """Files and programs; set by main() before the tests run."""

    def __init__(self, build_dir, source_dir):
        self.build_dir = build_dir
        self.source_dir = source_dir
        self.examples = source_dir / "examples" / "observability"
        self.rule_files = [
            self.examples / "prometheus" / name
            for name in ("recording.yml", "alerts.yml", "hardware.yml")
        ]

    @functools.cached_property
    def _groups(self):
        return [
            group
            for file in self.rule_files
            for group in yaml.safe_load(file.read_text("utf-8"))["groups"]
        ]

    @property
    def rule_groups(self):
        return [group["name"] for group in self._groups]

    @property
    def rules(self):
        """Of all files, in their order."""
        return [rule for group in self._groups for rule in group["rules"]]

    @property
    def alerts(self):
        return [rule for rule in self.rules if "alert" in rule]

    @property
    def autoscaler_queries(self):
        """PromQL of KEDA's triggers and of the Prometheus adapter's rules."""
        folder = self.examples / "kubernetes"
        keda = yaml.safe_load((folder / "keda.yml").read_text("utf-8"))
        for trigger in keda["spec"]["triggers"]:
            yield trigger["metadata"]["query"].replace('{namespace="inference"}', "")
        adapter = yaml.safe_load((folder / "prometheus-adapter.yml").read_text("utf-8"))
        for rule in adapter["rules"]["custom"]:
            series = rule["seriesQuery"].split("{")[0]
            query = rule["metricsQuery"].replace("<<.Series>>", series)
            query = query.replace("<<.GroupBy>>", "instance")
            yield query.replace("<<.LabelMatchers>>", 'instance!=""')

    @functools.cached_property
    def metrics(self):
        """The families of the library, as vllm-metrics-docgen has them."""
        done = subprocess.run(
            [self.build_dir / "bin" / "vllm-metrics-docgen", "--json"],
            capture_output=True,
            check=True,
            timeout=60,
        )
        return json.loads(done.stdout)["metrics"]

    @functools.cached_property
    def catalogue(self):
        """Sample name -> its labels."""
        samples = {}
        for metric in self.metrics:
            labels = set(metric["labels"])
            if metric["type"] == "histogram":
                samples[metric["name"] + "_bucket"] = labels | {"le"}
                samples[metric["name"] + "_count"] = labels
                samples[metric["name"] + "_sum"] = labels
            else:
                samples[metric["name"]] = labels
        return samples


class ObservabilityTest(unittest.TestCase):
    project = None
    maxDiff = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    ObservabilityTest.project = Project(
        arguments.build_dir.resolve(), arguments.source_dir.resolve()
    )
    unittest.main(argv=[sys.argv[0], *rest])
