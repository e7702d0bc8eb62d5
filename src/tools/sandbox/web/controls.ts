// A form made from /api/controls.

import { Control, Value, Values } from "./api";

// Positions of a slider: every whole number where they are few.
function resolution({ kind, scale, min, max }: Control): number {
  return kind === "whole" && scale === "linear" && max - min <= 1000 ? max - min : 100;
}

function position(control: Control, value: number): number {
  const { min, max, scale } = control;
  const part = scale === "log"
    ? Math.log(Math.max(value, min) / min) / Math.log(max / min)
    : (value - min) / (max - min);
  return Math.round(resolution(control) * Math.min(1, Math.max(0, part)));
}

function valueAt(control: Control, at: number): number {
  const { min, max, scale, kind } = control;
  const part = at / resolution(control);
  if (part <= 0) return min;
  if (part >= 1) return max;
  const raw = scale === "log" ? min * (max / min) ** part : min + (max - min) * part;
  const value = scale === "log" ? Number(raw.toPrecision(2)) : Number(raw.toFixed(2));
  return Math.min(max, Math.max(min, kind === "whole" ? Math.round(value) : value));
}

export class Form {
  private readonly show = new Map<string, (value: Value) => void>();

  constructor(
    root: HTMLElement, controls: Control[],
    private readonly change: (name: string, value: Value) => void,
  ) {
    let group: HTMLElement | null = null;
    let title = "";
    for (const control of controls) {
      if (control.group !== title) {
        title = control.group;
        group = document.createElement("details");
        (group as HTMLDetailsElement).open = matchMedia("(min-width: 901px)").matches;
        const summary = document.createElement("summary");
        summary.textContent = title;
        group.append(summary);
        root.append(group);
      }
      group?.append(this.row(control));
    }
    root.addEventListener("submit", (event) => event.preventDefault());
  }

  set(values: Values): void {
    for (const [name, value] of Object.entries(values)) this.show.get(name)?.(value);
  }

  private row(control: Control): HTMLElement {
    const row = document.createElement("div");
    row.className = "control";
    const label = document.createElement("label");
    label.htmlFor = `c-${control.name}`;
    label.textContent = control.label;
    const help = document.createElement("p");
    help.id = `h-${control.name}`;
    help.textContent = control.help + (control.restarts ? " · starts another engine" : "");
    row.append(label);
    const inputs = control.kind === "choice"
      ? [this.choice(control)]
      : control.kind === "turn" ? [this.turn(control)] : this.slider(control);
    inputs[0].id = `c-${control.name}`;
    inputs.forEach((input) => {
      input.setAttribute("aria-describedby", help.id);
      input.setAttribute("autocomplete", "off");
    });
    row.classList.add(control.kind);
    row.append(...inputs, help);
    return row;
  }

  private slider(control: Control): HTMLElement[] {
    const exact = document.createElement("input");
    exact.type = "number";
    exact.min = String(control.min);
    exact.max = String(control.max);
    exact.step = control.kind === "whole" ? "1" : "any";
    const slider = document.createElement("input");
    slider.type = "range";
    slider.max = String(resolution(control));
    slider.setAttribute("aria-label", `${control.label}, slider`);
    const tell = (value: number) =>
      slider.setAttribute("aria-valuetext", `${value} ${control.unit}`.trim());
    slider.addEventListener("input", () => {
      const value = valueAt(control, Number(slider.value));
      exact.value = String(value);
      tell(value);
    });
    slider.addEventListener("change", () =>
      this.change(control.name, valueAt(control, Number(slider.value))));
    exact.addEventListener("change", () =>
      this.change(control.name, Number(exact.value)));
    this.show.set(control.name, (value) => {
      const number = Number(value);
      if (document.activeElement !== exact) exact.value = String(control.kind === "whole" ? number : Number(number.toPrecision(number < 1 ? 3 : 5)));
      if (document.activeElement !== slider) slider.value = String(position(control, number));
      tell(number);
    });
    const unit = document.createElement("span");
    unit.className = "unit";
    unit.textContent = control.unit;
    return [exact, unit, slider];
  }

  private choice(control: Control): HTMLElement {
    const select = document.createElement("select");
    for (const value of control.values) select.add(new Option(String(value)));
    select.addEventListener("change", () =>
      this.change(control.name, control.values[select.selectedIndex]));
    this.show.set(control.name, (value) => (select.selectedIndex = control.values.indexOf(value)));
    return select;
  }

  private turn(control: Control): HTMLElement {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.addEventListener("change", () => this.change(control.name, box.checked));
    this.show.set(control.name, (value) => (box.checked = value === true));
    return box;
  }
}
