"""What must add up adds up on every page, whenever it is scraped."""

import math
import signal

import sim_program

PARTS = ["vllm_metrics_sim_frontend_delay_seconds",
         "vllm:request_queue_time_seconds",
         "vllm:request_prefill_time_seconds",
         "vllm:request_decode_time_seconds"]
WHOLE = "vllm:e2e_request_latency_seconds"


class Identities(sim_program.SimTest):
    def check_labels(self, page, **labels):
        def total(name):
            return page.sum(name, **labels)

        whole = total(WHOLE + "_sum")
        parts = sum(total(name + "_sum") for name in PARTS)
        self.assertTrue(math.isclose(whole, parts, rel_tol=1e-9, abs_tol=1e-12),
                        f"{labels}: {whole} is not {parts}")
        for part in PARTS:
            self.assertEqual(total(part + "_count"), total(WHOLE + "_count"))
        self.assertEqual(total("vllm:prompt_tokens_total"),
                         total("vllm:prompt_tokens_by_source_total"))
        self.assertEqual(total("vllm:num_requests_waiting"),
                         total("vllm:num_requests_waiting_by_reason"))
        finished = total("vllm:request_success_total")
        self.assertEqual(finished, total(WHOLE + "_count"))
        self.assertEqual(
            total("vllm:num_requests_running") +
            total("vllm:num_requests_waiting") + finished +
            total("vllm_metrics_sim_requests_refused_total"),
            total("vllm_metrics_sim_requests_arrived_total"))
        for name in page.histograms():
            self.assertEqual(page.buckets(name, **labels)[-1],
                             (math.inf, total(name + "_count")), name)

    def check(self, page):
        self.check_labels(page)
        for engine in page.engines():
            self.check_labels(page, engine=engine)

    def scrape_all_along(self, *flags):
        """The pages from the first to one after the end of the run."""
        process, url = self.start_sim("--linger", "unlimited", *flags)
        pages = [sim_program.scrape(url)]
        while pages[-1].sum("vllm_metrics_sim_seconds") < self.SECONDS:
            pages.append(sim_program.scrape(url))
            self.check(pages[-1])
        process.send_signal(signal.SIGINT)
        summary = process.stdout.read()
        self.assertEqual(process.wait(), 0)
        return pages, summary

    # Long enough that many scrapes meet a run at work.
    SECONDS = 2000
    BUSY = ["--speed", "max", "--log-interval", "0", "--rate", "12",
            "--seconds", SECONDS, "--num-gpu-blocks", "400",
            "--max-model-len", "8192"]

    def test_one_engine_under_pressure(self):
        pages, summary = self.scrape_all_along(*self.BUSY)
        self.assertGreater(len({
            page.sum("vllm_metrics_sim_seconds") for page in pages}), 5)
        last = pages[-1]
        self.assertGreater(last.sum("vllm:num_preemptions_total"), 0)
        self.assertGreater(
            last.sum("vllm_metrics_sim_requests_refused_total"), 0)
        self.assertGreater(last.sum("vllm:num_requests_waiting"), 0)
        self.assertEqual(last.sum("vllm_metrics_sim_seconds"), self.SECONDS)
        self.assertIn(f"Virtual time    {self.SECONDS}.000 s\n", summary)

    def test_several_engines(self):
        pages, _ = self.scrape_all_along("--engines", "3", *self.BUSY)
        last = pages[-1]
        self.assertEqual(last.engines(), ["0", "1", "2"])
        arrived = [last.sum("vllm_metrics_sim_requests_arrived_total",
                            engine=engine) for engine in last.engines()]
        self.assertGreater(min(arrived), 0.8 * max(arrived))

    def test_waiting_in_real_time(self):
        process, url = self.start_sim("--speed", "50", "--log-interval", "0")
        seconds = []
        while not seconds or seconds[-1] < 5:
            page = sim_program.scrape(url)
            self.check(page)
            seconds.append(page.sum("vllm_metrics_sim_seconds"))
        self.assertEqual(seconds, sorted(seconds))
        process.send_signal(signal.SIGINT)
        self.assertIn(", interrupted\n", process.stdout.read())
        self.assertEqual(process.wait(), 0)


if __name__ == "__main__":
    sim_program.main()
