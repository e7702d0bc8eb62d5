"""What a collector gets over HTTP, decoded with OpenTelemetry's own schema."""

import contextlib
import gzip
import http.server
import itertools
import os
import subprocess
import threading

import otlp_data
from google.protobuf import json_format


class Collector(http.server.ThreadingHTTPServer):
    """Keeps what is posted; `answer(handler, path)` may answer otherwise."""

    daemon_threads = True

    def __init__(self, answer=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.requests = []
        threading.Thread(
            target=self.serve_forever, args=(0.02,), daemon=True).start()

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


class PushTest(otlp_data.OtlpTest):
    def push(self, collector, *arguments, **variables):
        """The page, and what was taken."""
        done = self.run_program(collector, *arguments, **variables)
        page, _, taken = done.stdout.rpartition("taken ")
        return page, taken.split()

    def run_program(self, collector, *arguments, **variables):
        return subprocess.run(
            [self.program, collector.url, *arguments],
            env={**os.environ, **variables}, capture_output=True, text=True,
            timeout=otlp_data.TIME_LIMIT, check=True)


class Hostile(PushTest):
    """Answers that no collector should give; each is over soon."""

    def outcomes(self, answer, limit="300", **variables):
        with Collector(answer) as collector:
            _, taken = self.push(
                collector, OTEL_METRIC_EXPORT_TIMEOUT=limit,
                OTEL_BSP_EXPORT_TIMEOUT=limit, **variables)
            return taken, len(collector.requests)

    def raw(self, *pieces, pause=0.0):
        """Answers with these bytes and nothing else, and ends the connection."""
        def answer(handler):
            handler.close_connection = True
            with contextlib.suppress(OSError):
                for piece in itertools.chain(*pieces):
                    handler.wfile.write(piece)
                    self.over.wait(pause)
        return answer

    def setUp(self):
        self.over = threading.Event()
        self.addCleanup(self.over.set)

    def test_a_redirect_is_not_followed(self):
        for status in 301, 302, 303, 307, 308:
            with Collector() as elsewhere:
                taken, count = self.outcomes(lambda h: h.reply(
                    status, b"", location=elsewhere.url + "/x"))
                self.assertEqual((taken, elsewhere.requests), (["0", "0"], []))
                self.assertEqual(count, 3)  # one of them at the end

    def test_a_body_of_another_kind_or_size_changes_nothing(self):
        message = b"\x0a\x02\x08\x05"
        for body in b"<html>", b"\xff" * 1000, message[:3], b"x" * 10_000_000:
            taken, _ = self.outcomes(lambda h, body=body: h.reply(200, body))
            self.assertEqual(taken, ["1", "1"])

    def test_what_is_rejected_is_counted_if_it_is_said_in_protobuf(self):
        # 2^62 of them; no more is believed than was sent, 20 requests of four
        # spans each.
        message = b"\x0a\x0a\x08" + b"\x80" * 8 + b"\x40"
        for kind, spans in ("application/x-protobuf", "80.0"), ("text/html", "0.0"):
            with Collector(lambda h, kind=kind: h.reply(
                    200, message, content_type=kind)) as collector:
                done = self.run_program(collector)
            self.assertIn("taken 1 1", done.stdout)
            self.assertIn(
                'vllm_metrics_otlp_lost_items_total{reason="rejected",'
                f'signal="traces"}} {spans}\n', done.stderr)

    def test_what_is_no_whole_head_is_no_answer(self):
        for bytes_ in (b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 2",
                       b"HTTP/1.1 200 OK\r\ncontent-type: ", b"\0" * 1000,
                       b"HTTP/1.1 999 x\r\n\r\n"):
            taken, _ = self.outcomes(self.raw([bytes_]))
            self.assertEqual(taken, ["0", "0"], bytes_)

    def test_a_head_without_an_end_is_no_answer(self):
        for start, line in (
                (b"HTTP/1.1 200 OK\r\n", b"a: " + b"x" * 1000 + b"\r\n"),
                (b"HTTP/1.1 200 OK\r\na: ", b"x" * 1000),
                (b"", b"HTTP/1.1 100 Continue\r\n\r\n")):
            taken, _ = self.outcomes(
                self.raw([start], itertools.repeat(line, 100_000)))
            self.assertEqual(taken, ["0", "0"], start + line[:20])

    def test_a_body_that_is_cut_or_slow_changes_nothing(self):
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"
        taken, _ = self.outcomes(self.raw([head, b"x" * 500]))
        self.assertEqual(taken, ["1", "1"])
        # A byte a second.
        taken, _ = self.outcomes(
            self.raw([head], itertools.repeat(b"x", 60), pause=1.0),
            OTEL_EXPORTER_OTLP_TIMEOUT="200")
        self.assertEqual(taken, ["1", "1"])
        taken, _ = self.outcomes(  # and the head
            self.raw([b"H", b"T", b"T", b"P"], pause=1.0),
            OTEL_EXPORTER_OTLP_TIMEOUT="200")
        self.assertEqual(taken, ["0", "0"])

    def test_retry_after_is_kept_within_the_time_of_the_export(self):
        for value in ("-5", "1e300", "99999999999999999999", "soon", "3600",
                      "Fri, 31 Dec 9999 23:59:59 GMT", "\xff"):
            taken, count = self.outcomes(
                lambda h: h.reply(503, b"", Retry_After=value))
            self.assertEqual(taken, ["0", "0"], value)
            self.assertLessEqual(count, 4, value)
        with Collector(lambda h: h.reply(
                429 if len(collector.requests) == 1 else 200, b"",
                Retry_After="1")) as collector:
            _, taken = self.push(collector)
            self.assertEqual(taken, ["1", "1"])

    def test_a_connection_that_is_cut_is_no_answer(self):
        taken, count = self.outcomes(self.raw([]), limit="1500")
        self.assertEqual(taken, ["0", "0"])
        self.assertGreaterEqual(count, 4)

    def test_silence_ends_by_the_timeout(self):
        taken, _ = self.outcomes(
            lambda h: self.over.wait(otlp_data.TIME_LIMIT),
            OTEL_EXPORTER_OTLP_TIMEOUT="200")
        self.assertEqual(taken, ["0", "0"])

    def test_an_exporter_that_outlives_main_ends_all_the_same(self):
        with Collector(lambda h: self.over.wait(otlp_data.TIME_LIMIT)) as collector:
            self.run_program(collector, "at_exit")
            self.assertEqual(len(collector.requests), 1)

    def test_nobody_there(self):
        with Collector() as collector:
            url = collector.url
        done = subprocess.run(
            [self.program, url], capture_output=True, text=True,
            env={**os.environ, "OTEL_METRIC_EXPORT_TIMEOUT": "500",
                 "OTEL_BSP_EXPORT_TIMEOUT": "500"},
            timeout=otlp_data.TIME_LIMIT, check=True)
        self.assertIn("taken 0 0", done.stdout)


class Decoded(PushTest):
    """With the .proto files that OpenTelemetry's npm package has."""

    @classmethod
    def setUpClass(cls):
        cls.schema = otlp_data.schema()

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
        self.assertEqual(said["gen_ai.request.id"], 'cmpl-"7" \u20ac')
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


if __name__ == "__main__":
    otlp_data.main()
