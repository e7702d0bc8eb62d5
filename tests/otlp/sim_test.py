"""Simulated requests, end to end: the simulator pushes to a collector, and what
arrives is what its page says."""

import collections
import os
import subprocess

import otlp_data
from google.protobuf import json_format
from prometheus_client import parser

import receiver_test

# What a double can tell of a time of today, in nanoseconds.
RESOLUTION = 500


class SimTest(otlp_data.OtlpTest):
    @property
    def sim(self):
        return self.build_dir / "bin" / "vllm-metrics-sim"

    def setUp(self):
        if not self.sim.exists():
            self.skipTest("no vllm-metrics-sim in this build")

    def run_sim(self, *flags, **variables):
        """The page of the end, and the requests that were posted, by path."""
        with receiver_test.Collector() as collector:
            done = subprocess.run(
                [self.sim, "--otlp-endpoint", collector.url, "--speed", "max",
                 "--seconds", "30", "--log-interval", "0", "--page", "-", *flags],
                env={**os.environ, "OTEL_BSP_MAX_QUEUE_SIZE": "65536",
                     "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "65536",
                     "OTEL_SERVICE_NAME": "test", **variables},
                capture_output=True, text=True, check=True,
                timeout=otlp_data.TIME_LIMIT)
            posted = collections.defaultdict(list)
            for path, _, body in collector.requests:
                posted[path].append(body)
        start = done.stdout.index("# HELP")
        page = {}
        for family in parser.text_string_to_metric_families(done.stdout[start:]):
            for name, labels, value, *_ in family.samples:
                labels.pop("le", None)
                page[name, *labels.values()] = value
                page[name] = page.get(name, 0.0) + value
        return page, posted

    def spans(self, posted):
        """Of each request its span, and those under it by name."""
        roots, children = {}, collections.defaultdict(dict)
        for body in posted["/v1/traces"]:
            message = otlp_data.schema().traces()
            message.ParseFromString(body)
            for resource in message.resource_spans:
                for span in resource.scope_spans[0].spans:
                    if span.name == "llm_request":
                        roots[span.trace_id, span.span_id] = span
                    else:
                        children[span.trace_id, span.parent_span_id][span.name] = span
        self.assertEqual(children.keys() - roots.keys(), set())
        return [(root, children[key]) for key, root in roots.items()]

    def test_spans_add_up_to_what_the_histograms_observed(self):
        page, posted = self.run_sim("--num-gpu-blocks", "500", "--rate", "12")
        spans = self.spans(posted)
        self.assertEqual(len(spans), page["vllm:request_success_total"])
        self.assertGreater(len(spans), 50)
        total = collections.Counter()
        count = collections.Counter()
        preemptions = 0
        for root, children in spans:
            at = root.start_time_unix_nano
            for name in "queue", "prefill", "decode":
                span = children[name]
                # One after the other, without a gap but what the front end took.
                self.assertGreaterEqual(span.start_time_unix_nano, at - RESOLUTION)
                if name != "queue":
                    self.assertEqual(span.start_time_unix_nano, at)
                at = span.end_time_unix_nano
                total[name] += at - span.start_time_unix_nano
                count[name] += 1
            self.assertLessEqual(at, root.end_time_unix_nano + RESOLUTION)
            total["e2e"] += root.end_time_unix_nano - root.start_time_unix_nano
            count["e2e"] += 1
            for event in root.events:
                self.assertEqual(event.name, "preemption")
                self.assertGreaterEqual(
                    event.time_unix_nano, children["prefill"].start_time_unix_nano)
                self.assertLessEqual(event.time_unix_nano, root.end_time_unix_nano)
            said = {a.key: a.value.int_value for a in root.attributes}
            self.assertEqual(said["vllm_metrics.num_preemptions"],
                             len(root.events) + root.dropped_events_count)
            preemptions += said["vllm_metrics.num_preemptions"]
        for name, histogram in (
                ("e2e", "vllm:e2e_request_latency_seconds"),
                ("queue", "vllm:request_queue_time_seconds"),
                ("prefill", "vllm:request_prefill_time_seconds"),
                ("decode", "vllm:request_decode_time_seconds")):
            self.assertEqual(count[name], page[histogram + "_count"])
            self.assertAlmostEqual(total[name] / 1e9, page[histogram + "_sum"],
                                   delta=len(spans) * RESOLUTION / 1e9)
        self.assertEqual(preemptions, page["vllm:request_num_preemptions_sum"])
        self.assertGreater(preemptions, 10)

    def test_the_callers_decision_is_honoured(self):
        page, posted = self.run_sim(
            "--exemplars", "--rate", "5", OTEL_TRACES_SAMPLER="parentbased_always_off")
        self.assertEqual(len(self.spans(posted)), page["vllm:request_success_total"])
        for root, _ in self.spans(posted):
            self.assertEqual(len(root.parent_span_id), 8)
        _, posted = self.run_sim(
            "--rate", "5", OTEL_TRACES_SAMPLER="parentbased_always_off")
        self.assertEqual(posted["/v1/traces"], [])

    def test_requests_without_a_caller_are_sampled_by_ratio(self):
        page, posted = self.run_sim(
            "--rate", "40", OTEL_TRACES_SAMPLER="parentbased_traceidratio",
            OTEL_TRACES_SAMPLER_ARG="0.1")
        share = len(self.spans(posted)) / page["vllm:request_success_total"]
        self.assertGreater(share, 0.05)
        self.assertLess(share, 0.15)

    def test_clients_that_give_up_have_a_span_too(self):
        page, posted = self.run_sim("--rate", "30", "--num-gpu-blocks", "500",
                                    "--patience", "5")
        spans = self.spans(posted)
        self.assertEqual(len(spans), page["vllm:request_success_total"])
        ends = collections.Counter()
        for root, children in spans:
            said = json_format.MessageToDict(root)
            (reason,) = otlp_data.attributes(said)["gen_ai.response.finish_reasons"][
                "values"]
            ends[reason["stringValue"]] += 1
            for span in children.values():
                self.assertLessEqual(
                    span.end_time_unix_nano, root.end_time_unix_nano + RESOLUTION)
        self.assertGreater(ends["abort"], 10)

    def test_the_last_metrics_are_those_of_the_page(self):
        page, posted = self.run_sim("--engines", "2")
        message = otlp_data.schema().metrics()
        message.ParseFromString(posted["/v1/metrics"][-1])
        metrics = otlp_data.metrics_of(json_format.MessageToDict(message))
        tokens = metrics["vllm:generation_tokens_total"]["sum"]["dataPoints"]
        self.assertEqual(sum(int(point["asInt"]) for point in tokens),
                         page["vllm:generation_tokens_total"])

    def test_what_cannot_be_pushed_is_refused(self):
        for flags, said in (
                (["--otlp-endpoint", "collector:4318"], "endpoint = \"collector:4318\""),
                (["--otlp-endpoint", "http://c", "--processes", "2"],
                 "--otlp-endpoint: allowed only without --processes")):
            done = subprocess.run([self.sim, *flags], capture_output=True,
                                  text=True, timeout=otlp_data.TIME_LIMIT)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    otlp_data.main()
