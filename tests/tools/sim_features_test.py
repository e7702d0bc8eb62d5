"""With all features on, the page has what its readers ask for."""

import math
import pathlib
import re

import sim_program

NAMES = pathlib.Path(__file__).with_name("consumer_names.txt")

ALL_FEATURES = [
    "--rate", "12", "--speculative-tokens", "3", "--lora-adapters", "4",
    "--kv-transfer", "--kv-offload", "both", "--kv-offload-store-threshold", "2",
    "--weight-updates", "20", "--metrics-version", "0.32",
    "--kv-cache-metrics", "--kv-cache-metrics-sample", "1",
    "--cudagraph-metrics", "--enable-mfu-metrics",
    "--enable-logging-iteration-details", "--compute-nans-in-logits",
    "--corrupted-share", "0.1", "--num-gpu-blocks", "2500",
    "--max-model-len", "8192", "--patience", "60", "--engines", "2",
    "--routing", "round-robin", "--seconds", "60"]

# What no page of a release that this library speaks has, by the beginning of
# its name.
MISSING = {
    "gone, or renamed long ago": (
        "vllm:avg_", "vllm:cpu_cache_usage_perc", "vllm:gpu_",
        "vllm:num_requests_swapped", "vllm:request_params_best_of",
        "vllm:time_per_output_token_seconds"),
    "a reader's own spelling, which vLLM never had": (
        "vllm:max_num_generation_tokens", "vllm:num_requests_success_total",
        "vllm:num_incoming_requests_total"),
}


def wanted_names():
    """(name, labels) of each line."""
    for line in NAMES.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, *labels = line.split()
            yield name, set(labels)


def forms_of(name):
    """The samples that may stand for it."""
    return [name + end for end in ("", "_total", "_bucket")]


class Features(sim_program.SimTest):
    @classmethod
    def setUpClass(cls):
        case = cls("page")
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        case.page()

    def page(self):
        """Of the endpoint, once the run is over."""
        process, url = self.start_sim("--speed", "max", "--linger", "unlimited",
                                      *ALL_FEATURES)
        page = sim_program.scrape(url)
        while page.sum("vllm_metrics_sim_seconds") < 60:
            page = sim_program.scrape(url)
        type(self).last = page
        process.kill()

    def test_what_readers_ask_for_is_there(self):
        missing = tuple(sum(MISSING.values(), ()))
        for name, labels in wanted_names():
            if name.startswith(missing):
                continue
            with self.subTest(name=name):
                found = [sample for form in forms_of(name)
                         for sample in self.last.samples.get(form, [])]
                self.assertTrue(found)
                self.assertLessEqual(labels, set().union(
                    *(sample_labels for sample_labels, _ in found)))

    def test_no_exception_is_without_need(self):
        names = [name for name, _ in wanted_names()]
        for beginnings in MISSING.values():
            for beginning in beginnings:
                with self.subTest(beginning=beginning):
                    self.assertTrue(
                        any(name.startswith(beginning) for name in names))
                    self.assertFalse(any(
                        name.startswith(beginning)
                        for name in self.last.samples))

    def test_every_feature_does_something(self):
        for name in ("vllm:spec_decode_num_drafts_total",
                     "vllm:spec_decode_num_accepted_tokens_total",
                     "vllm:corrupted_requests_total",
                     "vllm:nixl_xfer_time_seconds_count",
                     "vllm:nixl_bytes_transferred_sum",
                     "vllm:external_prefix_cache_hits_total",
                     "vllm:kv_offload_load_bytes_total",
                     "vllm:kv_offload_store_bytes_total",
                     "vllm:kv_offload_stores_skipped_total",
                     "vllm:kv_offload_lookup_sync_delay_seconds_count",
                     "vllm:simple_kv_offload_load_blocks_total",
                     "vllm:simple_kv_offload_save_outcomes_total",
                     "vllm:sleep_mode_operation_duration_seconds_count",
                     "vllm:rl_weight_update_operation_duration_seconds_count",
                     "vllm:kv_block_lifetime_seconds_count",
                     "vllm:kv_block_reuse_gap_seconds_count",
                     "vllm:estimated_flops_per_gpu_total",
                     "vllm:estimated_read_bytes_per_gpu_total",
                     "vllm:estimated_write_bytes_per_gpu_total",
                     "DCGM_FI_DEV_GPU_UTIL"):
            with self.subTest(name=name):
                self.assertGreater(self.last.sum(name), 0)
        (labels, _), *_ = self.last.samples["vllm:lora_requests_info"]
        self.assertEqual(labels["max_lora"], "4")
        self.assertRegex(labels["running_lora_adapters"],
                         r"^adapter-[0-3](,adapter-[0-3])*$")

    def test_drafts_are_accepted_as_asked(self):
        drafts = self.last.sum("vllm:spec_decode_num_drafts_total")
        for position, rate in enumerate((0.7, 0.49, 0.343)):
            accepted = self.last.sum(
                "vllm:spec_decode_num_accepted_tokens_per_pos_total",
                position=str(position))
            self.assertTrue(math.isclose(accepted / drafts, rate, rel_tol=0.05))

    def test_the_log_has_the_records_of_each_feature(self):
        log = self.run_sim("--speed", "max", *ALL_FEATURES).stderr
        for record in (r"SpecDecoding metrics: Mean acceptance length: 2\.\d",
                       r"KV Transfer metrics: ", r"MFU: \d+\.\d TF/s/GPU",
                       r"\*\*CUDAGraph Stats:\*\*", r"Iteration\(\d+\): ",
                       r"External prefix cache hit rate: "):
            with self.subTest(record=record):
                self.assertTrue(re.search(record, log))

    def test_a_page_of_a_moment(self):
        early, late = self.folder / "early", self.folder / "late"
        page = self.run_to_page("--seed", "3", "--page-at", f"40:{late}",
                                "--page-at", f"20:{early}")
        pages = [sim_program.Page(path.read_text("utf-8"))
                 for path in (early, late)] + [page]
        seconds = [p.sum("vllm_metrics_sim_seconds") for p in pages]
        self.assertEqual(seconds[:2], [20, 40])
        tokens = [p.sum("vllm:generation_tokens_total") for p in pages]
        self.assertEqual(tokens, sorted(tokens))
        other = self.folder / "other"
        self.run_sim("--seed", "3", "--speed", "max", "--log-interval", "0",
                     "--page", other, "--seconds", "40")
        self.assertEqual(sim_program.Page(other.read_text("utf-8")).own_lines(),
                         pages[1].own_lines())

    def test_a_model_from_its_config(self):
        config = self.file("config.json", """{
          "num_hidden_layers": 16, "hidden_size": 2048, "vocab_size": 128256,
          "num_attention_heads": 32, "num_key_value_heads": 8,
          "intermediate_size": 8192, "torch_dtype": "bfloat16"}""")
        def mean_itl(*flags):
            page = self.run_to_page("--rate", "2", *flags)
            name = "vllm:inter_token_latency_seconds"
            return page.sum(name + "_sum") / page.sum(name + "_count")
        small, preset = mean_itl("--model", config), mean_itl()
        self.assertLess(small, 0.6 * preset)
        self.assertLess(mean_itl("--device", "H200 SXM"), 0.9 * preset)


if __name__ == "__main__":
    sim_program.main()
