// What the charts and tables show, each from two metrics pages.

import { MetricsPage, mean, quantile, taken } from "./metrics_page";

export type Figures = Record<string, number>;

export interface Kind {
  label: string;
  unit: string;
  digits?: number;
}

export const kinds: Record<string, Kind> = {
  kv: { label: "KV cache usage", unit: "%" },
  running: { label: "Running requests", unit: "" },
  waiting: { label: "Waiting requests", unit: "" },
  preemptions: { label: "Preemptions", unit: "/s" },
  stepTokens: { label: "Tokens per step", unit: "" },
  ttft50: { label: "TTFT p50", unit: "ms" },
  ttft95: { label: "TTFT p95", unit: "ms" },
  ttft99: { label: "TTFT p99", unit: "ms" },
  itl50: { label: "ITL p50", unit: "ms" },
  itl95: { label: "ITL p95", unit: "ms" },
  itl99: { label: "ITL p99", unit: "ms" },
  itl: { label: "ITL mean", unit: "ms" },
  tpot: { label: "Time per output token", unit: "ms" },
  queue: { label: "Queue time", unit: "ms" },
  prefill: { label: "Prefill time", unit: "ms" },
  decode: { label: "Decode time", unit: "ms" },
  output: { label: "Output", unit: "tokens/s" },
  prompt: { label: "Prompts", unit: "tokens/s" },
  computed: { label: "Prompt tokens computed", unit: "/s" },
  hits: { label: "Prefix hit rate", unit: "%" },
  flops: { label: "Arithmetic per GPU", unit: "TFLOP/s" },
  bytes: { label: "Memory traffic per GPU", unit: "GB/s" },
  stepBytes: { label: "Memory traffic of a step per GPU", unit: "GB" },
  tensor: { label: "Tensor pipe active", unit: "%" },
  dram: { label: "DRAM active", unit: "%" },
  refused: { label: "Refused requests", unit: "/s" },
  aborted: { label: "Aborted requests", unit: "/s" },
};

const latency = {
  ttft: "vllm:time_to_first_token_seconds",
  itl: "vllm:inter_token_latency_seconds",
};

export function figures(before: MetricsPage, after: MetricsPage): Figures {
  const elapsed = after.seconds - before.seconds;
  const grown = (name: string, label = "") =>
    after.sum(name, label) - before.sum(name, label);
  const rate = (name: string, label = "") => grown(name, label) / elapsed;
  const spent = (name: string) => taken(before.histogram(name), after.histogram(name));
  const level = (name: string, label = "") =>
    (before.sum(name, label) + after.sum(name, label)) / 2;
  const moved = (grown("vllm:estimated_read_bytes_per_gpu_total") +
    grown("vllm:estimated_write_bytes_per_gpu_total")) / 1e9;
  const engines = Math.max(1, after.count("vllm:num_requests_running"));

  const out: Figures = {
    kv: 50 * (before.mean("vllm:kv_cache_usage_perc") + after.mean("vllm:kv_cache_usage_perc")),
    running: level("vllm:num_requests_running"),
    waiting: level("vllm:num_requests_waiting"),
    capacity: after.sum("vllm:num_requests_waiting_by_reason", 'reason="capacity"'),
    deferred: after.sum("vllm:num_requests_waiting_by_reason", 'reason="deferred"'),
    preemptions: rate("vllm:num_preemptions_total"),
    output: rate("vllm:generation_tokens_total"),
    prompt: rate("vllm:prompt_tokens_total"),
    computed: rate("vllm:prompt_tokens_by_source_total", 'source="local_compute"'),
    hits: (100 * grown("vllm:prefix_cache_hits_total")) / grown("vllm:prefix_cache_queries_total"),
    flops: rate("vllm:estimated_flops_per_gpu_total") / engines / 1e12,
    bytes: moved / elapsed / engines,
    tensor: 100 * after.mean("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    dram: 100 * after.mean("DCGM_FI_PROF_DRAM_ACTIVE"),
    refused: rate("vllm_metrics_sim_requests_refused_total"),
    aborted: rate("vllm:request_success_total", 'finished_reason="abort"'),
  };
  for (const [key, name] of Object.entries(latency)) {
    const h = spent(name);
    out[key] = 1e3 * mean(h);
    for (const q of [50, 95, 99]) out[`${key}${q}`] = 1e3 * quantile(h, q / 100);
  }
  const steps = spent("vllm:iteration_tokens_total");
  out.stepTokens = mean(steps);
  out.stepBytes = moved / steps.count;
  out.stepTokens99 = quantile(steps, 0.99);
  out.tpot = 1e3 * mean(spent("vllm:request_time_per_output_token_seconds"));
  const parts = ["queue", "prefill", "decode"];
  const times = parts.map((part) => spent(`vllm:request_${part}_time_seconds`));
  const all = times.reduce((sum, h) => sum + h.sum, 0);
  parts.forEach((part, i) => {
    out[part] = 1e3 * mean(times[i]);
    out[part + "Share"] = (100 * times[i].sum) / all;
  });
  return out;
}

// Three significant digits, and the unit.
export function shown(value: number | null | undefined, unit = ""): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (unit === "ms" && Math.abs(value) >= 1000) return shown(value / 1000, "s");
  let text: string;
  const size = Math.abs(value);
  if (size >= 10000) text = `${(value / 1000).toPrecision(3)}k`;
  else if (size >= 100) text = value.toFixed(0);
  else if (size >= 10) text = value.toFixed(1);
  else text = size < 0.005 ? "0" : value.toFixed(2);
  if (unit === "") return text;
  return unit === "%" || unit === "/s" ? text + unit : `${text} ${unit}`;
}
