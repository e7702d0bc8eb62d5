"""Processes that use the library end, in any order and at any moment."""

import argparse
import http.client
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request


class Endings(unittest.TestCase):
    build_dir = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runtime = pathlib.Path(folder.name)

    def start(self, mode):
        return subprocess.Popen(
            [self.build_dir / "tests" / "endings" / "ending", mode],
            env={"XDG_RUNTIME_DIR": str(self.runtime)}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def run_to_end(self, mode):
        output, errors = self.start(mode).communicate(timeout=120)
        process_errors = [line for line in errors.splitlines()
                          if not line.startswith("INFO ")]
        self.assertEqual(process_errors, [])
        return output

    def test_statics_use_it_before_and_after_the_last_moment(self):
        self.assertEqual(self.run_to_end("statics"), "before: 2\nafter: 1\n")
        self.assertEqual(list(self.runtime.iterdir()), [])

    def test_a_library_that_holds_it_is_closed_and_opened_again(self):
        closed = self.build_dir / "tests" / "endings" / "closed.so"
        self.assertEqual(self.run_to_end(closed), "closed\n")
        self.assertEqual(list(self.runtime.iterdir()), [])

    def test_signals_interrupt_it_and_their_handler_writes_metrics(self):
        self.assertEqual(self.run_to_end("signals"), "")
        self.assertEqual(list(self.runtime.iterdir()), [])

    def exit_while_scraped(self, mode):
        process = self.start(mode)
        self.addCleanup(process.kill)
        url = process.stdout.readline().strip()
        pages = threading.Semaphore(0)

        def scrape():
            try:
                while True:
                    with urllib.request.urlopen(url, timeout=30) as answer:
                        answer.read()
                    pages.release()
            except (OSError, http.client.HTTPException):
                pass  # it has ended

        clients = [threading.Thread(target=scrape) for _ in range(4)]
        for client in clients:
            client.start()
        for _ in range(20):
            pages.acquire()
        _, errors = process.communicate(timeout=60)
        for client in clients:
            client.join()
        self.assertEqual((process.returncode, errors), (0, ""))

    def test_it_exits_while_it_is_scraped(self):
        self.exit_while_scraped("exit_destroyed")
        self.assertEqual(list(self.runtime.iterdir()), [])

    def test_it_exits_while_a_thread_records_and_nothing_is_destroyed(self):
        self.exit_while_scraped("exit_leaked")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path)
    known, rest = parser.parse_known_args()
    Endings.build_dir = known.build_dir
    if not (known.build_dir / "tests" / "endings" / "ending").exists():
        print("skipped: it is not built")
        return
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
