"""vllm-metrics-doctor from outside: its two ways of getting pages, its two
reports, its exit status, and what it says when it cannot tell."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from page_server import PageServer  # noqa: E402

HEALTHY, FOUND, CANNOT_TELL = 0, 1, 2


def page(tokens, waiting=0, model="acme/one"):
    """Of a server whose KV cache is full; `waiting` decides what that means."""
    labels = f'{{engine="0",model_name="{model}"}}'
    return (
        "# TYPE vllm:num_requests_running gauge\n"
        f"vllm:num_requests_running{labels} 4.0\n"
        "# TYPE vllm:num_requests_waiting gauge\n"
        f"vllm:num_requests_waiting{labels} {waiting}\n"
        "# TYPE vllm:kv_cache_usage_perc gauge\n"
        f"vllm:kv_cache_usage_perc{labels} 0.95\n"
        "# TYPE vllm:generation_tokens_total counter\n"
        f"vllm:generation_tokens_total{labels} {tokens}\n"
    )


def serve(test, *pages, status=200):
    """The URL of a server of one page after the other, the last one for ever."""
    answers = list(pages)
    server = PageServer(
        lambda: answers.pop(0) if len(answers) > 1 else answers[0], status)
    test.addCleanup(server.stop)
    return server.url


class Doctor(unittest.TestCase):
    program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, "utf-8")
        return path

    def run_doctor(self, *arguments, text=None):
        return subprocess.run(
            [self.program, *map(str, arguments)], input=text,
            capture_output=True, text=True, check=False, timeout=60)

    def files(self, before, after, *arguments):
        return self.run_doctor("--from", self.file("a", before),
                               "--to", self.file("b", after), *arguments)

    def test_saved_pages(self):
        result = self.files(page(10, waiting=9), page(20, waiting=8))
        self.assertEqual(result.returncode, FOUND, result.stderr)
        self.assertIn("acme/one, 1 engine\n", result.stdout)
        self.assertIn("waiting 8 (was 9)", result.stdout)
        self.assertIn("queue-saturated", result.stdout)
        self.assertIn("--kv-cache-dtype auto -> fp8", result.stdout)
        self.assertNotIn("\033", result.stdout)
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)

    def test_json(self):
        result = self.files(page(10, waiting=9), page(20, waiting=8), "--json",
                            "--elapsed", "5")
        self.assertEqual(result.returncode, FOUND, result.stderr)
        (model,) = json.loads(result.stdout)["models"]
        self.assertEqual(model["model"], "acme/one")
        self.assertEqual(model["state"], "findings")
        self.assertEqual(model["figures"]["elapsed_seconds"], 5.0)
        self.assertEqual(model["figures"]["generation_tokens"], 10.0)
        self.assertIsNone(model["figures"]["ttft_seconds"])
        (finding,) = model["findings"]
        self.assertEqual(finding["id"], "queue-saturated")
        self.assertEqual(finding["confidence"], "medium")
        self.assertEqual(finding["evidence"][1]["metric"],
                         "vllm:kv_cache_usage_perc")
        self.assertEqual(finding["evidence"][1]["value"], 0.95)
        self.assertEqual(finding["levers"][0]["parameter"], "--kv-cache-dtype")

    def test_healthy(self):
        result = self.files(page(10), page(20))
        self.assertEqual(result.returncode, HEALTHY, result.stderr)
        self.assertIn("Healthy: nothing found.", result.stdout)

    def test_nothing_moved(self):
        result = self.files(page(10), page(10))
        self.assertEqual(result.returncode, CANNOT_TELL)
        self.assertIn("no counter moved between the pages", result.stdout)

    def test_one_page_is_since_the_start(self):
        result = self.run_doctor("--to", "-", text=page(10))
        self.assertEqual(result.returncode, HEALTHY, result.stderr)
        self.assertIn("since its start", result.stdout)

    def test_server(self):
        url = serve(self, page(10, waiting=9), page(20, waiting=8))
        result = self.run_doctor(url, "--interval", "0.1", "--json")
        self.assertEqual(result.returncode, FOUND, result.stderr)
        (model,) = json.loads(result.stdout)["models"]
        self.assertGreaterEqual(model["figures"]["elapsed_seconds"], 0.1)

    def test_gpus(self):
        gpus = serve(self, "DCGM_FI_PROF_DRAM_ACTIVE 0.5\n")
        url = serve(self, page(10), page(20))
        result = self.run_doctor(url, "--interval", "0.1", "--json",
                                 "--dcgm", gpus)
        (model,) = json.loads(result.stdout)["models"]
        self.assertEqual(model["figures"]["dram_active"], 0.5)

    def test_watch(self):
        url = serve(self, page(10), page(20), page(30), "nonsense {\n")
        result = self.run_doctor(url, "--interval", "0.1", "--watch",
                                 "--json")
        self.assertEqual(result.returncode, CANNOT_TELL)
        reports = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([report["models"][0]["figures"]["generation_tokens"]
                          for report in reports], [10.0, 10.0])
        self.assertIn("no metrics page: line 1", result.stderr)

    def assert_cannot_tell(self, result, *words):
        self.assertEqual(result.returncode, CANNOT_TELL, result.stdout)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("vllm-metrics-doctor: "))
        for word in words:
            self.assertIn(word, result.stderr)

    def test_servers_that_do_not_answer(self):
        with self.subTest("nobody listens"):
            self.assert_cannot_tell(self.run_doctor("http://127.0.0.1:1/metrics"),
                                    "http://127.0.0.1:1/metrics: ")
        with self.subTest("no such page"):
            url = serve(self, "gone", status=404)
            self.assert_cannot_tell(self.run_doctor(url),
                                    url + ": status 404; allowed: 200")
        with self.subTest("no metrics"):
            url = serve(self, "<html><body>hello</body></html>\n")
            self.assert_cannot_tell(self.run_doctor(url),
                                    url + ": no metrics page: line 1")
        with self.subTest("no URL"):
            self.assert_cannot_tell(self.run_doctor("file:///etc/passwd"),
                                    "file:///etc/passwd: ")

    def test_pages_that_do_not_fit(self):
        whole = page(20)
        half = whole[: whole.index("# TYPE vllm:generation")]
        cases = {
            "cut in a line": (page(10), whole[: len(whole) // 2 + 3],
                              "ends in the middle of a line"),
            "cut between two lines": (page(10), half, "is cut short"),
            "of another server": (page(10), page(20, model="acme/two"),
                                  "different servers", "acme/two"),
            "of no server": ("up 1\n", "up 1\n", "no vllm: family"),
            "empty": (page(10), "", "has no metrics"),
        }
        for name, (before, after, *words) in cases.items():
            with self.subTest(name):
                self.assert_cannot_tell(self.files(before, after), *words)
        with self.subTest("not there"):
            self.assert_cannot_tell(
                self.run_doctor("--to", self.folder / "c"),
                f"{self.folder / 'c'}: No such file or directory")

    def test_arguments(self):
        cases = {
            (): "a URL, or --to FILE, is missing",
            ("http://a/", "http://b/"): "one URL only, not also http://b/",
            ("http://a/", "--to", "x"): "allowed: one of the two",
            ("--from", "x"): "--from x without --to FILE",
            ("--to", "x", "--watch"): "--watch needs the URL",
            ("http://a/", "--interval", "0"):
                "--interval 0; allowed: a number from 0.1 to 3600",
            ("http://a/", "--interval=1e"): "--interval 1e; allowed",
            ("http://a/", "--interval"): "--interval ; allowed",
            ("http://a/", "--elapsed", "5"): "--elapsed is for saved pages",
            ("http://a/", "--frobnicate"): "there is no option --frobnicate",
            ("--to", ""): "--to is empty",
        }
        for arguments, words in cases.items():
            with self.subTest(arguments):
                self.assert_cannot_tell(self.run_doctor(*arguments), words,
                                        "Try --help.")
        self.assertIn("--dcgm URL", self.run_doctor("--help").stdout)
        self.assertRegex(self.run_doctor("--version").stdout, r"\d+\.\d+\.\d+")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path)
    known, rest = parser.parse_known_args()
    Doctor.program = known.build_dir / "bin" / "vllm-metrics-doctor"
    if not Doctor.program.exists():
        print("skipped: vllm-metrics-doctor is not built")
        return
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
