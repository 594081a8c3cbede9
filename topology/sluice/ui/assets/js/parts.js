// Parts that pages are made of.
import { html, useEffect, useRef, useState, go, visible, line, number } from "./base.js";

// Link opens a page here, and in a new tab where that is asked for.
export function Link({ to, class: cls, children, ...rest }) {
  const click = (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(to);
  };
  return html`<a href=${to} class=${cls} onClick=${click} ...${rest}>${children}</a>`;
}

const hints = {
  clickhouse: "ClickHouse does not answer. What is live can still be seen; this page asks again.",
  away: "Start sluice ui again and reload.",
  busy: "Many questions are being answered: try again in a moment.",
  kafka: "Kafka does not answer. What is recorded can still be seen.",
};

export function Failure({ error, retry }) {
  return html`<div class="failure" role="alert"><strong>This could not be shown.</strong> <span class="said">${visible(error.message)}</span>
    ${hints[error.kind] && html`<p>${hints[error.kind]}</p>`}
    ${retry && html`<p><button onClick=${retry}>Ask again</button></p>`}</div>`;
}

export const Empty = ({ children }) => html`<div class="empty">${children}</div>`;

export function Loading({ lines = 4 }) {
  return html`<div class="loading" role="status" aria-label="loading">${Array.from({ length: lines }, (_, i) => html`<span key=${i}></span>`)}</div>`;
}

// Async shows what is being waited for, what failed, that there is nothing, or the thing.
export function Async({ of, empty, lines, children }) {
  if (of.error && !of.data) return html`<${Failure} error=${of.error} retry=${of.retry} />`;
  if (!of.data) return html`<${Loading} lines=${lines} />`;
  if (Array.isArray(of.data) && of.data.length === 0) return html`<${Empty}>${empty ?? "Nothing here."}<//>`;
  return html`${of.error && html`<${Failure} error=${of.error} retry=${of.retry} />`}${children(of.data)}`;
}

export const Badge = ({ kind, title, children }) => html`<span class=${`badge ${kind ?? ""}`} title=${title}>${children}</span>`;

const kinds = { ok: "good", trained: "good", used: "good", answer: "plain", equal: "good", error: "bad", timeout: "bad", different: "bad", dropped: "bad", killed: "bad", out_of_memory: "bad", output_limit: "bad", invalid: "bad", undecided: "warn", degenerate: "plain", ungraded: "warn", infra_error: "warn", protocol_fault: "warn" };
export const Word = ({ of, title }) => (of ? html`<${Badge} kind=${kinds[of] ?? "plain"} title=${title}>${line(of.replaceAll("_", " "), 40)}<//>` : null);

export function Reward({ row }) {
  if (!row.graded) return html`<${Badge} kind="warn" title=${line(row.ungraded_reason, 300)}>ungraded<//>`;
  return html`<span class=${`reward ${row.correct ? "right" : "wrong"}`} title=${row.correct ? "correct" : "not correct"}><span class="sign" aria-label=${row.correct ? "correct" : "not correct"}>${row.correct ? "✓" : "✗"}</span>${row.reward > 0 ? "+" : ""}${number(row.reward)}</span>`;
}

// Outcomes are small marks, one for each execution.
export const Outcomes = ({ of }) => html`<span class="outcomes">${(of ?? []).slice(0, 12).map((o, i) => html`<i key=${i} class=${o === "ok" ? "ok" : "no"} title=${`run ${i + 1}: ${o}`}></i>`)}${(of ?? []).length > 12 ? "…" : ""}</span>`;

