// Which figures a parameter moves when it goes up, by docs/sandbox.md.

import { Figures, kinds, shown } from "./figures";

type Direction = 1 | -1;
type Expected = Record<string, Direction>;

const running: Expected = { running: 1, waiting: -1, queue: -1, preemptions: 1, itl50: 1 };

const upward: Record<string, Expected> = {
  "gpu-memory-utilization": { kv: -1, preemptions: -1, hits: 1 },
  "kv-cache-dtype": { kv: -1, itl50: -1, output: 1 },
  "max-num-batched-tokens": { stepTokens: 1, prefill: -1, ttft95: -1, itl99: 1 },
  "max-num-seqs": running,
  "max-num-active-seqs": running,
  "long-prefill-token-threshold": { ttft50: 1, itl99: 1, prefill: -1 },
  "max-model-len": { refused: -1 },
  "block-size": { kv: 1 },
  "enable-prefix-caching": { hits: 1, prefill: -1, computed: -1 },
  "speculative-tokens": { stepTokens: 1, itl: 1, tpot: -1 },
  "acceptance-rate": { tpot: -1, output: 1 },
  "tensor-parallel-size": { flops: -1, itl50: -1, kv: -1 },
  "enable-expert-parallel": { stepBytes: -1 },
  engines: { waiting: -1, queue: -1, kv: -1 },
  "enforce-eager": { itl50: 1 },
  rate: { running: 1, kv: 1, output: 1 },
  concurrency: { running: 1, kv: 1, itl50: 1 },
  "think-time": { running: -1, output: -1 },
  "prompt-tokens": { prefill: 1, ttft50: 1, kv: 1 },
  "output-tokens": { decode: 1, running: 1, kv: 1 },
  "long-prompt-share": { prefill: 1, itl99: 1 },
  "long-prompt-tokens": { prefill: 1, itl99: 1 },
  "prefix-share": { hits: 1, prefill: -1, computed: -1 },
  patience: { aborted: -1, queue: 1 },
};

// Without an expectation of its own.
const general: string[] = ["ttft95", "itl99", "output", "kv"];

const order: Record<string, unknown[]> = { "kv-cache-dtype": ["auto", "fp8", "nvfp4"] };

// 0 stands for no limit.
const unlimited = ["max-num-active-seqs", "long-prefill-token-threshold", "patience"];

function rank(name: string, value: unknown): number {
  if (order[name]) return order[name].indexOf(value);
  const number = Number(value);
  return unlimited.includes(name) && number === 0 ? Infinity : number;
}

export interface Row {
  label: string;
  before: string;
  after: string;
  expected: string; // "", "up" or "down"
  measured: string; // "", "same", "up" or "down"
}

export function compare(
  name: string, from: unknown, to: unknown, before: Figures, after: Figures | null,
): Row[] {
  const expected = upward[name] ?? {};
  const sign = Math.sign(rank(name, to) - rank(name, from)) || 0;
  const names = Object.keys(expected).length > 0 ? Object.keys(expected) : general;
  return names.map((figure) => {
    const { label, unit } = kinds[figure];
    const want = (expected[figure] ?? 0) * sign;
    const [a, b] = [before[figure], after ? after[figure] : NaN];
    let measured = "";
    if (Number.isFinite(a) && Number.isFinite(b)) {
      const same = Math.abs(b - a) <= Math.max(0.05 * Math.abs(a), 0.01);
      measured = same ? "same" : b > a ? "up" : "down";
    }
    return {
      label,
      before: shown(a, unit),
      after: after ? shown(b, unit) : "…",
      expected: want === 0 ? "" : want > 0 ? "up" : "down",
      measured,
    };
  });
}

export const advice: Record<string, string> = {
  "": "Lower gpu-memory-utilization until preemptions appear; then lower max-num-active-seqs until they vanish.",
  healthy: "Nothing to repair. Raise the arrival rate and see which figure gives way first.",
  idle: "Nobody asks. Raise the arrival rate.",
  "queue-saturated": "The KV cache is full. Try kv-cache-dtype fp8, or more gpu-memory-utilization.",
  "false-saturation": "The queue grows while the cache is half empty. Raise max-num-seqs.",
  "long-prompts": "First tokens wait for prefill. Raise max-num-batched-tokens, or the shared prefix.",
  "prefill-interference": "Streams stutter whenever a long prompt arrives. Lower max-num-batched-tokens to 512 and watch ITL p99, or set long-prefill-token-threshold to 1024.",
  "bandwidth-bound": "Each token reads much memory. Try kv-cache-dtype fp8, or fewer clients.",
  "compute-bound": "The tensor cores are busy with prompts. Raise the shared prefix; more max-num-batched-tokens does not help.",
  "preemption-storm": "Requests are admitted, outgrow the cache and start again. Lower max-num-active-seqs to 20.",
  "cache-thrashing": "Blocks are evicted before a client's next turn. Raise gpu-memory-utilization.",
  "scattered-sessions": "After a minute turns go to any engine. Set routing back to sticky.",
  "clients-give-up": "Clients leave while they wait. Raise data-parallel-size, or lower the rate.",
};
