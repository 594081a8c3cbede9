// SQL by hand: one statement, within limits that it cannot raise.
import { html, useAsk, useEffect, useRef, useState, request, go, query, number, visible, line, duration } from "../base.js";
import { Empty, Failure } from "../parts.js";

const first = `SELECT step, correct_rate, mended_rate, exec_error_rate
FROM step_summary
WHERE run_id = (SELECT any(run_id) FROM trajectories)
ORDER BY step`;

export default function SQL({ at, about }) {
  const [text, setText] = useState(at.searchParams.get("q") ?? first);
  const [state, set] = useState({});
  const tables = useAsk("tables", {});
  const abort = useRef(null);
  const area = useRef(null);
  const run = async () => {
    abort.current?.abort();
    abort.current = new AbortController();
    go(`/sql${query({ q: text })}`, { replace: true });
    set({ busy: true });
    try {
      set({ answer: await request("/api/sql", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ sql: text }), signal: abort.current.signal }) });
    } catch (error) { if (error.name !== "AbortError") set({ error }); else set({}); }
  };
  useEffect(() => () => abort.current?.abort(), []);
  const put = (word) => { const a = area.current; a.setRangeText(word, a.selectionStart, a.selectionEnd, "end"); setText(a.value); a.focus(); };
  if (about.no_sql) return html`<div class="failure"><strong>Statements are off.</strong><p>${visible(about.no_sql)}</p></div>`;
  return html`<div class="sql"><form onSubmit=${(e) => { e.preventDefault(); run(); }}>
      <label class="sr" for="statement">Statement</label>
      <textarea id="statement" ref=${area} data-first="" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)} onKeyDown=${(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); run(); } }}></textarea>
      <p class="under"><button class="primary" disabled=${state.busy}>${state.busy ? "running …" : "Run"}</button>${state.busy && html`<button type="button" onClick=${() => abort.current?.abort()}>Stop</button>`}<span><kbd>Ctrl</kbd> <kbd>Enter</kbd></span><span>One SELECT over our database; up to 1,000 rows, 30 s, 1 GB. The address keeps it.</span></p></form>
    <details><summary>Tables and columns</summary>${tables.error ? html`<${Failure} error=${tables.error} />` : (tables.data ?? []).map((t) => html`<details key=${t.table} class="columnlist"><summary class="mono">${t.table}</summary>${t.columns.map((c, i) => html`<button key=${c} class="link mono" title=${t.types[i]} onClick=${() => put(c)}>${c}</button> `)}</details>`)}</details>
    ${state.error && html`<${Failure} error=${state.error} />`}
    ${state.answer && html`<${Answer} of=${state.answer} />`}</div>`;
}

function Answer({ of }) {
  if (!of.rows.length) return html`<${Empty}>No rows, in ${duration(of.ms)}.<//>`;
  const numeric = of.columns.map((c) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(c.type));
  return html`<p class="under">${number(of.rows.length)} rows${of.cut ? " and more" : ""} in ${duration(of.ms)} <button onClick=${() => save(of)}>Save as CSV</button></p>
    <div class="scroll" tabindex="0"><table aria-label="Answer"><thead><tr>${of.columns.map((c, i) => html`<th key=${i} class=${numeric[i] ? "n" : ""} title=${c.type} scope="col">${line(c.name, 60)}</th>`)}</tr></thead>
      <tbody>${of.rows.map((row, i) => html`<tr key=${i}>${row.map((v, j) => html`<td key=${j} class=${numeric[j] ? "n" : "mono cell"} title=${typeof v === "string" ? line(v, 600) : undefined}>${cell(v)}</td>`)}</tr>`)}</tbody></table></div>`;
}

const cell = (v) => (v === null ? html`<span class="quiet">NULL</span>` : typeof v === "object" ? line(JSON.stringify(v), 200) : typeof v === "string" ? line(v, 200) : typeof v === "number" ? number(v, 6) : String(v));

// A cell that a spreadsheet would take for a formula gets a quote in front.
const quoted = (v) => {
  let text = v === null ? "" : typeof v === "object" ? JSON.stringify(v) : String(v);
  if (typeof v === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

function save(of) {
  const csv = [of.columns.map((c) => quoted(c.name)), ...of.rows.map((r) => r.map(quoted))].map((r) => r.join(",")).join("\r\n");
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
  a.download = "answer.csv";
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
