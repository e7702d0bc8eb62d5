"""TLS from outside: another implementation's clients, good and hostile."""

import argparse
import contextlib
import http.client
import pathlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import unittest

HANG_GUARD_SECONDS = 60
PAGE_PART = "tokens_total 3.0\n"


class Endpoint:
    """The program `http_endpoint`; `said` is its URL or its error."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen(
            [program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        self.said = self.process.stdout.readline().strip()
        found = re.search(r":(\d+)/metrics$", self.said)
        self.port = int(found[1]) if found else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.exit_code = self.process.wait(HANG_GUARD_SECONDS)
        self.process.stdout.close()


def make_certificate(folder, name):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
         folder / f"{name}.key", "-out", folder / f"{name}.crt"],
        check=True, capture_output=True)


@unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificates")
class Tls(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        make_certificate(cls.folder, "a")
        make_certificate(cls.folder, "b")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def endpoint(self, *options, certificate="a.crt", key="a.key"):
        return Endpoint(
            self.program, f"tls_certificate.file={self.folder / certificate}",
            f"tls_key.file={self.folder / key}", *options)

    def context(self):
        return ssl.create_default_context(cafile=self.folder / "a.crt")

    def connect(self, endpoint, context=None):
        raw = socket.create_connection(("127.0.0.1", endpoint.port),
                                       HANG_GUARD_SECONDS)
        return (context or self.context()).wrap_socket(
            raw, server_hostname="127.0.0.1")

    def fetch(self, endpoint, headers=None):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", endpoint.port, timeout=HANG_GUARD_SECONDS,
            context=self.context())
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def assert_serves(self, endpoint):
        status, page = self.fetch(endpoint)
        self.assertEqual(status, 200)
        self.assertIn(PAGE_PART, page)

    def test_a_client_that_checks_the_certificate_gets_the_page(self):
        with self.endpoint() as endpoint:
            self.assertTrue(endpoint.said.startswith("https://127.0.0.1:"))
            self.assert_serves(endpoint)
        self.assertEqual(endpoint.exit_code, 0)

    def test_pem_may_be_given_as_text(self):
        text = {name: (self.folder / name).read_text() for name in
                ("a.crt", "a.key")}
        with Endpoint(self.program, f"tls_certificate.text={text['a.crt']}",
                      f"tls_key.text={text['a.key']}") as endpoint:
            self.assert_serves(endpoint)

    def test_an_answer_may_be_larger_than_any_buffer(self):
        with self.endpoint("series=30000") as endpoint:
            status, page = self.fetch(endpoint)
            self.assertEqual(status, 200)
            self.assertEqual(page.count('\nlarge_total{id="'), 30000)

    def test_a_connection_carries_many_requests(self):
        with self.endpoint() as endpoint, self.connect(endpoint) as client:
            for _ in range(20):
                client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                answer = b""
                while not answer.endswith(b"ok\n"):
                    answer += client.recv(65536)
                self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"))

    def test_versions_before_1_2_are_refused(self):
        with self.endpoint() as endpoint:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = self.context()
                context.minimum_version = context.maximum_version = version
                with self.connect(endpoint, context) as client:
                    self.assertEqual(client.version().replace(".", "_"),
                                     version.name)
            exit_codes = {
                version: subprocess.run(
                    ["openssl", "s_client", f"-{version}", "-cipher",
                     "ALL:@SECLEVEL=0", "-connect",
                     f"127.0.0.1:{endpoint.port}"],
                    stdin=subprocess.DEVNULL, capture_output=True, check=False,
                    timeout=HANG_GUARD_SECONDS).returncode
                for version in ("tls1", "tls1_1", "tls1_2")}
            self.assertEqual(exit_codes, {"tls1": 1, "tls1_1": 1, "tls1_2": 0})
            self.assert_serves(endpoint)

    def test_plain_http_to_the_tls_port_gets_nothing(self):
        with self.endpoint() as endpoint:
            with socket.create_connection(("127.0.0.1", endpoint.port),
                                          HANG_GUARD_SECONDS) as plain:
                plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                answer = b""
                with contextlib.suppress(ConnectionError):
                    while part := plain.recv(65536):
                        answer += part
            self.assertNotIn(b"tokens_total", answer)
            self.assertNotIn(b"HTTP/1.1 200", answer)
            self.assert_serves(endpoint)

    def test_a_handshake_that_stalls_or_is_cut_harms_nobody(self):
        hello = bytes.fromhex("160301020001000001fc0303")
        with self.endpoint("request_timeout_ms=300") as endpoint:
            for sent in (b"", hello, b"\0" * 4000, b"\xff" * 4000,
                         hello + b"\0" * 600):
                with socket.create_connection(("127.0.0.1", endpoint.port),
                                              HANG_GUARD_SECONDS) as stalled:
                    stalled.sendall(sent)
                    with contextlib.suppress(ConnectionError):
                        while stalled.recv(65536):  # until we are cut off
                            pass
            self.assert_serves(endpoint)

    def test_a_client_that_resets_while_it_is_answered_harms_nobody(self):
        with self.endpoint() as endpoint:
            for _ in range(5):
                client = self.connect(endpoint)
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  struct.pack("ii", 1, 0))
                client.close()
            self.assert_serves(endpoint)

    def test_a_request_that_trickles_is_cut_off_at_its_deadline(self):
        with self.endpoint("request_timeout_ms=300") as endpoint:
            for asked_before in (False, True):
                with self.connect(endpoint) as client:
                    if asked_before:
                        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                        self.assertIn(b"200 OK", client.recv(65536))
                    client.settimeout(0.01)
                    ended = False
                    for _ in range(1000):
                        try:
                            client.sendall(b"G")
                            ended = client.recv(1) == b""
                        except TimeoutError:
                            continue
                        except (ssl.SSLError, OSError):
                            ended = True
                        if ended:
                            break
                    self.assertTrue(ended)

    def test_logins_work_as_without_tls(self):
        with self.endpoint("bearer_token=s3cret") as endpoint:
            self.assertEqual(self.fetch(endpoint)[0], 401)
            status, page = self.fetch(
                endpoint, {"Authorization": "Bearer s3cret"})
            self.assertEqual(status, 200)
            self.assertIn(PAGE_PART, page)

    def test_stop_waits_for_no_client(self):
        with self.endpoint() as endpoint:
            idle = self.connect(endpoint)
            halfway = socket.create_connection(("127.0.0.1", endpoint.port))
            self.assert_serves(endpoint)
        self.assertEqual(endpoint.exit_code, 0)
        idle.close()
        halfway.close()


@unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificates")
class TlsThatCannotStart(unittest.TestCase):
    program = None

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        make_certificate(self.folder, "a")
        make_certificate(self.folder, "b")
        (self.folder / "text").write_text("hello\n")
        (self.folder / "empty").write_text("")
        broken = "-----BEGIN {0}-----\nAAAA\n-----END {0}-----\n"
        (self.folder / "broken.crt").write_text(broken.format("CERTIFICATE"))
        (self.folder / "broken.key").write_text(broken.format("PRIVATE KEY"))
        subprocess.run(
            ["openssl", "pkey", "-aes128", "-passout", "pass:x", "-in",
             self.folder / "a.key", "-out", self.folder / "locked.key"],
            check=True, capture_output=True)

    def tearDown(self):
        self.temporary.cleanup()

    def refusal(self, *options):
        with Endpoint(self.program, *options) as endpoint:
            self.assertIsNone(endpoint.port, endpoint.said)
        self.assertEqual(endpoint.exit_code, 1)
        return endpoint.said.replace(str(self.folder), "")

    def files(self, certificate, key):
        return self.refusal(
            f"tls_certificate.file={self.folder}/{certificate}",
            f"tls_key.file={self.folder}/{key}")

    def test_the_option_and_the_file_are_named_with_the_reason(self):
        for certificate, key, message in (
                ("none.crt", "a.key",
                 'tls_certificate.file = "/none.crt": No such file or directory'),
                ("a.crt", "none.key",
                 'tls_key.file = "/none.key": No such file or directory'),
                ("empty", "a.key", 'tls_certificate.file = "/empty": empty'),
                ("text", "a.key", 'tls_certificate.file = "/text": no '
                 "CERTIFICATE in it; allowed: PEM"),
                ("a.key", "a.crt", 'tls_certificate.file = "/a.key": no '
                 "CERTIFICATE in it; allowed: PEM"),
                ("a.crt", "a.crt", 'tls_key.file = "/a.crt": no PRIVATE KEY in '
                 "it; allowed: PEM"),
                ("a.crt", "locked.key", 'tls_key.file = "/locked.key": the key '
                 "has a passphrase; allowed: one without")):
            with self.subTest(certificate=certificate, key=key):
                self.assertEqual(self.files(certificate, key), message)

    def test_what_gnutls_refuses_names_both_files_and_its_reason(self):
        for certificate, key in (("a.crt", "b.key"), ("broken.crt", "a.key"),
                                 ("a.crt", "broken.key")):
            with self.subTest(certificate=certificate, key=key):
                message = self.files(certificate, key)
                self.assertRegex(
                    message, rf'^tls_certificate\.file = "/{certificate}", '
                    rf'tls_key\.file = "/{key}": .+')

    def test_one_without_the_other_is_an_error(self):
        self.assertEqual(
            self.refusal(f"tls_certificate.file={self.folder}/a.crt"),
            "tls_key has neither text nor file; one of them is needed")
        self.assertEqual(
            self.refusal(f"tls_key.file={self.folder}/a.key"),
            "tls_certificate has neither text nor file; one of them is needed")

    def test_a_key_is_in_no_message(self):
        key = (self.folder / "b.key").read_text()
        message = self.refusal(f"tls_certificate.file={self.folder}/a.crt",
                               f"tls_key.text={key}")
        self.assertNotIn(key[40:60], message)
        self.assertIn(", tls_key: ", message)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    program = arguments.build_dir / "tests" / "http_endpoint"
    Tls.program = TlsThatCannotStart.program = program
    unittest.main(argv=[sys.argv[0], *rest])
