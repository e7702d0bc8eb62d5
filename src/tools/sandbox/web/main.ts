// The page: asks for /metrics twice a second and shows what it says.

import { Control, Diagnosis, Scenario, State, Value, get, metrics, order } from "./api";
import { Charts, History, Mark, clock } from "./charts";
import { Form } from "./controls";
import { advice, compare } from "./expectations";
import { Figures, figures, kinds, shown } from "./figures";
import { MetricsPage } from "./metrics_page";

// Virtual seconds: what figures are taken over, how long a change takes to
// show, and how long it is watched then.
const kSpan = 10;
const kSettle = 10;
const kWatch = 20;

const kPoll = 500; // ms
const kChanges = 12; // shown

interface Change {
  number: number;
  seconds: number;
  name: string;
  from: Value;
  to: Value;
  before: Figures;
  base: MetricsPage | null; // after it has settled
  after: Figures | null;
  done: boolean;
}

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;

function make(tag: string, text = "", className = ""): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function say(id: string, text: string): void {
  const place = element(id);
  if (place.textContent !== text) place.textContent = text;
  place.hidden = text === "";
}

class Sandbox {
  private readonly history = new History();
  private readonly charts = new Charts(element("charts"));
  private readonly form: Form;
  private pages: MetricsPage[] = []; // the last kSpan seconds
  private changes: Change[] = [];
  private numChanges = 0;
  private refusal = "";

  constructor(
    controls: Control[], private readonly scenarios: Scenario[], private state: State,
  ) {
    this.form = new Form(element("controls"), controls, (name, value) => void this.turn(name, value));
    this.listScenarios();
    this.connectTransport();
    this.show(state);
  }

  async start(): Promise<void> {
    if (location.hash.length > 1) await this.restore();
    void this.poll();
    void this.diagnose();
  }

  private listScenarios(): void {
    for (const { name, summary } of this.scenarios) {
      if (name === "") continue;
      const button = make("button", name) as HTMLButtonElement;
      button.type = "button";
      button.title = summary;
      button.dataset.scenario = name;
      button.addEventListener("click", () => void this.send({ scenario: name }));
      element("scenarios").append(button);
    }
  }

  private connectTransport(): void {
    const speed = element<HTMLSelectElement>("speed");
    for (const times of [1, 2, 5, 10, 20, 50, 100]) speed.add(new Option(`${times}×`, String(times)));
    speed.addEventListener("change", () => void this.send({ speed: Number(speed.value) }));
    const window = element<HTMLSelectElement>("window");
    for (const [label, seconds] of [["auto", 0], ["1 min", 60], ["5 min", 300], ["60 min", 3600]] as const) {
      window.add(new Option(label, String(seconds)));
    }
    window.addEventListener("change", () => this.draw());
    const seed = element<HTMLInputElement>("seed");
    seed.addEventListener("change", () => void this.send({ seed: Number(seed.value) }));
    element("pause").addEventListener("click", () => void this.send({ paused: !this.state.paused }));
    element("reset").addEventListener("click", () => void this.send({ reset: true }));
    element("link").addEventListener("click", () => void this.copyLink());
  }

  private async turn(name: string, value: Value): Promise<void> {
    const from = this.state.parameters[name];
    if (from === value) return;
    const before = this.recent() ?? this.history.last;
    if (!(await this.send({ parameters: { [name]: value } }))) return;
    for (const change of this.changes) change.done = true;
    this.changes.unshift({
      number: ++this.numChanges, seconds: this.now, name, from, to: value,
      before: before ?? {}, base: null, after: null, done: false,
    });
    this.changes = this.changes.slice(0, kChanges);
    this.pages = this.pages.slice(-1);
    this.listChanges();
    this.draw();
  }

  private async send(wanted: object): Promise<boolean> {
    try {
      this.refusal = "";
      this.show(await order(wanted));
      return true;
    } catch (error) {
      this.refusal = (error as Error).message;
      this.show(this.state);
      return false;
    }
  }

