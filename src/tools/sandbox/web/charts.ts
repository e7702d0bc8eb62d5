// The charts, over virtual time.

import uPlot from "uplot";
import { Figures, shown } from "./figures";

interface Line {
  figure: string;
  label: string;
  color: number; // 1..4, a CSS variable; 0: a limit
}

interface Chart {
  title: string;
  unit: string;
  full?: number; // the axis reaches at least so far
  lines: Line[];
}

const quantiles = (figure: string): Line[] => [
  { figure: figure + "50", label: "p50", color: 1 },
  { figure: figure + "95", label: "p95", color: 2 },
  { figure: figure + "99", label: "p99", color: 3 },
];

const charts: Chart[] = [
  { title: "KV cache usage", unit: "%", full: 100, lines: [{ figure: "kv", label: "used", color: 1 }] },
  { title: "Requests", unit: "", lines: [
    { figure: "running", label: "running", color: 1 },
    { figure: "capacity", label: "waiting: capacity", color: 3 },
    { figure: "deferred", label: "waiting: deferred", color: 2 }] },
  { title: "Preemptions", unit: "/s", full: 0.5, lines: [{ figure: "preemptions", label: "preemptions", color: 3 }] },
  { title: "Tokens per step", unit: "", lines: [
    { figure: "stepTokens", label: "mean", color: 1 },
    { figure: "stepTokens99", label: "p99", color: 2 },
    { figure: "budget", label: "limit", color: 0 }] },
  { title: "Time to first token", unit: "ms", lines: quantiles("ttft") },
  { title: "Inter-token latency", unit: "ms", lines: quantiles("itl") },
  { title: "Where requests spend their time", unit: "%", full: 100, lines: [
    { figure: "queueShare", label: "queue", color: 3 },
    { figure: "prefillShare", label: "prefill", color: 2 },
    { figure: "decodeShare", label: "decode", color: 1 }] },
  { title: "Throughput", unit: "tokens/s", lines: [
    { figure: "output", label: "out", color: 1 },
    { figure: "prompt", label: "in", color: 2 }] },
  { title: "Prefix cache hit rate", unit: "%", full: 100, lines: [{ figure: "hits", label: "hits", color: 1 }] },
  { title: "Device, active", unit: "%", full: 100, lines: [
    { figure: "tensor", label: "tensor pipe", color: 2 },
    { figure: "dram", label: "DRAM", color: 1 }] },
  { title: "Arithmetic per GPU", unit: "TFLOP/s", lines: [{ figure: "flops", label: "estimated", color: 2 }] },
  { title: "Memory traffic per GPU", unit: "GB/s", lines: [{ figure: "bytes", label: "estimated", color: 1 }] },
];

export interface Mark {
  seconds: number;
  number: number;
}

export function clock(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(s / 60);
  return `${minutes}:${String(s % 60).padStart(2, "0")}`;
}

// The past hour, which is the longest window: each poll of its last minutes,
// before them a point now and then. Seconds are virtual, so that there are no more
// points however slowly they pass.
export class History {
  static readonly kSeconds = 3600;
  static readonly kFine = 300;
  static readonly kFineGap = 0.25;
  static readonly kCoarseGap = 4;
  static readonly kThinEvery = 64; // points; at most 2025 are left then
  private fresh = 0;
  private points: { seconds: number; figures: Figures }[] = [];

  clear(): void {
    this.points = [];
  }

  add(seconds: number, figures: Figures): void {
    const before = this.points[this.points.length - 2];
    if (before && seconds - before.seconds < History.kFineGap) this.points.pop();
    this.points.push({ seconds, figures });
    if (++this.fresh >= History.kThinEvery) this.thin(seconds);
  }

  private thin(now: number): void {
    let kept = -Infinity;
    this.fresh = 0;
    this.points = this.points.filter(({ seconds }) => {
      const age = now - seconds;
      if (age > History.kSeconds) return false;
      if (age > History.kFine && seconds - kept < History.kCoarseGap) return false;
      kept = seconds;
      return true;
    });
  }

  get last(): Figures | null {
    return this.points[this.points.length - 1]?.figures ?? null;
  }

