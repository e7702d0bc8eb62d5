"""OTLP's data in its JSON form, for tests of what arrives and of what is written."""

import argparse
import base64
import functools
import importlib
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import debian_python  # noqa: E402

# Import this module before any of them.
debian_python.needs("google.protobuf", "prometheus_client")
import google.protobuf  # noqa: E402, F401
from prometheus_client import parser  # noqa: E402
from prometheus_client.openmetrics import parser as openmetrics  # noqa: E402

TIME_LIMIT = 60


class OtlpTest(unittest.TestCase):
    build_dir = None
    source_dir = None

    @property
    def program(self):
        return self.build_dir / "tests" / "otlp_push"

    @classmethod
    def schema_folder(cls):
        """Where `./dev test` puts the .proto files of OpenTelemetry, or None."""
        found = sorted((cls.source_dir / "build").glob(
            "otlp-schema/package/build/protos"))
        return found[0] if found else None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build-dir", type=pathlib.Path, required=True)
    arguments.add_argument("--source-dir", type=pathlib.Path, required=True)
    options, rest = arguments.parse_known_args()
    OtlpTest.build_dir = options.build_dir
    OtlpTest.source_dir = options.source_dir
    unittest.main(argv=[sys.argv[0], *rest])


class Schema:
    """The messages of OpenTelemetry, made from its .proto files."""

    def __init__(self):
        folder = OtlpTest.schema_folder()
        if folder is None:
            raise unittest.SkipTest(
                "OpenTelemetry's schema is not there; `./dev test` gets it with "
                "npm, if there is one")
        with tempfile.TemporaryDirectory() as made:
            subprocess.run(
                ["protoc", f"--python_out={made}", f"-I{folder}",
                 *sorted(pathlib.Path(folder).rglob("*.proto"))], check=True)
            sys.path.insert(0, made)
            base = "opentelemetry.proto.collector"
            self.metrics = importlib.import_module(
                f"{base}.metrics.v1.metrics_service_pb2"
            ).ExportMetricsServiceRequest
            self.traces = importlib.import_module(
                f"{base}.trace.v1.trace_service_pb2").ExportTraceServiceRequest
            sys.path.remove(made)


@functools.cache
def schema():
    return Schema()


def attributes(part, name="attributes"):
    values = {}
    for pair in part.get(name, ()):
        ((kind, value),) = pair["value"].items()
        values[pair["key"]] = int(value) if kind == "intValue" else value
    return values


def metrics_of(request):
    """{name: metric} of an export."""
    (resource,) = request["resourceMetrics"]
    sender = attributes(resource["resource"])
    assert len(sender.pop("service.instance.id")) == 36, resource
    assert sender == {"service.name": "test"}, resource
    (scope,) = resource["scopeMetrics"]
    assert scope["scope"]["name"] == "vllm_metrics", scope["scope"]
    return {metric["name"]: metric for metric in scope["metrics"]}


def data_of(metric):
    """The kind of a metric, and what there is of it."""
    for kind in "gauge", "sum", "histogram", "exponentialHistogram":
        if kind in metric:
            return kind, metric[kind]
    raise AssertionError(f"no data: {metric}")


def number(text):
    return float(text.replace("Infinity", "inf") if isinstance(text, str) else text)


def samples(metric):
    """The samples that a page would have of a metric: {(name, labels): value}."""
    kind, data = data_of(metric)
    found = {}
    for point in data["dataPoints"]:
        labels = attributes(point)

        def put(suffix, value, **more):
            key = (metric["name"] + suffix, frozenset({**labels, **more}.items()))
            assert key not in found, key
            found[key] = float(value)

        if kind in ("sum", "gauge"):
            put("", number(point.get("asInt", point.get("asDouble"))))
            continue
        put("_count", int(point.get("count", 0)))
        put("_sum", number(point.get("sum", 0)))
        if kind == "histogram":
            below = 0
            bounds = [*point["explicitBounds"], float("inf")]
            for bound, count in zip(bounds, point["bucketCounts"], strict=True):
                below += int(count)
                le = "+Inf" if bound == float("inf") else str(float(bound))
                put("_bucket", below, le=le)
        else:
            assert int(point.get("count", 0)) == int(point.get("zeroCount", 0)) + sum(
                int(n) for n in point.get("positive", {}).get("bucketCounts", ()))
    return found