// Table is a list that can be walked through with j and k, arrows, and Enter.
// columns: {head, cell(row), class, title}.
export function Table({ columns, rows, to, name, keyOf, keys = true, plain = false }) {
  const body = useRef(null);
  const move = (from, by) => {
    const all = [...body.current.querySelectorAll("tr[tabindex]")];
    const at = from ? all.indexOf(from) : -1;
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
  };
  useEffect(() => {
    if (!to || !keys) return undefined;
    const press = (e) => {
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
      const row = document.activeElement?.closest?.("tr[tabindex]");
      const mine = row && body.current?.contains(row) ? row : null;
      if (e.key === "j" || (mine && e.key === "ArrowDown")) { move(mine, 1); e.preventDefault(); }
      if (e.key === "k" || (mine && e.key === "ArrowUp")) { move(mine, -1); e.preventDefault(); }
      if (mine && e.key === "Enter") mine.querySelector("a")?.click();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  return html`<div class=${`scroll ${plain ? "" : "rows"}`} tabindex="-1"><table aria-label=${name}>
    <thead><tr>${columns.map((c) => html`<th class=${c.class} title=${c.title} scope="col">${c.head}</th>`)}</tr></thead>
    <tbody ref=${body}>${rows.map((row, i) => html`<tr key=${keyOf ? keyOf(row) : i} tabindex=${to ? 0 : undefined} class=${to ? "opens" : ""}
      onClick=${to && ((e) => { if (!e.target.closest("a,button,input") && !String(getSelection())) { if (e.metaKey || e.ctrlKey) window.open(to(row), "_blank", "noopener"); else go(to(row)); } })}>
      ${columns.map((c, j) => html`<td class=${c.class} data-head=${typeof c.head === "string" ? c.head : ""}>${to && j === 0 ? html`<${Link} to=${to(row)}>${c.cell(row)}<//>` : c.cell(row)}</td>`)}</tr>`)}</tbody></table></div>`;
}

export const typing = (e) => Boolean(e.target.closest?.("input, textarea, select, [contenteditable]"));

// Long shows a text in pieces: what is there is cut, more(from) brings the next piece.
export function Long({ text, total, more, first = 1800, class: cls = "", render }) {
  const [shown, setShown] = useState(first);
  const [pieces, setPieces] = useState([]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const start = Array.from(text ?? "");
  const whole = total ?? start.length;
  const open = shown >= start.length;
  const have = open ? start.length + pieces.reduce((n, p) => n + p.length, 0) : shown;
  const grow = async () => {
    if (!open) { setShown(Infinity); return; }
    setBusy(true);
    setError(null);
    try {
      const piece = await more(start.length + pieces.reduce((n, p) => n + p.length, 0));
      setPieces((all) => [...all, { text: piece, length: Array.from(piece).length }]);
    } catch (e) { setError(e); }
    setBusy(false);
  };
  const left = whole - Math.min(have, whole);
  const begin = open ? text ?? "" : start.slice(0, shown).join("");
  return html`<div class="long"><pre class=${`text ${cls}`} dir="ltr">${render ? render(begin) : visible(begin)}${pieces.map((p, i) => html`<span key=${i} class="piece">${visible(p.text)}</span>`)}</pre>
    ${left > 0 && (more || !open) && html`<button class="more" disabled=${busy} onClick=${grow}>${busy ? "loading …" : `show more (${left.toLocaleString("en")} characters left)`}</button>`}
    ${error && html`<${Failure} error=${error} />`}</div>`;
}

// Spark is a small curve of numbers, null where there is none.
export function Spark({ of, low, high, label }) {
  const all = (of ?? []).map((v, i) => [i, v]).filter(([, v]) => v !== null);
  if (all.length < 2) return null;
  const values = all.map(([, v]) => v);
  const from = low ?? Math.min(...values), to = high ?? Math.max(...values);
  const x = (i) => 1 + (98 * i) / Math.max(1, of.length - 1), y = (v) => 22 - 20 * ((v - from) / (to - from || 1));
  return html`<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${label ?? `from ${number(values[0])} to ${number(values.at(-1))}`}>
    <polyline points=${all.map(([i, v]) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" ")} /></svg>`;
}

// Share is a bar from 0 to 1 behind a number.
export const Share = ({ of, children }) => html`<span class="share"><span class="bar" aria-hidden="true"><i style=${{ width: `${Math.round(100 * Math.max(0, Math.min(1, of ?? 0)))}%` }}></i></span><span>${children}</span></span>`;

export function Field({ label, children }) {
  return html`<label class="field"><span>${label}</span>${children}</label>`;
}

// Facts are pairs of a name and a value.
export const Facts = ({ of }) => html`<dl class="facts">${of.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

// useKeys calls what belongs to a key, unless somebody is writing.
export function useKeys(map) {
  useEffect(() => {
    const press = (e) => {
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
      const f = map[e.key];
      if (f) { e.preventDefault(); f(); }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}