  // The columns of these figures, time first, from `start` on.
  columns(names: string[], start: number): (number | null)[][] {
    const first = this.points.findIndex(({ seconds }) => seconds >= start);
    const from = first < 0 ? [] : this.points.slice(Math.max(0, first - 1));
    const value = (x: number) => (Number.isFinite(x) ? x : null);
    return [
      from.map(({ seconds }) => seconds),
      ...names.map((name) => from.map(({ figures }) => value(figures[name]))),
    ];
  }
}

export class Charts {
  private plots: { plot: uPlot; chart: Chart; values: HTMLElement[]; box: HTMLElement }[] = [];
  private marks: Mark[] = [];

  constructor(private readonly root: HTMLElement) {
    this.make();
    new ResizeObserver(() => this.resize()).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.make());
  }

  draw(history: History, start: number, end: number, marks: Mark[]): void {
    this.marks = marks;
    for (const { plot, chart, values } of this.plots) {
      const columns = history.columns(chart.lines.map(({ figure }) => figure), start);
      plot.batch(() => {
        plot.setData(columns as uPlot.AlignedData, false);
        plot.setScale("x", { min: start, max: Math.max(end, start + 1) });
      });
      chart.lines.forEach(({ figure }, i) => {
        const text = shown(history.last?.[figure], chart.unit === "ms" ? "ms" : "");
        if (values[i].textContent !== text) values[i].textContent = text;
      });
    }
  }

  private make(): void {
    this.root.replaceChildren();
    this.plots = charts.map((chart) => {
      const box = document.createElement("figure");
      box.className = "chart";
      const title = document.createElement("figcaption");
      const name = document.createElement("h3");
      name.textContent = chart.title + (chart.unit ? `, ${chart.unit}` : "");
      const legend = document.createElement("p");
      const values = chart.lines.map(({ label, color }) => {
        const item = document.createElement("span");
        item.className = `line line-${color}`;
        const value = document.createElement("b");
        value.textContent = "–";
        item.append(label + " ", value);
        legend.append(item);
        return value;
      });
      title.append(name, legend);
      const canvas = document.createElement("div");
      canvas.setAttribute("aria-hidden", "true");
      box.append(title, canvas);
      this.root.append(box);
      return { plot: this.plot(chart, canvas), chart, values, box: canvas };
    });
  }

  private plot(chart: Chart, box: HTMLElement): uPlot {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: color("--muted"),
      grid: { stroke: color("--grid"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui, sans-serif",
    };
    return new uPlot(
      {
        width: Math.max(200, box.clientWidth || 320),
        height: 150,
        legend: { show: false },
        cursor: { sync: { key: "time" }, drag: { setScale: false, x: false, y: false } },
        scales: {
          x: { time: false },
          y: { range: (_, __, max) => [0, Math.max(chart.full ?? 0, (max ?? 0) * 1.08) || 1] },
        },
        axes: [
          { ...axis, size: 24, values: (_, all) => all.map((s) => clock(s)) },
          { ...axis, size: 46, values: (_, all) => all.map((v) =>
            v >= 1000 ? `${Number((v / 1000).toPrecision(3))}k` : String(Number(v.toPrecision(3)))) },
        ],
        series: [
          {},
          ...chart.lines.map(({ label, color: index }) => ({
            label,
            stroke: color(`--line-${index}`),
            width: index === 0 ? 1 : 1.75,
            dash: index === 0 ? [4, 4] : undefined,
            points: { show: false },
            spanGaps: true,
          })),
        ],
        hooks: { draw: [(plot) => this.drawMarks(plot, color("--mark"))] },
      },
      [[], ...chart.lines.map(() => [])] as unknown as uPlot.AlignedData,
      box,
    );
  }

  private drawMarks(plot: uPlot, color: string): void {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.lineWidth = ratio;
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    for (const { seconds, number } of this.marks) {
      const x = Math.round(plot.valToPos(seconds, "x", true)) + 0.5;
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(String(number), x + 3 * ratio, bbox.top + 10 * ratio);
    }
    ctx.restore();
  }

  private resize(): void {
    for (const { plot, box } of this.plots) {
      const width = box.clientWidth;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: 150 });
    }
  }
}
