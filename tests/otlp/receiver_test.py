"""What a collector gets over HTTP, decoded with OpenTelemetry's own schema."""

import argparse
import contextlib
import gzip
import http.server
import os
import pathlib
import subprocess
import sys
import threading
import unittest

# Debian's Python has Debian's libraries, whatever comes first in PATH.
try:
    import otlp_data
    from google.protobuf import json_format
except ImportError:
    debians = "/usr/bin/python3"
    if sys.executable == debians or not os.path.exists(debians):
        raise
    os.execv(debians, [debians, *sys.argv])

TIME_LIMIT = 60


class Collector(http.server.ThreadingHTTPServer):
    """Keeps what is posted; `answer(handler, path)` may answer otherwise."""

    daemon_threads = True

    def __init__(self, answer=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.requests = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        if self.server.answer:
            self.server.answer(self)
        else:
            self.reply(200, b"")

    def reply(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)


class PushTest(unittest.TestCase):
    program = None

    def push(self, collector, **variables):
        done = subprocess.run(
            [self.program, collector.url],
            env={**os.environ, **variables}, capture_output=True, text=True,
            timeout=TIME_LIMIT, check=True)
        page, _, taken = done.stdout.rpartition("taken ")
        return page, taken.split()


class Hostile(PushTest):
    """Answers that no collector should give; each is over soon."""

    def outcomes(self, answer, **variables):
        with Collector(answer) as collector:
            _, taken = self.push(
                collector, OTEL_METRIC_EXPORT_TIMEOUT="1500",
                OTEL_BSP_EXPORT_TIMEOUT="1500", **variables)
            return taken, len(collector.requests)

    def test_a_redirect_is_not_followed(self):
        with Collector() as elsewhere:
            taken, _ = self.outcomes(
                lambda h: h.reply(307, b"", location=elsewhere.url + "/x"))
            self.assertEqual(taken, ["0", "0"])
            self.assertEqual(elsewhere.requests, [])

    def test_a_body_of_another_kind_or_size_changes_nothing(self):
        for body in b"<html>", b"\xff" * 1000, b"x" * 10_000_000:
            taken, _ = self.outcomes(lambda h, body=body: h.reply(200, body))
            self.assertEqual(taken, ["1", "1"])

    def test_no_http_at_all_is_no_answer(self):
        taken, _ = self.outcomes(lambda h: h.wfile.write(b"SSH-2.0-x\r\n"))
        self.assertEqual(taken, ["0", "0"])

    def test_a_connection_that_is_cut_is_no_answer(self):
        def cut(handler):
            handler.close_connection = True

        taken, count = self.outcomes(cut)
        self.assertEqual(taken, ["0", "0"])
        self.assertGreaterEqual(count, 2)

    def test_silence_ends_by_the_timeout(self):
        done = threading.Event()
        try:
            taken, _ = self.outcomes(
                lambda h: done.wait(TIME_LIMIT), OTEL_EXPORTER_OTLP_TIMEOUT="300")
            self.assertEqual(taken, ["0", "0"])
        finally:
            done.set()

    def test_nobody_there(self):
        with Collector() as collector:
            url = collector.url
        done = subprocess.run(
            [self.program, url], capture_output=True, text=True,
            env={**os.environ, "OTEL_METRIC_EXPORT_TIMEOUT": "500",
                 "OTEL_BSP_EXPORT_TIMEOUT": "500"},
            timeout=TIME_LIMIT, check=True)
        self.assertIn("taken 0 0", done.stdout)


class Decoded(PushTest):
    """With the .proto files that OpenTelemetry's npm package has."""

    @classmethod
    def setUpClass(cls):
        cls.schema = otlp_data.Schema(cls.schema_folder)

    def received(self, collector, path, message):
        for at, headers, body in collector.requests:
            if at == path:
                self.assertEqual(headers["content-type"], "application/x-protobuf")
                if headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                message.ParseFromString(body)
                return message
        self.fail(f"nothing was posted to {path}")

    def metrics(self, collector):
        request = self.received(collector, "/v1/metrics", self.schema.metrics())
        return otlp_data.metrics_of(json_format.MessageToDict(request))

    def test_every_number_is_that_of_the_page(self):
        for variables in (
                {}, {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
                {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"}):
            with Collector() as collector:
                page, taken = self.push(collector, **variables)
                self.assertEqual(taken, ["1", "1"])
                self.compare(page, self.metrics(collector))

    def compare(self, page, metrics):
        self.assertIn("exponentialHistogram",
                      metrics["vllm:e2e_request_latency_seconds"])
        otlp_data.compare(self, page, metrics)

    def test_spans_are_as_long_as_what_the_histograms_observed(self):
        with Collector() as collector:
            page, _ = self.push(collector)
            request = self.received(
                collector, "/v1/traces", self.schema.traces())
        (resource,) = request.resource_spans
        (scope,) = resource.scope_spans
        traced = [s for s in scope.spans
                  if s.trace_id.hex() == "4bf92f3577b34da6a3ce929d0e0e4736"]
        by_name = {span.name: span for span in traced}
        self.assertEqual(list(by_name),
                         ["llm_request", "queue", "prefill", "decode"])
        root = by_name.pop("llm_request")
        self.assertEqual(root.parent_span_id.hex(), "00f067aa0ba902b7")
        self.assertEqual(root.kind, root.SPAN_KIND_SERVER)
        self.assertEqual(root.start_time_unix_nano, 1_700_000_000 * 10**9)
        length = {name: span.end_time_unix_nano - span.start_time_unix_nano
                  for name, span in by_name.items()}
        self.assertEqual(length, {"queue": 250_000_000, "prefill": 500_000_000,
                                  "decode": 1_250_000_000})
        self.assertEqual(sum(length.values()),
                         root.end_time_unix_nano - root.start_time_unix_nano)
        for span in by_name.values():
            self.assertEqual(span.parent_span_id, root.span_id)
            self.assertGreaterEqual(span.start_time_unix_nano,
                                    root.start_time_unix_nano)
            self.assertLessEqual(span.end_time_unix_nano, root.end_time_unix_nano)
        said = attributes(root)
        self.assertEqual(said["gen_ai.request.model"], "tiny-1b")
        self.assertEqual(said["gen_ai.usage.prompt_tokens"], 100)
        self.assertEqual(said["gen_ai.usage.completion_tokens"], 10)
        self.assertEqual(said["gen_ai.latency.time_in_queue"], 0.25)
        self.assertEqual(said["gen_ai.latency.time_to_first_token"], 0.75)
        self.assertEqual(said["gen_ai.latency.e2e"], 2.0)
        # The sum on the page is that of all spans.
        roots = [s for s in scope.spans if s.name == "llm_request"]
        self.assertEqual(len(roots), 20)
        self.assertEqual(len({s.trace_id for s in roots}), 20)
        labels = '{engine="0",model_name="tiny-1b"}'
        self.assertIn(f"vllm:request_queue_time_seconds_sum{labels} 5.0", page)
        self.assertEqual(
            sum(s.end_time_unix_nano - s.start_time_unix_nano
                for s in scope.spans if s.name == "queue"), 5 * 10**9)


def attributes(message):
    return {a.key: getattr(a.value, a.value.WhichOneof("value"))
            for a in message.attributes}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build-dir", type=pathlib.Path, required=True)
    arguments.add_argument("--source-dir", type=pathlib.Path, required=True)
    options, rest = arguments.parse_known_args()
    PushTest.program = options.build_dir / "tests" / "otlp_push"
    Decoded.schema_folder = otlp_data.schema_folder(options.source_dir)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
