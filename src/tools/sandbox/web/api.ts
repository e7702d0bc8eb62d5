// The control interface, as docs/sandbox.md describes it.

export type Value = number | string | boolean;
export type Values = Record<string, Value>;

export interface State {
  revision: number;
  applied: number;
  message: string;
  scenario: string;
  seed: number;
  speed: number;
  paused: boolean;
  parameters: Values;
}

export interface Control {
  name: string;
  label: string;
  group: string;
  help: string;
  unit: string;
  restarts: boolean;
  kind: "number" | "whole" | "choice" | "turn";
  min: number;
  max: number;
  scale: "linear" | "log";
  values: Value[];
}

export interface Scenario {
  name: string;
  summary: string;
  parameters: Values;
}

export interface Finding {
  id: string;
  title: string;
  confidence: string;
  cause: string;
  evidence: { metric: string; text: string }[];
  levers: { parameter: string; change: string; moves: string }[];
}

export interface Diagnosis {
  seconds: number;
  models: { model: string; state: string; why: string; findings: Finding[] }[];
}

async function answer<T>(response: Response): Promise<T> {
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

export const get = async <T>(path: string): Promise<T> =>
  answer<T>(await fetch(path, { cache: "no-store" }));

export const order = async (wanted: object): Promise<State> =>
  answer<State>(
    await fetch("api/state", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(wanted),
    }),
  );

export async function metrics(): Promise<string> {
  const response = await fetch("metrics", { cache: "no-store" });
  if (!response.ok) throw new Error(`/metrics: status ${response.status}`);
  return response.text();
}
