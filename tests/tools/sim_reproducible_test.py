"""One seed, one run: the same page and the same log to the byte."""

import sim_program


class Reproducible(sim_program.SimTest):
    def outputs(self, *flags):
        path = self.folder / "page"
        done = self.run_sim("--page", path, *flags)
        page = sim_program.Page(path.read_text("utf-8"))
        return page.own_lines(), done.stderr

    def check(self, *flags):
        page, log = self.outputs("--speed", "max", *flags)
        self.assertGreater(len(page), 400)
        self.assertGreater(len(log.splitlines()), 3)
        self.assertEqual(self.outputs("--speed", "max", *flags), (page, log))
        return page, log

    def test_synthetic_workload(self):
        page, log = self.check("--seed", "3", "--engines", "2")
        other = self.outputs("--speed", "max", "--seed", "4", "--engines", "2")
        self.assertNotEqual(other, (page, log))
        # Neither does it matter how fast it runs, or who listens.
        for flags in (("--speed", "500"),
                      ("--speed", "max", "--listen", "127.0.0.1:0")):
            self.assertEqual(
                self.outputs("--seed", "3", "--engines", "2", *flags),
                (page, log))

    def test_trace(self):
        trace = self.file("trace.jsonl", sim_program.json_lines(
            sim_program.made_up_trace(5)))
        self.check("--trace", trace, "--num-gpu-blocks", "1500")

    def test_log_lines_are_those_of_vllm(self):
        _, log = self.outputs("--speed", "max", "--seconds", "35",
                              "--aggregate-engine-logging", "--engines", "2")
        lines = [line for line in log.splitlines() if "throughput" in line]
        self.assertEqual(len(lines), 4)  # at 10, 20, 30 and 35 s
        self.assertRegex(
            lines[0],
            r"^INFO 01-01 00:00:10 \[vllm_metrics\] 2 Engines Aggregated: Avg "
            r"prompt throughput: \d+\.\d tokens/s, Avg generation throughput: "
            r"\d+\.\d tokens/s, Running: \d+ reqs, Waiting: \d+ reqs, GPU KV "
            r"cache usage: \d+\.\d%, Prefix cache hit rate: \d+\.\d%$")


if __name__ == "__main__":
    sim_program.main()
