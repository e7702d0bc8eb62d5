"""vllm-metrics-sim says what is wrong with a flag, a trace or a file."""

import socket
import subprocess

import sim_program


class Errors(sim_program.SimTest):
    def check(self, status, message, *flags):
        done = subprocess.run(self.command(*flags), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stderr, f"vllm-metrics-sim: {message}\n")
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, status)

    def test_flags(self):
        self.check(2, "--engines = none; allowed: a whole number from 1 to 256",
                   "--engines", "none")
        self.check(2, "--gpu: no such flag; --help lists them", "--gpu")

    def test_a_bad_trace_line(self):
        trace = self.file("trace.jsonl", sim_program.json_lines([
            {"timestamp": 0, "input_length": 5, "output_length": 5},
            {"timestamp": 1, "input_length": -5, "output_length": 5}]))
        self.check(2, f"{trace}:2: input_length is -5; allowed: a whole number "
                   "from 1 to 2147483647", "--trace", trace)

    def test_files(self):
        missing = self.folder / "none" / "file"
        reason = "No such file or directory"
        self.check(2, f"--trace {missing}: {reason}", "--trace", missing)
        for flag in ("--page", "--requests", "--itl"):
            self.check(1, f"{flag} {missing}: cannot be written: {reason}",
                       flag, missing)

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.check(1, f"{address}: Address already in use", "--listen",
                       address)

    def test_what_nobody_expected(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(self.command("--help"), stdout=full, text=True,
                                  stderr=subprocess.PIPE, check=False)
        self.assertRegex(done.stderr, "^vllm-metrics-sim: .*No space left")
        self.assertEqual(done.returncode, 1)

    def test_help_and_version(self):
        usage = self.run_sim("--help").stdout
        for flag in ("--trace FILE", "--speed X", "--num-gpu-blocks N"):
            self.assertIn(flag, usage)
        self.assertRegex(self.run_sim("--version").stdout,
                         r"^vllm-metrics-sim \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    sim_program.main()
