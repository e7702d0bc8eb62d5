"""The dashboards, written by generate.py: what each shows, and why one would look at it.

Only metrics that vLLM has too, so that they work for it as well. A panel that may
be empty says in its text what fills it.
"""

from panels import Dashboard, Panel, Query, Row, Variable

ENGINE = "model_name, instance, engine"
OF_ENGINE = "{{instance}} engine {{engine}}"
WINDOW = "[$__rate_interval]"


def total(metric, by="model_name", legend="{{model_name}}"):
    return Query(f"sum by ({by}) ({metric})", legend)


def per_second(metric, by="model_name", legend="{{model_name}}"):
    return Query(f"sum by ({by}) (rate({metric}{{}}{WINDOW}))", legend)


def ratio(above, below, by="model_name", legend="{{model_name}}"):
    """Of two rates; no line while the lower is 0."""
    return Query(
        f"sum by ({by}) (rate({above}{{}}{WINDOW}))"
        f" / (sum by ({by}) (rate({below}{{}}{WINDOW})) > 0)",
        legend,
    )


def mean(histogram, by="model_name", legend="{{model_name}}"):
    return ratio(f"{histogram}_sum", f"{histogram}_count", by, legend)


def quantile(q, histogram, by="model_name", legend=None):
    buckets = f"sum by (le, {by}) (rate({histogram}_bucket{{}}{WINDOW}))"
    return Query(
        f"histogram_quantile({q}, {buckets})", legend or f"p{q * 100:g} {{{{{by}}}}}"
    )


def quantiles(histogram, *qs):
    return [quantile(q, histogram) for q in qs or (0.5, 0.95, 0.99)]


def heatmap(title, unit, histogram, about, **more):
    query = Query(f"sum by (le) (increase({histogram}_bucket{{}}{WINDOW}))", "{{le}}")
    return Panel(title, unit, about, [query], kind="heatmap", **more)


def stat(title, unit, expr, about, **more):
    query = Query(expr, more.pop("legend", ""))
    return Panel(title, unit, about, [query], kind="stat", width=4, height=4, **more)


TTFT = "vllm:time_to_first_token_seconds"
ITL = "vllm:inter_token_latency_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
E2E = "vllm:e2e_request_latency_seconds"
QUEUE = "vllm:request_queue_time_seconds"
PREFILL = "vllm:request_prefill_time_seconds"
DECODE = "vllm:request_decode_time_seconds"
STEP = "vllm:iteration_tokens_total"

KV_LIMITS = {0.85: "orange", 0.98: "red"}


def ttft(**more):
    about = (
        "From a request's arrival to its first token: queue and prefill. The lines at"
        " 0.5 and 1 s are an interactive promise; set your own."
    )
    limits = {0.5: "orange", 1: "red"}
    return Panel(
        "Time to first token", "s", about, quantiles(TTFT), limits=limits, **more
    )


def itl(**more):
    about = (
        "Gap between two outputs of a stream, one sample each. A high p99 beside a"
        " low median: prompts of others are computed in between."
    )
    return Panel("Inter-token latency", "s", about, quantiles(ITL), **more)


def phases(**more):
    about = (
        "Means over requests that ended. The highest layer is where to begin: queue:"
        " capacity or a limit; prefill: long prompts, few hits, a small token budget;"
        " decode: memory bandwidth."
    )
    queries = [
        mean(QUEUE, legend="queue {{model_name}}"),
        mean(PREFILL, legend="prefill {{model_name}}"),
        mean(DECODE, legend="decode {{model_name}}"),
    ]
    return Panel("Where the time goes", "s", about, queries, stacked=True, **more)


def preemptions(by="model_name", legend="{{model_name}}", **more):
    about = (
        "Running requests that lost their KV blocks; their work is done twice. Should"
        " be 0: limit active sequences first."
    )
    query = per_second("vllm:num_preemptions_total", by, legend)
    return Panel("Preemptions", "ops", about, [query], limits={0.001: "red"}, **more)


def kv_usage(**more):
    about = (
        "Share of the KV blocks in use. From 0.85 on preemption is near; scale out"
        " above 0.65 when requests wait. The device's memory always looks full: this"
        " is the real level."
    )
    query = Query("vllm:kv_cache_usage_perc{}", OF_ENGINE)
    return Panel(
        "KV cache usage",
        "percentunit",
        about,
        [query],
        limits=KV_LIMITS,
        top=1,
        **more,
    )