  private show(state: State): void {
    this.state = state;
    this.form.set(state.parameters);
    const speed = element<HTMLSelectElement>("speed");
    if (![...speed.options].some(({ value }) => value === String(state.speed))) {
      speed.add(new Option(`${state.speed}×`, String(state.speed)));
    }
    speed.value = String(state.speed);
    const seed = element<HTMLInputElement>("seed");
    if (document.activeElement !== seed) seed.value = String(state.seed);
    say("pause", state.paused ? "Resume" : "Pause");
    element("pause").setAttribute("aria-pressed", String(state.paused));
    say("notice", this.refusal || state.message);
    for (const button of element("scenarios").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.scenario === state.scenario));
    }
    const summary = this.scenarios.find(({ name }) => name === state.scenario)?.summary;
    say("advice", (state.scenario && summary ? `${summary[0].toUpperCase()}${summary.slice(1)}. ` : "") + (advice[state.scenario] ?? ""));
  }

  // --- What /metrics says --------------------------------------------------

  private get now(): number {
    return this.pages[this.pages.length - 1]?.seconds ?? 0;
  }

  private async poll(): Promise<void> {
    try {
      this.take(new MetricsPage(await metrics()));
      const state = await get<State>("api/state");
      if (state.revision !== this.state.revision || state.message !== this.state.message) this.show(state);
    } catch (error) {
      say("notice", `The simulator does not answer (${(error as Error).message}).`);
    }
    setTimeout(() => void this.poll(), document.hidden ? 4 * kPoll : kPoll);
  }

  private take(page: MetricsPage): void {
    const last = this.pages[this.pages.length - 1];
    if (last && page.seconds < last.seconds) this.forget();
    else if (last && page.seconds === last.seconds) return;
    const steps = "vllm:iteration_tokens_total_count";
    if (last && page.sum(steps) < last.sum(steps)) this.pages = []; // another engine
    this.pages.push(page);
    while (this.pages.length > 2 && this.pages[1].seconds <= page.seconds - kSpan) this.pages.shift();
    const latest = this.recent();
    if (latest) {
      latest.budget = Number(this.state.parameters["max-num-batched-tokens"]);
      this.history.add(page.seconds, latest);
    }
    this.watchChange(page);
    this.showFigures(latest);
    this.draw();
  }

  private forget(): void {
    this.history.clear();
    this.pages = [];
    this.changes = [];
    this.numChanges = 0;
    this.listChanges();
  }

  // Over the last kSpan seconds.
  private recent(): Figures | null {
    if (this.pages.length < 2) return null;
    return figures(this.pages[0], this.pages[this.pages.length - 1]);
  }

  private watchChange(page: MetricsPage): void {
    const change = this.changes[0];
    if (!change || change.done) return;
    const since = page.seconds - change.seconds;
    if (since < kSettle) return;
    const steps = "vllm:iteration_tokens_total_count";
    if (!change.base || page.sum(steps) < change.base.sum(steps)) {
      change.base = page;
      return;
    }
    change.after = figures(change.base, page);
    change.done = page.seconds - change.base.seconds >= kWatch;
    this.listChanges();
  }

  // --- What is shown ---------------------------------------------------------

  private showFigures(latest: Figures | null): void {
    say("clock", clock(this.now));
    const tiles: [string, string][] = ["output", "ttft95", "itl99", "running", "waiting", "kv"]
      .map((name) => [kinds[name].label, shown(latest?.[name], kinds[name].unit)]);
    const list = element("tiles");
    if (list.childElementCount === 0) {
      for (const [label] of tiles) {
        const tile = make("div");
        tile.append(make("dt", label), make("dd"));
        list.append(tile);
      }
    }
    tiles.forEach(([, value], i) => {
      const place = list.children[i].lastElementChild!;
      if (place.textContent !== value) place.textContent = value;
    });
    const preempted = latest?.preemptions ?? 0;
    element("alarm").classList.toggle("ringing", preempted > 0);
    say("alarm", preempted > 0
      ? "Preemptions: running requests lose their KV blocks and start again. Lower max-num-active-seqs."
      : "No preemptions.");
  }

  private draw(): void {
    const chosen = Number(element<HTMLSelectElement>("window").value);
    const length = chosen || Math.min(3600, Math.max(60, 60 * this.state.speed));
    const marks: Mark[] = this.changes.map(({ seconds, number }) => ({ seconds, number }));
    const end = this.now;
    this.charts.draw(this.history, Math.max(0, end - length), end, marks);
  }

  private listChanges(): void {
    const place = element("changes");
    if (this.changes.length === 0) {
      place.replaceChildren(make("p", "Move a parameter: its figures before and after appear here.", "hint"));
      return;
    }
    place.replaceChildren(...this.changes.map((change) => this.changeTable(change)));
  }

  private changeTable(change: Change): HTMLElement {
    const table = make("table") as HTMLTableElement;
    const caption = table.createCaption();
    caption.append(make("span", String(change.number), "number"),
      ` ${change.name}: ${change.from} → ${change.to}`);
    const head = table.createTHead().insertRow();
    for (const title of ["", "before", "after", "expected", "measured"]) {
      const cell = make("th", title);
      cell.setAttribute("scope", "col");
      head.append(cell);
    }
    const body = table.createTBody();
    const arrows: Record<string, string> = { up: "↑ up", down: "↓ down", same: "≈ same", "": "" };
    for (const row of compare(change.name, change.from, change.to, change.before, change.after)) {
      const line = body.insertRow();
      const name = make("th", row.label);
      name.setAttribute("scope", "row");
      const agrees = row.expected === "" || row.measured === ""
        ? "" : row.measured === row.expected ? "agrees" : row.measured === "same" ? "same" : "differs";
      line.append(name, make("td", row.before), make("td", row.after),
        make("td", arrows[row.expected]), make("td", arrows[row.measured], agrees));
    }
    if (!change.done) {
      const wait = !change.after ? `Settling for ${kSettle} virtual seconds …` : `Measuring for ${kWatch} virtual seconds …`;
      const foot = table.createTFoot().insertRow().insertCell();
      foot.colSpan = 5;
      foot.textContent = wait;
    }
    return table;
  }

  private async diagnose(): Promise<void> {
    try {
      const { models, seconds } = await get<Diagnosis>("api/doctor");
      const place = element("doctor");
      const parts: HTMLElement[] = [];
      if (models.length === 0) {
        parts.push(make("p", `It needs ten seconds of virtual time since the last change: ${seconds.toFixed(0)} so far.`, "hint"));
      }
      for (const { state, why, findings } of models) {
        if (findings.length === 0) parts.push(make("p", `${state}${why && `: ${why}`}, over ${seconds.toFixed(0)} s.`));
        for (const finding of findings) {
          const article = make("article");
          article.dataset.finding = finding.id;
          article.append(make("h3", finding.title), make("p", finding.cause));
          const list = make("ul");
          for (const { text } of finding.evidence) list.append(make("li", text));
          article.append(list);
          const first = finding.levers[0];
          if (first) article.append(make("p", `Try ${first.parameter}: ${first.change}. It moves: ${first.moves}.`, "lever"));
          parts.push(article);
        }
      }
      if (place.textContent !== parts.map((part) => part.textContent).join("")) place.replaceChildren(...parts);
    } catch {
      // poll() tells that nobody answers.
    }
    setTimeout(() => void this.diagnose(), document.hidden ? 10000 : 2000);
  }

  // --- A link that restores a setting ---------------------------------------

  private async copyLink(): Promise<void> {
    const { scenario, seed, speed, parameters } = this.state;
    const from = this.scenarios.find(({ name }) => name === scenario)?.parameters ?? {};
    const link = new URLSearchParams({ scenario, seed: String(seed), speed: String(speed) });
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== from[name]) link.set(name, JSON.stringify(value));
    }
    history.replaceState(null, "", "#" + link);
    try {
      await navigator.clipboard.writeText(location.href);
      say("link", "Link copied");
    } catch {
      say("link", "Link in address bar");
    }
    setTimeout(() => say("link", "Copy link"), 2000);
  }

  private async restore(): Promise<void> {
    const wanted: Record<string, unknown> = { reset: true };
    const parameters: Record<string, unknown> = {};
    for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
      if (name === "scenario") {
        if (text) wanted.scenario = text;
      } else {
        let value: unknown = text;
        try {
          value = JSON.parse(text);
        } catch {
          // A text; the answer says whether it is allowed.
        }
        (name === "seed" || name === "speed" ? wanted : parameters)[name] = value;
      }
    }
    await this.send({ ...wanted, parameters });
  }
}

async function main(): Promise<void> {
  const [controls, scenarios, state] = await Promise.all([
    get<Control[]>("api/controls"), get<Scenario[]>("api/scenarios"), get<State>("api/state")]);
  await new Sandbox(controls, scenarios, state).start();
}

main().catch((error: Error) => say("notice", `The page could not start: ${error.message}`));
