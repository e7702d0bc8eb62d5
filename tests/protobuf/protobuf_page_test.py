"""Protobuf's own code, made from the published schema, reads our pages: of every
golden trace all that the text page says, of native histograms all counts, and the
exemplars of the OpenMetrics page."""

import argparse
import importlib
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import debian_python  # noqa: E402

debian_python.needs("google.protobuf")
import google.protobuf  # noqa: E402, F401

SCHEMA = pathlib.Path(
    "/usr/share/gocode/src/github.com/prometheus/client_model"
    "/io/prometheus/client/metrics.proto"
)
COUNTER, GAUGE, HISTOGRAM = 0, 1, 4


def delimited(data):
    """The messages of a page, whose lengths are varints."""
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            length |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if byte < 0x80:
                break
        yield data[at : at + length]
        at += length


def number(value):
    return "NaN" if math.isnan(value) else float(value)


def samples_of(families):
    """Name and labels to value, as the text page has them."""
    samples = {}
    for family in families:
        for metric in family.metric:
            labels = {pair.name: pair.value for pair in metric.label}

            def add(suffix, value, **more):
                key = (family.name + suffix, frozenset({**labels, **more}.items()))
                assert key not in samples, key
                samples[key] = number(value)

            if family.type == COUNTER:
                add("", metric.counter.value)
            elif family.type == GAUGE:
                add("", metric.gauge.value)
            else:
                add("_count", metric.histogram.sample_count)
                add("_sum", metric.histogram.sample_sum)
                for bucket in metric.histogram.bucket:
                    le = bucket.upper_bound
                    add("_bucket", bucket.cumulative_count, le=number(le))
    return samples


def samples_of_text(page):
    """The same of a text page, read by its lines."""
    samples = {}
    for line in page.splitlines():
        if not line or line.startswith("#"):
            continue
        series, value = line.rsplit(" ", 1)
        name, _, rest = series.partition("{")
        labels = {}
        while rest and rest != "}":
            label, _, rest = rest.partition('="')
            text = ""
            while rest[0] != '"':
                if rest[0] == "\\":
                    text += {"n": "\n"}.get(rest[1], rest[1])
                    rest = rest[2:]
                else:
                    text += rest[0]
                    rest = rest[1:]
            labels[label.lstrip(",")] = text
            rest = rest[1:]
        if name.endswith("_bucket"):
            labels["le"] = number(float(labels["le"]))
        samples[name, frozenset(labels.items())] = number(float(value))
    return samples


def exemplars_of(families):
    """Name, labels and bound to trace, span and request id, value and
    milliseconds."""
    found = {}
    for family in families:
        for metric in family.metric:
            labels = {pair.name: pair.value for pair in metric.label}
            for bucket in metric.histogram.bucket:
                if not bucket.HasField("exemplar"):
                    continue
                exemplar = bucket.exemplar
                names = [pair.name for pair in exemplar.label]
                assert names == ["trace_id", "span_id", "request_id"], names
                ids = [pair.value for pair in exemplar.label]
                time = exemplar.timestamp
                assert time.nanos % 1_000_000 == 0, time
                milliseconds = time.seconds * 1000 + time.nanos // 1_000_000
                key = (family.name, labels["engine"], number(bucket.upper_bound))
                found[key] = (*ids, exemplar.value, milliseconds)
    return found


def exemplars_of_text(page):
    """The same of an OpenMetrics page."""
    pattern = (
        r'^(\S+)_bucket\{engine="(\w+)",le="([^"]+)".* '
        r'# \{trace_id="(\w+)",span_id="(\w+)",request_id="([^"]+)"\} (\S+) (\d+)\.(\d{3})$'
    )
    return {
        (name, engine, number(float(le))): (*ids, float(value), int(s + ms))
        for name, engine, le, *ids, value, s, ms in re.findall(
            pattern, page, re.MULTILINE
        )
    }


def native_buckets(histogram):
    """Index to count, from spans and deltas."""
    buckets = {}
    deltas = iter(histogram.positive_delta)
    count = index = 0
    for span in histogram.positive_span:
        index += span.offset
        for _ in range(span.length):
            count += next(deltas)
            if count:
                buckets[index] = count
            index += 1
    assert next(deltas, None) is None
    return buckets


class Pages(unittest.TestCase):
    writer = None
    golden = None
    metrics = None
    maxDiff = None

    def families(self, *arguments):
        done = subprocess.run(
            [self.writer, *arguments], check=True, capture_output=True, timeout=60
        )
        families = []
        for message in delimited(done.stdout):
            family = self.metrics.MetricFamily()
            family.ParseFromString(message)
            families.append(family)
        return families, done.stderr.decode()

    def test_every_value_is_that_of_the_text_page(self):
        pages = sorted(self.golden.glob("*.expected.prom"))
        self.assertGreater(len(pages), 5)
        for page in pages:
            with self.subTest(page=page.name):
                families, _ = self.families(page)
                text = page.read_text("utf-8")
                self.assertEqual(samples_of(families), samples_of_text(text))
                types = {"counter": COUNTER, "gauge": GAUGE, "histogram": HISTOGRAM}
                for family in families:
                    kind = text.split(f"# TYPE {family.name} ")[1].split("\n")[0]
                    self.assertEqual(family.type, types[kind], family.name)

    def test_native_histograms_say_what_was_counted(self):
        families, expected = self.families("--native")
        lines = expected.splitlines()
        self.assertEqual(len(families), len(lines))
        for family, line in zip(families, lines):
            with self.subTest(family=family.name):
                count, total, schema, threshold, zeros, *buckets = line.split()
                histogram = family.metric[0].histogram
                self.assertEqual(histogram.sample_count, int(count))
                self.assertEqual(histogram.sample_sum, float(total))
                self.assertEqual(histogram.schema, int(schema))
                self.assertEqual(histogram.zero_threshold, float(threshold))
                self.assertEqual(histogram.zero_count, int(zeros))
                found = native_buckets(histogram)
                self.assertEqual(
                    found, {int(i): int(n) for i, n in (b.split(":") for b in buckets)}
                )
                self.assertEqual(
                    sum(found.values()) + histogram.zero_count, int(count)
                )
                # Either of them is how a reader tells it from a classic one.
                self.assertTrue(histogram.zero_threshold or histogram.positive_span)

    def test_gaps_of_more_than_two_buckets_are_no_counts(self):
        families, _ = self.families("--native")
        gaps = next(f for f in families if f.name == "gaps").metric[0].histogram
        # 1.0, 1.1 and 1.4 are buckets 0, 2 and 4; 2.0 is 8.
        lengths = [span.length for span in gaps.positive_span]
        self.assertEqual(lengths, [1, 5, 1, 1, 1])

    def test_exemplars_are_those_of_the_open_metrics_page(self):
        families, page = self.families("--exemplars")
        expected = exemplars_of_text(page)
        self.assertGreater(len(expected), 5)
        self.assertEqual(len(expected), page.count("trace_id"))
        self.assertEqual(exemplars_of(families), expected)
        latency = next(
            f for f in families if f.name == "vllm:e2e_request_latency_seconds"
        )
        self.assertTrue(latency.metric[0].histogram.positive_span)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    Pages.writer = options.build_dir / "tests" / "protobuf_page"
    Pages.golden = options.source_dir / "tests" / "golden"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["protoc", "--proto_path=/usr/include", f"--proto_path={SCHEMA.parent}"]
            + [f"--python_out={folder}", SCHEMA.name],
            check=True,
            timeout=60,
        )
        sys.path.insert(0, folder)
        Pages.metrics = importlib.import_module("metrics_pb2")
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