def hit_rate(**more):
    about = (
        "Share of the prompt tokens that were found in the engine's cache. A sudden"
        " fall with alike prompts: the load balancer scatters conversations."
    )
    query = ratio("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
    return Panel(
        "Prefix cache hit rate", "percentunit", about, [query], top=1, **more
    )


def tokens_per_step(**more):
    about = (
        "Prompt tokens computed and tokens generated in a step. Near 1 with many"
        " running: batching is broken. Near max-num-batched-tokens: saturated."
    )
    queries = [mean(STEP, legend="mean {{model_name}}"), quantile(0.95, STEP)]
    return Panel("Tokens per step", "short", about, queries, **more)


OVERVIEW = Dashboard(
    "overview",
    "vLLM / Overview",
    "Is it fast, where does the time go, is there room. Begin here.",
    [
        Row(
            "Now",
            [
                stat(
                    "Engines",
                    "short",
                    "count(vllm:num_requests_running{})",
                    "Engines that are scraped.",
                ),
                stat(
                    "Running",
                    "short",
                    "sum(vllm:num_requests_running{})",
                    "Requests in the batches.",
                ),
                stat(
                    "Waiting",
                    "short",
                    "sum(vllm:num_requests_waiting{})",
                    "Requests in the queues. Above 0 for minutes: more is asked than"
                    " is served.",
                    limits={1: "orange"},
                ),
                stat(
                    "Fullest KV cache",
                    "percentunit",
                    "max(vllm:kv_cache_usage_perc{})",
                    "Of all engines.",
                    limits=KV_LIMITS,
                    top=1,
                ),
                stat(
                    "Requests ended",
                    "reqps",
                    f"sum(rate(vllm:request_success_total{{}}{WINDOW}))",
                    "Per second, whatever their end.",
                ),
                stat(
                    "Alerts firing",
                    "short",
                    'count(ALERTS{alertname=~"Vllm.+",alertstate="firing",'
                    'severity!="info"}) or vector(0)',
                    "Of this project's rules; docs/operations.md has each.",
                    limits={1: "red"},
                ),
            ],
        ),
        Row("Latency", [ttft(), itl(), phases()]),
        Row(
            "Work",
            [
                Panel(
                    "Throughput",
                    "suffix: tok/s",
                    "Tokens generated, and prompt tokens of requests that got their"
                    " first token, cached ones included.",
                    [
                        per_second(
                            "vllm:generation_tokens_total",
                            legend="generated {{model_name}}",
                        ),
                        per_second(
                            "vllm:prompt_tokens_total", legend="prompt {{model_name}}"
                        ),
                    ],
                ),
                tokens_per_step(),
                Panel(
                    "Mean length of a request",
                    "suffix: tok",
                    "The shape of the load: long prompts cost prefill, long answers"
                    " hold KV blocks.",
                    [
                        mean("vllm:request_prompt_tokens", legend="prompt {{model_name}}"),
                        mean(
                            "vllm:request_generation_tokens",
                            legend="generated {{model_name}}",
                        ),
                    ],
                ),
            ],
        ),
        Row("Room", [kv_usage(), preemptions(), hit_rate()]),
    ],
)


def time_quantiles(title, histogram, about):
    return Panel(title, "s", about, quantiles(histogram))


LATENCY = Dashboard(
    "latency",
    "vLLM / Latency",
    "Each latency whole and by parts: when a promise is broken, which part did it.",
    [
        Row("First token: queue + prefill", [
            ttft(),
            time_quantiles("Queue time", QUEUE,
                           "From the arrival at the engine to the first step with this"
                           " request. The lowest bucket ends at 0.3 s, so small"
                           " quantiles are an interpolation."),
            time_quantiles("Prefill time", PREFILL,
                           "From the first step to the first token. The lowest bucket"
                           " ends at 0.3 s."),
            heatmap("Time to first token, all", "s", TTFT,
                    "Two bands are two kinds of requests, as with and without a prefix"
                    " hit; a quantile hides them."),
            Panel("First token within a second", "percentunit",
                  "Share of requests, to be held against a promise. Exact, since 1 s is"
                  " a bucket's bound.",
                  [Query(f'sum by (model_name) (rate({TTFT}_bucket{{,le="1.0"}}{WINDOW}))'
                         f" / (sum by (model_name) (rate({TTFT}_count{{}}{WINDOW})) > 0)")],
                  top=1),
            Panel("Mean queue time by engine", "s",
                  "One engine above the others: the router does not see its queue.",
                  [mean(QUEUE, ENGINE, OF_ENGINE)]),
        ]),
        Row("Stream: decode", [
            itl(),
            time_quantiles("Time per output token", TPOT,
                           "Decode time over tokens after the first, one sample for each"
                           " request: stalls are averaged away, which is what the"
                           " comparison with the inter-token latency shows."),
            Panel("Stalls: p99 gap over mean time per token", "short",
                  "Above 4 the streams stutter though their mean is fine: prompts are"
                  " computed between tokens.",
                  [Query(f"histogram_quantile(0.99, sum by (le, model_name) (rate({ITL}_bucket{{}}{WINDOW})))"
                         f" / (sum by (model_name) (rate({TPOT}_sum{{}}{WINDOW}))"
                         f" / sum by (model_name) (rate({TPOT}_count{{}}{WINDOW})) > 0)")],
                  limits={4: "orange"}),
            heatmap("Inter-token latency, all", "s", ITL,
                    "The upper band is decoding beside prompts."),
            time_quantiles("Decode time", DECODE,
                           "From the first token to the last."),
            Panel("Decode share of the time on the engine", "percentunit",
                  "Above 0.85 with a busy memory: bound by its bandwidth. Below 0.5:"
                  " prompts are the load.",
                  [ratio(f"{DECODE}_sum", "vllm:request_inference_time_seconds_sum")],
                  top=1),
        ]),
        Row("Whole request", [
            phases(),
            time_quantiles("End to end", E2E, "From arrival to the last token."),
            Panel("Long tail: p99 over p50", "short",
                  "Grows when some requests are far longer than most, or are preempted.",
                  [Query(f"histogram_quantile(0.99, sum by (le, model_name) (rate({E2E}_bucket{{}}{WINDOW})))"
                         f" / (histogram_quantile(0.5, sum by (le, model_name) (rate({E2E}_bucket{{}}{WINDOW}))) > 0)")]),
        ]),
    ],
)

RESIDENCY = "Empty unless the engine samples KV blocks (kv_cache_metrics)."

CACHE = Dashboard(
    "cache",
    "vLLM / KV cache and prefix cache",
    "Is the pool large enough, what is found again, and how long blocks live.",
    [
        Row("Pool", [
            kv_usage(),
            preemptions(ENGINE, OF_ENGINE),
            Panel("Waiting for room", "short",
                  "Requests that a place, token budget or KV blocks would let in. Empty"
                  " before vLLM 0.20.",
                  [Query('vllm:num_requests_waiting_by_reason{,reason="capacity"}',
                         OF_ENGINE)]),
        ]),
        Row("Found again", [
            hit_rate(),
            Panel("Prompt tokens by source", "suffix: tok/s",
                  "Computed here, found here, or fetched through the KV connector.",
                  [per_second("vllm:prompt_tokens_by_source_total", "source",
                              "{{source}}")], stacked=True),
            Panel("Not computed", "percentunit",
                  "Share of prompt tokens that came from any cache: prefill that was"
                  " saved.",
                  [ratio("vllm:prompt_tokens_cached_total", "vllm:prompt_tokens_total")],
                  top=1),
            Panel("Hit rate by engine", "percentunit",
                  "All low and alike, with many engines: conversations are scattered.",
                  [ratio("vllm:prefix_cache_hits_total",
                         "vllm:prefix_cache_queries_total", ENGINE, OF_ENGINE)], top=1),
            Panel("Hit rate outside the engine", "percentunit",
                  "Of prompt tokens looked up through the KV connector. Empty unless one"
                  " is asked.",
                  [ratio("vllm:external_prefix_cache_hits_total",
                         "vllm:external_prefix_cache_queries_total")], top=1),
            Panel("Hit rate of multi-modal inputs", "percentunit",
                  "Images and the like that were prepared before. Empty unless requests"
                  " have some.",
                  [ratio("vllm:mm_cache_hits_total", "vllm:mm_cache_queries_total")],
                  top=1),
        ]),
        Row("Life of a block", [
            Panel("Idle before eviction", "s",
                  "From a block's last use to its eviction. Below the pause between two"
                  " turns of a user, the next turn finds nothing: the pool is too"
                  f" small. {RESIDENCY}",
                  quantiles("vllm:kv_block_idle_before_evict_seconds", 0.1, 0.5, 0.9)),
            Panel("Lifetime", "s", f"From allocation to eviction. {RESIDENCY}",
                  quantiles("vllm:kv_block_lifetime_seconds", 0.1, 0.5, 0.9)),
            Panel("Gap between uses", "s",
                  "Of blocks used more than once: what the idle time must exceed."
                  f" {RESIDENCY}",
                  quantiles("vllm:kv_block_reuse_gap_seconds", 0.5, 0.9)),
            heatmap("Idle before eviction, all", "s",
                    "vllm:kv_block_idle_before_evict_seconds", RESIDENCY, width=12),
            Panel("Cache configuration", "none", "As the engine said at its start.",
                  [Query('vllm:cache_config_info{instance=~"$instance",'
                         'engine=~"$engine"}')],
                  kind="table", hidden=("Value",), width=12),
        ]),
    ],
)

SCHEDULING = Dashboard(
    "scheduling",
    "vLLM / Scheduling",
    "What each step is made of, who waits and why, how requests end.",
    [
        Row("Queue and batch", [
            Panel("Running", "short",
                  "Flat at a round number while requests wait and the KV cache has"
                  " room: max-num-seqs is the limit.",
                  [Query("vllm:num_requests_running{}", OF_ENGINE)]),
            Panel("Waiting by reason", "short",
                  "capacity: room would let them in; deferred: passed over for now, as"
                  " while their KV is fetched. Empty before vLLM 0.20.",
                  [total("vllm:num_requests_waiting_by_reason{}", "model_name, reason",
                         "{{reason}} {{model_name}}")], stacked=True),
            Panel("Waiting by engine", "short", "One queue above the others: routing.",
                  [Query("vllm:num_requests_waiting{}", OF_ENGINE)]),
            preemptions(ENGINE, OF_ENGINE),
            Panel("Preemptions of a request", "short",
                  "99th percentile over ended requests. Empty before vLLM 0.30.",
                  [quantile(0.99, "vllm:request_num_preemptions")]),
            Panel("Awake", "short",
                  "1 for an engine that serves; 0 for one that was put to sleep.",
                  [Query('vllm:engine_sleep_state{,sleep_state="awake"}', OF_ENGINE)],
                  top=1),
        ]),
        Row("Steps", [
            tokens_per_step(),
            Panel("Steps with output", "ops",
                  "Per second. Its inverse is about the time of a step.",
                  [per_second(f"{STEP}_count", ENGINE, OF_ENGINE)]),
            Panel("Share of prompt tokens in a step", "percentunit",
                  "Near 1: the engine mostly computes prompts.",
                  [Query(f"1 - sum by (model_name) (rate(vllm:generation_tokens_total{{}}{WINDOW}))"
                         f" / (sum by (model_name) (rate({STEP}_sum{{}}{WINDOW})) > 0)")],
                  top=1),
            heatmap("Tokens per step, all", "short", STEP,
                    "Pure decoding below, steps with prompts above.", width=24),
        ]),
        Row("Requests", [
            Panel("Ends by reason", "reqps",
                  "A growing share of abort: clients give up. Of length: answers are cut"
                  " off.",
                  [per_second("vllm:request_success_total", "finished_reason",
                              "{{finished_reason}}")], stacked=True),
            Panel("Prompt length", "suffix: tok", "Of ended requests.",
                  quantiles("vllm:request_prompt_tokens", 0.5, 0.95)),
            Panel("Generated length", "suffix: tok", "Of ended requests.",
                  quantiles("vllm:request_generation_tokens", 0.5, 0.95)),
            Panel("Allowed length", "suffix: tok",
                  "max_tokens as clients ask for it; far above the generated length it"
                  " promises nothing. Empty unless they do.",
                  quantiles("vllm:request_params_max_tokens", 0.5, 0.95)),
            Panel("Prompt tokens computed", "suffix: tok",
                  "Of a prompt, what no cache had.",
                  quantiles("vllm:request_prefill_kv_computed_tokens", 0.5, 0.95)),
            Panel("Sequences of a request", "short", "Mean of the parameter n.",
                  [mean("vllm:request_params_n")]),
        ]),
        Row("Admission and LoRA", [
            Panel("Refused at admission", "ops",
                  "Attempts, by reason; clients see an error and no latency. Empty"
                  " before vLLM 0.32.",
                  [Query("sum by (reason) (rate(vllm:admission_rejections_total"
                         '{model_name=~"$model",instance=~"$instance"}'
                         f"{WINDOW}))", "{{reason}}")],
                  limits={0.001: "orange"}, width=8),
            Panel("Adapters with requests", "dateTimeAsIso",
                  "The value is when it was so. vLLM keeps every set it ever had. Empty"
                  " unless LoRA is on.",
                  [Query('vllm:lora_requests_info{instance=~"$instance"} * 1000')],
                  kind="table", width=16),
        ]),
    ],
)

SPECULATIVE = "Empty unless the engine speculates."
DIFFUSES = "Empty unless the model is a diffusion model."
ACCEPTED = "vllm:spec_decode_num_accepted_tokens"
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
DRAFTS = "vllm:spec_decode_num_drafts_total"

SPECULATION = Dashboard(
    "speculation",
    "vLLM / Speculative decoding",
    "Does guessing ahead pay: what is accepted, and what it does to the streams.",
    [
        Row("Acceptance", [
            Panel("Acceptance rate", "percentunit",
                  "Accepted over drafted tokens. Above about 0.6 it pays; below 0.4 it"
                  f" costs. {SPECULATIVE}",
                  [ratio(f"{ACCEPTED}_total", DRAFTED)], top=1),
            Panel("Tokens per draft", "short",
                  "1 + accepted tokens per draft: how many tokens a step gives a"
                  f" request. {SPECULATIVE}",
                  [Query(f"1 + sum by (model_name) (rate({ACCEPTED}_total{{}}{WINDOW}))"
                         f" / (sum by (model_name) (rate({DRAFTS}{{}}{WINDOW})) > 0)")]),
            Panel("Acceptance by position", "percentunit",
                  "Positions that are hardly ever accepted can be left away."
                  f" {SPECULATIVE}",
                  [Query(f"sum by (position) (rate({ACCEPTED}_per_pos_total{{}}{WINDOW}))"
                         " / ignoring (position) group_left ()"
                         f" (sum (rate({DRAFTS}{{}}{WINDOW})) > 0)", "position {{position}}")],
                  top=1),
        ]),
        Row("Effect", [
            Panel("Drafted and accepted", "suffix: tok/s",
                  f"The gap is work thrown away. {SPECULATIVE}",
                  [per_second(DRAFTED, legend="drafted {{model_name}}"),
                   per_second(f"{ACCEPTED}_total", legend="accepted {{model_name}}")]),
            time_quantiles("Time per output token", TPOT,
                           "What speculation is for: should fall when it is turned on."),
            itl(),
        ]),
        Row("Diffusion", [
            Panel("Denoising steps", "ops", DIFFUSES,
                  [per_second("vllm:diffusion_num_denoising_steps_total")]),
            Panel("Committed tokens per step", "short", DIFFUSES,
                  [ratio("vllm:diffusion_num_committed_tokens_total",
                         "vllm:diffusion_num_denoising_steps_total")]),
            Panel("Committed share of canvas positions", "percentunit", DIFFUSES,
                  [ratio("vllm:diffusion_num_committed_tokens_total",
                         "vllm:diffusion_num_canvas_positions_total")], top=1),
        ]),
    ],
)

NODE = Variable("node", "Node", "label_values(up, node)")
ON_NODE = '{node=~"$node"}'
ESTIMATE = "Empty, or 0, unless the engine estimates its work (enable_mfu_metrics)."
DCGM = "Empty without NVIDIA's DCGM exporter."
GPU = "{{node}} GPU {{gpu}}"
FLOPS = f"rate(vllm:estimated_flops_per_gpu_total{{}}{WINDOW})"
BYTES = (
    f"(rate(vllm:estimated_read_bytes_per_gpu_total{{}}{WINDOW})"
    f" + rate(vllm:estimated_write_bytes_per_gpu_total{{}}{WINDOW}))"
)


def device(title, unit, metric, about, **more):
    return Panel(
        title, unit, f"{about} {DCGM}", [Query(f"{metric}{ON_NODE}", GPU)], **more
    )


HARDWARE = Dashboard(
    "hardware",
    "vLLM / MFU and hardware",
    "Is the device busy, with what, and what holds it back. Set the peaks above to"
    " those of your device.",
    [
        Row("What the engine asks for, estimated", [
            Panel("Arithmetic per GPU", "flops", ESTIMATE, [Query(FLOPS, OF_ENGINE)]),
            Panel("Model FLOPs utilization", "percentunit",
                  f"Of the peak that is set above. {ESTIMATE}",
                  [Query(f"{FLOPS} / ($peak_tflops * 1e12)", OF_ENGINE)], top=1),
            Panel("Memory traffic of the peak", "percentunit",
                  f"Read and written bytes over the peak that is set above. {ESTIMATE}",
                  [Query(f"{BYTES} / ($peak_gbytes * 1e9)", OF_ENGINE)], top=1),
            Panel("Arithmetic intensity", "suffix: FLOP/byte",
                  "Below peak FLOPs over peak bandwidth (about 300 for an H100), memory"
                  f" is the limit. {ESTIMATE}",
                  [Query(f"{FLOPS} / ({BYTES} > 0)", OF_ENGINE)]),
            phases(),
            kv_usage(),
        ]),
        Row("What the device says", [
            device("Tensor cores active", "percentunit",
                   "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                   "Above 0.6 to 0.7: bound by arithmetic.",
                   limits={0.6: "orange"}, top=1),
            device("Memory active", "percentunit", "DCGM_FI_PROF_DRAM_ACTIVE",
                   "Above 0.75 with idle tensor cores: bound by memory bandwidth.",
                   limits={0.75: "orange"}, top=1),
            device("GPU utilization", "percent", "DCGM_FI_DEV_GPU_UTIL",
                   "Some kernel ran. 100 % with any bottleneck: never scale on it.",
                   top=100),
            device("Memory in use", "mbytes", "DCGM_FI_DEV_FB_USED",
                   "Full from the start on, since the KV pool takes what is left: the"
                   " KV cache usage tells the level."),
            device("Power", "watt", "DCGM_FI_DEV_POWER_USAGE",
                   "At its limit the clocks fall."),
            device("Temperature", "celsius", "DCGM_FI_DEV_GPU_TEMP",
                   "At its limit the clocks fall.", limits={85: "red"}),
            Panel("Clock", "hertz", f"Lower than its neighbours: throttled. {DCGM}",
                  [Query(f"DCGM_FI_DEV_SM_CLOCK{ON_NODE} * 1e6", GPU)]),
            device("XID errors", "short", "DCGM_FI_DEV_XID_ERRORS",
                   "The number of the last one; 0: none."),
            Panel("Joules per token", "joule",
                  f"Power of all GPUs over generated tokens of all engines. {DCGM}",
                  [Query(f"sum(DCGM_FI_DEV_POWER_USAGE{ON_NODE})"
                         f" / (sum(rate(vllm:generation_tokens_total{{}}{WINDOW})) > 0)",
                         "joules per token")]),
        ]),
    ],
    [
        NODE,
        Variable("peak_tflops", "Peak TFLOP/s", preset="989"),
        Variable("peak_gbytes", "Peak GB/s", preset="3350"),
    ],
)

NIXL = "Empty unless the engine uses the NIXL connector."

OFFLOADING = "Empty unless the engine uses the offloading connector."
MOONCAKE = "Empty unless the engine uses the Mooncake store."
SIMPLE = "Empty unless the engine uses the simple offloading connector."
STORE = "vllm:mooncake_store_operation"


def nixl(title, unit, about, queries, **more):
    return Panel(title, unit, f"{about} {NIXL}".strip(), queries, **more)


TRANSFER = Dashboard(
    "transfer",
    "vLLM / KV transfer",
    "KV blocks between prefill and decode machines, and between GPU and elsewhere.",
    [
        Row("NIXL", [
            nixl("Transfers", "ops", "Successful ones.",
                 [per_second("vllm:nixl_xfer_time_seconds_count", ENGINE, OF_ENGINE)]),
            nixl("Transfer time", "s", "Adds to the time to first token.",
                 quantiles("vllm:nixl_xfer_time_seconds")),
            nixl("Time to post", "s", "On the scheduler's thread.",
                 quantiles("vllm:nixl_post_time_seconds")),
            nixl("Bandwidth while transferring", "Bps",
                 "Bytes over transfer time. Far below the link: small pieces, see"
                 " descriptors.",
                 [ratio("vllm:nixl_bytes_transferred_sum",
                        "vllm:nixl_xfer_time_seconds_sum")]),
            nixl("Size", "bytes", "Of a transfer.",
                 quantiles("vllm:nixl_bytes_transferred", 0.5, 0.95)),
            nixl("Descriptors", "short", "Pieces of a transfer.",
                 quantiles("vllm:nixl_num_descriptors", 0.5, 0.95)),
            nixl("Failures", "ops", "Should be 0.",
                 [per_second("vllm:nixl_num_failed_transfers_total",
                             legend="transfers {{model_name}}"),
                  per_second("vllm:nixl_num_failed_notifications_total",
                             legend="notifications {{model_name}}")],
                 limits={0.001: "red"}),
            nixl("Expired before fetched", "ops",
                 "Requests whose blocks nobody fetched in time: decode is full or gone.",
                 [per_second("vllm:nixl_num_kv_expired_reqs_total", ENGINE, OF_ENGINE)],
                 limits={0.001: "red"}),
            Panel("Prompt tokens from outside", "suffix: tok/s",
                  "Fetched through a connector instead of computed.",
                  [per_second("vllm:prompt_tokens_by_source_total", "source",
                              "{{source}}")]),
        ]),
        Row("Offloading", [
            Panel("Stored and loaded", "Bps", f"From the GPU, and back. {OFFLOADING}",
                  [per_second("vllm:kv_offload_store_bytes_total",
                              legend="stored {{model_name}}"),
                   per_second("vllm:kv_offload_load_bytes_total",
                              legend="loaded {{model_name}}")]),
            Panel("Bandwidth while moving", "Bps",
                  f"Bytes over the time their moves took. {OFFLOADING}",
                  [ratio("vllm:kv_offload_store_bytes_total",
                         "vllm:kv_offload_store_time_total",
                         legend="stores {{model_name}}"),
                   ratio("vllm:kv_offload_load_bytes_total",
                         "vllm:kv_offload_load_time_total",
                         legend="loads {{model_name}}")]),
            Panel("Size of a move", "bytes", f"95th percentile. {OFFLOADING}",
                  [quantile(0.95, "vllm:kv_offload_store_size", legend="stores"),
                   quantile(0.95, "vllm:kv_offload_load_size", legend="loads")]),
            Panel("Lookup on the scheduler's thread", "s",
                  f"Every step waits for it. {OFFLOADING}",
                  quantiles("vllm:kv_offload_lookup_sync_delay_seconds", 0.5, 0.99)),
            Panel("Lookup until its answer", "s",
                  f"The request waits for it, the step does not. {OFFLOADING}",
                  quantiles("vllm:kv_offload_lookup_async_delay_seconds", 0.5, 0.99)),
            Panel("Stores without room", "ops",
                  f"More memory outside the GPU would take them. {OFFLOADING}",
                  [per_second("vllm:kv_offload_allocation_failure_total", ENGINE,
                              OF_ENGINE)], limits={0.001: "orange"}),
        ]),
        Row("Mooncake store", [
            Panel("Calls", "ops", f"By what they do and how they end. {MOONCAKE}",
                  [per_second(f"{STORE}_total", "operation, status",
                              "{{operation}} {{status}}")]),
            Panel("Time of a call", "s", f"95th percentile. {MOONCAKE}",
                  [quantile(0.95, f"{STORE}_time_seconds", "operation",
                            "{{operation}}")]),
            Panel("Moved", "Bps", MOONCAKE,
                  [per_second(f"{STORE}_bytes_total", "operation", "{{operation}}")]),
            Panel("Keys", "ops", f"Named in calls. {MOONCAKE}",
                  [per_second(f"{STORE}_keys_total", "operation", "{{operation}}")],
                  width=12),
            Panel("Failed keys", "percentunit",
                  f"Share of the keys named. {MOONCAKE}",
                  [ratio(f"{STORE}_failed_keys_total", f"{STORE}_keys_total",
                         "operation", "{{operation}}")],
                  limits={0.01: "red"}, width=12),
        ]),
        Row("Simple offloading", [
            Panel("Saves by outcome", "ops",
                  f"Blocks. dropped_cpu_full: the pool is too small. {SIMPLE}",
                  [per_second("vllm:simple_kv_offload_save_outcomes_total", "outcome",
                              "{{outcome}}")], stacked=True),
            Panel("Loads", "ops",
                  f"Blocks. Issued and completed should run together. {SIMPLE}",
                  [per_second("vllm:simple_kv_offload_load_blocks_total", "phase",
                              "{{phase}}")]),
            Panel("Blocks", "short", f"In the pool, and on their way to it. {SIMPLE}",
                  [Query("vllm:simple_kv_offload_used_blocks{}", f"used {OF_ENGINE}"),
                   Query("vllm:simple_kv_offload_pending_store_blocks{}",
                         f"pending {OF_ENGINE}")]),
        ]),
    ],
)

FABRIC_GPU = "Empty unless DCGM's NVLink and PCIe fields are on, which its defaults leave off."
FABRIC_NODE = "Empty without node_exporter on nodes with InfiniBand."

FLEET = Dashboard(
    "fleet",
    "vLLM / Fleet",
    "Do the instances share the work, is one of them sick, does the fabric carry it.",
    [
        Row("Load", [
            Panel("Requests ended", "reqps", "Per second and model.",
                  [per_second("vllm:request_success_total")]),
            Panel("Requests ended by instance", "reqps",
                  "Lines together: an even load.",
                  [per_second("vllm:request_success_total", "instance", "{{instance}}")]),
            Panel("Share of each instance", "percentunit", "Of its model's requests.",
                  [Query("sum by (model_name, instance)"
                         f" (rate(vllm:request_success_total{{}}{WINDOW}))"
                         " / on (model_name) group_left ()"
                         " (sum by (model_name)"
                         f" (rate(vllm:request_success_total{{}}{WINDOW})) > 0)",
                         "{{instance}}")], stacked=True, top=1),
            Panel("Balance", "short",
                  "Busiest instance over the mean: 1 is even, above 1.5 one is hot.",
                  [Query("max by (model_name) (sum by (model_name, instance)"
                         f" (rate(vllm:request_success_total{{}}{WINDOW})))"
                         " / (avg by (model_name) (sum by (model_name, instance)"
                         f" (rate(vllm:request_success_total{{}}{WINDOW}))) > 0)")],
                  limits={1.5: "orange"}),
            Panel("Generated by instance", "suffix: tok/s",
                  "Even requests with uneven tokens: their lengths differ.",
                  [per_second("vllm:generation_tokens_total", "instance",
                              "{{instance}}")]),
            Panel("Prefix cache hit rate by instance", "percentunit",
                  "All lower than one instance alone would have: scattered"
                  " conversations.",
                  [ratio("vllm:prefix_cache_hits_total",
                         "vllm:prefix_cache_queries_total", "instance",
                         "{{instance}}")], top=1),
        ]),
        Row("Health", [
            kv_usage(),
            Panel("Waiting by instance", "short", "One queue above the others: routing.",
                  [total("vllm:num_requests_waiting{}", "instance", "{{instance}}")]),
            Panel("p95 of time to first token by instance", "s",
                  "One line above the others: a slow device, or its queue.",
                  [quantile(0.95, TTFT, "instance", "{{instance}}")]),
            Panel("Up", "short", "1 for each instance that answers its scrape.",
                  [Query('up{instance=~"$instance"} and on (instance)'
                         " (vllm:num_requests_running or up == 0)", "{{instance}}")],
                  top=1),
            Panel("Since the start", "s",
                  "Falls to 0 at a restart: out of memory, a crash, a deployment.",
                  [Query('time() - process_start_time_seconds{instance=~"$instance"}',
                         "{{instance}}")]),
            Panel("Host memory", "bytes", "Resident memory of the process.",
                  [Query('process_resident_memory_bytes{instance=~"$instance"}',
                         "{{instance}}")]),
        ]),
        Row("Fabric", [
            Panel("NVLink", "Bps", FABRIC_GPU,
                  [Query(f"DCGM_FI_PROF_NVLINK_TX_BYTES{ON_NODE}", f"sent {GPU}"),
                   Query(f"DCGM_FI_PROF_NVLINK_RX_BYTES{ON_NODE}", f"received {GPU}")]),
            Panel("PCIe", "Bps", FABRIC_GPU,
                  [Query(f"DCGM_FI_PROF_PCIE_TX_BYTES{ON_NODE}", f"sent {GPU}"),
                   Query(f"DCGM_FI_PROF_PCIE_RX_BYTES{ON_NODE}", f"received {GPU}")]),
            Panel("InfiniBand", "Bps", FABRIC_NODE,
                  [Query("rate(node_infiniband_port_data_transmitted_bytes_total"
                         f"{ON_NODE}{WINDOW})", "sent {{node}} {{device}}:{{port}}"),
                   Query("rate(node_infiniband_port_data_received_bytes_total"
                         f"{ON_NODE}{WINDOW})", "received {{node}} {{device}}:{{port}}")]),
        ]),
    ],
    [NODE],
)

ALL = [OVERVIEW, LATENCY, CACHE, SCHEDULING, SPECULATION, HARDWARE, TRANSFER, FLEET]