def hex_id(text):
    """An id as it is in a file, or in base64, as protobuf's JSON has bytes."""
    is_hex = len(text) in (16, 32) and not text.endswith("=")
    return text if is_hex else base64.b64decode(text).hex()


def exemplars(metric):
    """(name, labels, trace, span, request, value, milliseconds) of each."""
    found = set()
    for point in data_of(metric)[1]["dataPoints"]:
        for one in point.get("exemplars", ()):
            found.add((metric["name"], frozenset(attributes(point).items()),
                       hex_id(one["traceId"]), hex_id(one["spanId"]),
                       attributes(one, "filteredAttributes")["request_id"],
                       number(one["asDouble"]),
                       round(int(one["timeUnixNano"]) / 1e6)))
    return found


def page_exemplars(page):
    """Those of a page of OpenMetrics."""
    found = set()
    for family in openmetrics.text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.exemplar is not None:
                labels = {k: v for k, v in sample.labels.items() if k != "le"}
                ids, value, time = sample.exemplar
                found.add((family.name, frozenset(labels.items()),
                           ids["trace_id"], ids["span_id"], ids["request_id"], value,
                           round(float(time) * 1e3)))
    return found


def page_samples(page):
    """Those of a page of text."""
    return {(name, frozenset(labels.items())): value
            for family in parser.text_string_to_metric_families(page)
            for name, labels, value, *_ in family.samples
            if not name.endswith("_created")}


def compare(test, pages, metrics):
    """Every number is that of the pages, and there is no other."""
    open_metrics, eof, page = pages.partition("# EOF\n")
    shown = page_exemplars(open_metrics + eof)
    test.assertGreaterEqual(len(shown), 7)
    compare_gen_ai(test, page_samples(page), metrics)
    metrics = {k: v for k, v in metrics.items() if not k.startswith("gen_ai.")}
    told = [exemplars(metric) for metric in metrics.values()]
    test.assertEqual(set().union(*told), shown)
    expected = page_samples(page)
    found = {}
    for metric in metrics.values():
        found.update(samples(metric))
        if "exponentialHistogram" in metric:
            bucket = metric["name"] + "_bucket"
            expected = {k: v for k, v in expected.items() if k[0] != bucket}
    test.assertGreater(len(expected), 300)
    test.assertEqual(found.keys(), expected.keys())
    for key, value in expected.items():
        test.assertEqual(found[key], value, key)


# What the page calls the metrics of the conventions.
GEN_AI = {
    ("gen_ai.server.request.duration", None): "vllm:e2e_request_latency_seconds",
    ("gen_ai.server.time_to_first_token", None): "vllm:time_to_first_token_seconds",
    ("gen_ai.server.time_per_output_token", None):
        "vllm:request_time_per_output_token_seconds",
    ("gen_ai.client.token.usage", "input"): "vllm:request_prompt_tokens",
    ("gen_ai.client.token.usage", "output"): "vllm:request_generation_tokens",
}


def compare_gen_ai(test, expected, metrics):
    """Every number of a metric of the conventions is that of its histogram."""
    found = set()
    for name in {name for name, _ in GEN_AI}:
        test.assertEqual(metrics[name]["unit"],
                         "{token}" if "usage" in name else "s")
        for point in metrics[name]["histogram"]["dataPoints"]:
            said = attributes(point)
            kind = said.pop("gen_ai.token.type", None)
            found.add((name, kind))
            labels = frozenset({"engine": said.pop("vllm_metrics.engine"),
                                "model_name": said["gen_ai.request.model"]}.items())
            test.assertEqual(said, {
                "gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm",
                "gen_ai.request.model": "tiny-1b",
                "gen_ai.response.model": "tiny-1b"})
            family = GEN_AI[name, kind]
            test.assertEqual(int(point["count"]), expected[family + "_count", labels])
            test.assertEqual(number(point["sum"]), expected[family + "_sum", labels])
            below = 0
            bounds = [*map(str, map(float, point["explicitBounds"])), "+Inf"]
            for bound, count in zip(bounds, point["bucketCounts"], strict=True):
                below += int(count)
                key = family + "_bucket", labels | {("le", bound)}
                test.assertEqual(below, expected[key])
    test.assertEqual(found, set(GEN_AI))
