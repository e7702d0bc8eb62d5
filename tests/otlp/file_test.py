"""The lines of files, read with Python's json and with OpenTelemetry's schema."""

import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile

import otlp_data
from google.protobuf import json_format

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class FileTest(otlp_data.OtlpTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def export(self, *arguments, folder=None, before=None, **variables):
        done = subprocess.run(
            [self.program, folder or self.folder.name, *map(str, arguments)],
            env={**os.environ, **variables}, capture_output=True, text=True,
            timeout=otlp_data.TIME_LIMIT, check=True, preexec_fn=before)
        page, _, taken = done.stdout.rpartition("taken ")
        return page, taken.split(), done.stderr

    def lines(self, name):
        text = self.path(name).read_bytes()
        self.assertTrue(text.endswith(b"\n"))
        return [json.loads(line, object_pairs_hook=self.named_once)
                for line in text.decode("utf-8").splitlines()]

    def named_once(self, pairs):
        self.assertEqual(len(dict(pairs)), len(pairs), pairs)
        return dict(pairs)

    def test_every_number_of_the_first_line_is_that_of_the_page(self):
        for temporality in "cumulative", "delta":
            page, taken, _ = self.export(
                OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=temporality)
            self.assertEqual(taken, ["1", "1"])
            first, last = self.lines("metrics.jsonl")  # that of shutdown()
            self.assertEqual(list(first), ["resourceMetrics"])
            otlp_data.compare(self, page, otlp_data.metrics_of(first))
            otlp_data.metrics_of(last)
            self.path("metrics.jsonl").unlink()

    def test_the_reference_has_every_name_with_its_kind_and_unit(self):
        page = (self.source_dir / "docs/opentelemetry_metrics.md").read_text("utf-8")
        rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", page, re.M))
        self.export()
        first, _ = self.lines("metrics.jsonl")
        metrics = otlp_data.metrics_of(first)
        self.assertGreater(len(metrics), 30)
        for name, metric in metrics.items():
            kind, data = otlp_data.data_of(metric)
            if name.startswith("gen_ai."):
                self.assertIn(f"`{metric['unit']}` | ", rows[name])
                continue
            if kind == "sum":
                kind = ("Sum, integers" if "asInt" in data["dataPoints"][0]
                        else "Sum, doubles")
            self.assertEqual(
                rows[name].lower(),
                f"{kind} | `{metric['unit']}`".lower().replace("exponential", ""))

    def test_spans_have_ids_in_hex_and_times_as_text(self):
        self.export()
        (line,) = self.lines("traces.jsonl")
        root, *phases = [s for s in spans_of(line) if s["traceId"] == TRACE]
        self.assertEqual(root["parentSpanId"], "00f067aa0ba902b7")
        self.assertEqual(root["kind"], 2)
        self.assertEqual(root["startTimeUnixNano"], "1700000000000000000")
        self.assertEqual([s["name"] for s in phases],
                         ["queue", "prefill", "decode"])
        said = otlp_data.attributes(root)
        self.assertEqual(said["gen_ai.usage.prompt_tokens"], 100)
        self.assertEqual(said["gen_ai.latency.e2e"], 2.0)
        events = [s["events"] for s in spans_of(line) if "events" in s]
        self.assertEqual(len(events), 19)
        self.assertEqual(events[0], [{"timeUnixNano": "1700000002000000000",
                                      "name": "preemption"}])
        for phase in phases:
            self.assertEqual(phase["parentSpanId"], root["spanId"])
            self.assertRegex(phase["spanId"], "^[0-9a-f]{16}$")

    def test_the_schema_reads_every_line_and_finds_the_same(self):
        schema = otlp_data.schema()
        page, _, _ = self.export()
        parsed = []
        for line in self.path("metrics.jsonl").read_text("utf-8").splitlines():
            # This schema is older than the field.
            line = re.sub(r',"zeroThreshold":[^,}]*', "", line)
            parsed.append(json_format.MessageToDict(
                json_format.Parse(line, schema.metrics())))
        otlp_data.compare(self, page, otlp_data.metrics_of(parsed[0]))
        (line,) = self.lines("traces.jsonl")
        again = json_format.MessageToDict(
            json_format.ParseDict(line, schema.traces()))
        for said, read in zip(spans_of(line), spans_of(again), strict=True):
            for name in "name", "startTimeUnixNano", "endTimeUnixNano":
                self.assertEqual(read[name], said[name])
            self.assertEqual(otlp_data.attributes(read),
                             otlp_data.attributes(said))

    def test_a_file_grows_to_its_bound_and_one_old_one_is_kept(self):
        for _ in range(3):
            self.export(60_000)
        for name in "metrics.jsonl", "traces.jsonl":
            for part in name, name + ".1":
                self.assertTrue(self.lines(part))
                self.assertLessEqual(self.path(part).stat().st_size, 60_000)

    def test_a_disk_that_is_full_costs_a_line_and_leaves_no_half_one(self):
        self.export()
        before = self.path("metrics.jsonl").read_bytes()
        bound = len(before) + 1000  # in the middle of a line
        _, taken, log = self.export(
            before=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (bound, resource.RLIM_INFINITY)))
        self.assertEqual(taken, ["0", "0"])
        self.assertEqual(self.path("metrics.jsonl").read_bytes(), before)
        self.assertEqual(log.count("an export of metrics failed: cannot write"), 1)

    def test_a_folder_that_is_missing_is_said_once(self):
        _, taken, log = self.export(folder=str(self.path("none")))
        self.assertEqual(taken, ["0", "0"])
        for signal in "metrics", "traces":
            self.assertEqual(log.count(f"an export of {signal} failed: cannot open "
                                       f"{self.path('none')}/{signal}.jsonl"), 1)

    def test_what_a_process_that_died_left_is_no_line(self):
        self.export()
        whole = self.path("metrics.jsonl").read_bytes()
        half = whole[:len(whole) // 3]
        self.path("metrics.jsonl").write_bytes(whole + half)
        self.export()
        self.assertTrue(self.path("metrics.jsonl").read_bytes().startswith(whole))
        self.assertEqual(len(self.lines("metrics.jsonl")), 4)

    def test_lines_of_several_processes_are_whole(self):
        running = [subprocess.Popen([self.program, self.folder.name],
                                    stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
                   for _ in range(4)]
        for process in running:
            self.assertEqual(process.wait(otlp_data.TIME_LIMIT), 0)
        self.assertEqual(len(self.lines("metrics.jsonl")), 8)
        self.assertEqual(len(self.lines("traces.jsonl")), 4)

    def test_standard_output_can_be_the_file(self):
        done = subprocess.run(
            [self.program, "http://127.0.0.1:1"],
            env={**os.environ, "OTEL_METRICS_EXPORTER": "otlp/stdout",
                 "OTEL_TRACES_EXPORTER": "none"},
            capture_output=True, text=True, timeout=otlp_data.TIME_LIMIT, check=True)
        lines = [line for line in done.stdout.splitlines()
                 if line.startswith('{"resourceMetrics":')]
        self.assertEqual(len(lines), 2)
        for line in lines:
            otlp_data.metrics_of(json.loads(line))


def spans_of(request):
    return request["resourceSpans"][0]["scopeSpans"][0]["spans"]


if __name__ == "__main__":
    otlp_data.main()
