// What every page needs: elements, questions to the server, and how values are written.
import { h, render } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import htm from "htm";

export const html = htm.bind(h);
export { h, render, useCallback, useEffect, useMemo, useRef, useState };

// --- Asking ---

export class Problem extends Error {
  constructor(kind, text) { super(text); this.kind = kind; }
}

// request asks the server; its errors have a kind.
export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Problem("away", "sluice ui does not answer: it may have ended with its run.");
  }
  if (response.status === 401) { location.reload(); throw new Problem("token", "Sign in first."); }
  const said = await response.json().catch(() => ({ kind: "failed", error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Problem(said.kind, said.error);
  return said;
}

const filled = (v) => v !== undefined && v !== null && v !== "" && !(Array.isArray(v) && v.length === 0);

// ask answers a named question: rows as objects.
export async function ask(name, params = {}, signal) {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (!filled(value)) continue;
    for (const one of Array.isArray(value) ? value : [value]) q.append(key, one);
  }
  return asRows(await request(`/api/q/${name}?${q}`, { signal }));
}

function asRows(table) {
  const names = table.columns.map((c) => c.name);
  table.objects = table.rows.map((row) => Object.fromEntries(row.map((v, i) => [names[i], v])));
  return table;
}

// useAsk keeps the answer to a question. With every, it is asked again after so many
// seconds, or twenty times as long as it took, while the page is looked at.
export function useAsk(name, params, { every = 0, skip = false } = {}) {
  const key = skip ? "" : JSON.stringify([name, params]);
  return useData(key, (signal) => ask(name, params, signal).then((t) => t.objects), every);
}

// useData keeps what f promises; key says when it is another question.
export function useData(key, f, every = 0) {
  const [state, set] = useState({ loading: key !== "" });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (key === "") { set({ loading: false }); return undefined; }
    const abort = new AbortController();
    let timer;
    let ended = false;
    const run = async () => {
      const began = performance.now();
      try {
        const data = await f(abort.signal);
        if (!ended) set({ data, key, loading: false, at: Date.now() });
      } catch (error) {
        if (!ended && error.name !== "AbortError") set((was) => ({ data: was.key === key ? was.data : undefined, key, error, loading: false }));
      }
      if (every && !ended) timer = setTimeout(tick, Math.max(every * 1000, 20 * (performance.now() - began)));
    };
    const tick = () => {
      if (document.visibilityState === "visible") run();
      else timer = setTimeout(tick, 1000);
    };
    set((was) => (was.key === key ? { ...was, loading: true } : { loading: true }));
    run();
    return () => { ended = true; abort.abort(); clearTimeout(timer); };
  }, [key, again]);
  return { ...state, retry: useCallback(() => setAgain((n) => n + 1), []) };
}

// --- Addresses ---

export const enc = encodeURIComponent;
export const runPath = (run, rest = "") => `/run/${enc(run)}${rest}`;

export function query(params) {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) if (filled(value)) q.set(key, value);
  const text = q.toString();
  return text ? `?${text}` : "";
}

export const trajectoryPath = (run, t) => runPath(run, `/t/${[t.incarnation, t.step, t.slot, t.sample_index, t.copy].join(".")}`);

const listeners = new Set();
export function go(path, { replace = false } = {}) {
  if (path === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", path);
  listeners.forEach((f) => f());
  if (!replace) window.scrollTo(0, 0);
}
addEventListener("popstate", () => listeners.forEach((f) => f()));

export function useAddress() {
  const [at, set] = useState(location.pathname + location.search);
  useEffect(() => {
    const f = () => set(location.pathname + location.search);
    listeners.add(f);
    return () => listeners.delete(f);
  }, []);
  return useMemo(() => new URL(at, location.origin), [at]);
}

// --- Values in words ---

export const dash = "–";
const none = (v) => v === null || v === undefined;

export function number(v, digits = 3) {
  if (none(v)) return dash;
  if (typeof v === "string") return v;
  if (Number.isInteger(v)) return v.toLocaleString("en");
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return v.toExponential(2);
  return v.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 1 : digits });
}

export const percent = (v) => (none(v) ? dash : `${(100 * v).toFixed(v > 0 && v < 0.1 ? 1 : 0)} %`);
export const signed = (v) => (none(v) ? dash : `${v > 0 ? "+" : ""}${number(v)}`);

export function duration(ms) {
  if (none(ms)) return dash;
  if (ms < 1) return `${number(ms, 2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 120) return `${number(s, 1)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export function bytes(n) {
  if (none(n)) return dash;
  n = Number(n);
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (n < 1000 || unit === "GB") return `${number(n, 1)} ${unit}`;
    n /= 1000;
  }
  return dash;
}

export const when = (t) => (t ? t.slice(0, 19).replace("T", " ") : dash);
export const millis = (t) => (t ? Date.parse(t) : NaN);

export function ago(t) {
  const s = (Date.now() - millis(t)) / 1000;
  if (Number.isNaN(s)) return dash;
  if (s < 5) return "now";
  return `${duration(s * 1000)} ago`;
}

export const words = (name) => String(name ?? "").replaceAll("_", " ");

// --- Hostile text ---

const names = { 0x00ad: "SHY", 0x061c: "ALM", 0x180e: "MVS", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM" };
const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// visible shows characters that have no shape, or that turn others round, as symbols.
export function visible(text) {
  return String(text ?? "").replace(odd, (c) => {
    const code = c.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8${names[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`}\u27e9`;
  });
}

// line is visible text of one line, cut.
export function line(text, most = 120) {
  const cut = Array.from(String(text ?? "").slice(0, 2 * most));
  const shown = visible(cut.slice(0, most).join("").replaceAll(/\s+/g, " "));
  return cut.length > most || String(text ?? "").length > 2 * most ? `${shown} …` : shown;
}
