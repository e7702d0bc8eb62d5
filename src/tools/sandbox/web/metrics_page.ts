// A metrics page, as far as the charts need it: values summed over engines.

interface Sample {
  labels: string;
  value: number;
}

export interface Histogram {
  count: number;
  sum: number;
  buckets: [number, number][]; // upper bound, cumulative count; ascending
}

export class MetricsPage {
  private readonly samples = new Map<string, Sample[]>();

  constructor(text: string) {
    for (const line of text.split("\n")) {
      if (line === "" || line.startsWith("#")) continue;
      const found = /^([\w:]+)(?:\{(.*)\})? (\S+)/.exec(line);
      if (!found) continue;
      const [, name, labels = "", value] = found;
      const list = this.samples.get(name);
      const sample = { labels, value: Number(value.replace("Inf", "Infinity")) };
      if (list) list.push(sample);
      else this.samples.set(name, [sample]);
    }
  }

  // Virtual seconds since the start.
  get seconds(): number {
    return this.sum("vllm_metrics_sim_seconds");
  }

  sum(name: string, label = ""): number {
    let sum = 0;
    for (const sample of this.samples.get(name) ?? []) {
      if (sample.labels.includes(label)) sum += sample.value;
    }
    return sum;
  }

  count(name: string): number {
    return this.samples.get(name)?.length ?? 0;
  }

  mean(name: string): number {
    return this.sum(name) / this.count(name);
  }

  histogram(name: string): Histogram {
    const buckets = new Map<number, number>();
    for (const { labels, value } of this.samples.get(name + "_bucket") ?? []) {
      const le = /le="([^"]*)"/.exec(labels)?.[1] ?? "";
      const bound = le === "+Inf" ? Infinity : Number(le);
      buckets.set(bound, (buckets.get(bound) ?? 0) + value);
    }
    return {
      count: this.sum(name + "_count"),
      sum: this.sum(name + "_sum"),
      buckets: [...buckets].sort((a, b) => a[0] - b[0]),
    };
  }

  // The value of an info metric's label; empty without one.
  label(name: string, label: string): string {
    const labels = this.samples.get(name)?.[0]?.labels ?? "";
    return new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels)?.[1] ?? "";
  }
}

// What a histogram took between two pages.
export function taken(before: Histogram, after: Histogram): Histogram {
  const old = new Map(before.buckets);
  return {
    count: after.count - before.count,
    sum: after.sum - before.sum,
    buckets: after.buckets.map(([le, n]) => [le, n - (old.get(le) ?? 0)]),
  };
}

export const mean = (h: Histogram): number => (h.count > 0 ? h.sum / h.count : NaN);

// As PromQL's histogram_quantile: interpolated in its bucket.
export function quantile(h: Histogram, q: number): number {
  if (!(h.count > 0)) return NaN;
  const rank = q * h.count;
  let low = 0;
  let below = 0;
  for (const [le, n] of h.buckets) {
    if (n >= rank) {
      if (le === Infinity) return low;
      return n === below ? le : low + ((le - low) * (rank - below)) / (n - below);
    }
    low = le;
    below = n;
  }
  return low;
}
