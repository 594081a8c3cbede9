// A run's trajectories, filtered, page by page. The filters stand in the address.
import { html, useAsk, useEffect, useState, ask, go, query, runPath, trajectoryPath, number, line, words } from "../base.js";
import { Async, Badge, Failure, Field, Link, Outcomes, Reward, Table, Word } from "../parts.js";

const numbers = ["from", "to", "slot", "calls_from", "calls_to", "reward_from", "reward_to", "version"];
const names = [...numbers, "question", "mode", "end", "exception", "outcome", "correct", "graded", "text", "incarnation"];

export default function Trajectories({ args: [run], at }) {
  const filters = Object.fromEntries(names.map((n) => [n, at.searchParams.get(n) ?? ""]).filter(([, v]) => v !== ""));
  const first = useAsk("trajectories", { run, ...filters, limit: 100 });
  const facets = useAsk("facets", { run });
  const [more, setMore] = useState({ rows: [], busy: false });
  useEffect(() => setMore({ rows: [], busy: false }), [JSON.stringify(filters)]);
  const change = (changed) => go(runPath(run, `/trajectories${query({ ...filters, ...changed })}`), { replace: true });
  const next = async (rows) => {
    const last = rows.at(-1);
    setMore((m) => ({ ...m, busy: true, error: null }));
    try {
      const page = await ask("trajectories", { run, ...filters, limit: 100, a_incarnation: last.incarnation, a_step: last.step, a_slot: last.slot, a_sample: last.sample_index, a_copy: last.copy });
      setMore((m) => ({ rows: [...m.rows, ...page.objects], busy: false, end: page.objects.length < 100 }));
    } catch (error) { setMore((m) => ({ ...m, busy: false, error })); }
  };
  return html`<${Filters} run=${run} filters=${filters} change=${change} facets=${facets.data ?? []} />
    <${Async} of=${first} lines=${10} empty=${html`No trajectory is like this. ${Object.keys(filters).length > 0 && html`<${Link} to=${runPath(run, "/trajectories")}>Show all<//>`}`}>${(begin) => {
      const rows = [...begin, ...more.rows];
      const ended = more.end ?? begin.length < 100;
      return html`<${Table} name="Trajectories" rows=${rows} to=${(t) => trajectoryPath(run, t)} keyOf=${(t) => `${t.incarnation}.${t.step}.${t.slot}.${t.sample_index}.${t.copy}`} columns=${columns} />
        <p class="under">${rows.length} shown, the newest step first.
          ${!ended && html`<button disabled=${more.busy} onClick=${() => next(rows)}>${more.busy ? "loading …" : "100 more"}</button>`}</p>
        ${more.error && html`<${Failure} error=${more.error} />`}`;
    }}<//>`;
}

const columns = [
  { head: "place", class: "place", title: "step / slot / sample", cell: (t) => html`${t.step} / ${t.slot} / ${t.sample_index}${t.incarnation ? html` <${Badge} kind="warn" title="incarnation">′${t.incarnation}<//>` : ""}${t.attempt ? html` <${Badge} title="asked for once more">refill<//>` : ""}` },
  { head: "reward", class: "n", cell: (t) => html`<${Reward} row=${t} />` },
  { head: "question", class: "clip full", cell: (t) => html`<span title=${line(t.question_begins, 160)}>${line(t.question_begins, 90)}</span>` },
  { head: "answer", class: "clip", cell: (t) => (t.answer ? line(t.answer, 24) : html`<span class="quiet">no box</span>`) },
  { head: "end", cell: (t) => html`<${Word} of=${t.end_reason} />` },
  { head: "runs", title: "executions in order", cell: (t) => html`<${Outcomes} of=${t.execution_outcomes} />` },
  { head: "turns", class: "n", cell: (t) => number(t.turns) },
  { head: "tokens", class: "n", cell: (t) => number(t.trajectory_tokens) },
  { head: "policy", class: "n", cell: (t) => (t.policy_tokens ? (t.policy_version_min === t.policy_version_max ? t.policy_version_min : `${t.policy_version_min}–${t.policy_version_max}`) : "–") },
];

function Filters({ run, filters, change, facets }) {
  const of = (name) => facets.filter((f) => f.filter === name && f.value !== "").sort((a, b) => b.trajectories - a.trajectories);
  const pick = (label, name, options) => html`<${Field} label=${label}><select value=${filters[name] ?? ""} onChange=${(e) => change({ [name]: e.target.value })}>
      <option value="">any</option>${options.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
      ${filters[name] && !options.some(([v]) => v === filters[name]) && html`<option value=${filters[name]}>${line(filters[name], 40)}</option>`}</select><//>`;
  const input = (name, more = {}) => html`<${Typed} value=${filters[name] ?? ""} set=${(v) => change({ [name]: v })} ...${more} />`;
  const counted = (name) => of(name).map((f) => [f.value, `${line(words(f.value), 36)} (${number(f.trajectories)})`]);
  const narrow = matchMedia("(max-width: 620px)").matches;
  const used = Object.keys(filters).length;
  return html`<details class="filterbox" open=${!narrow || used > 0}><summary>Filters${used ? ` (${used})` : ""}</summary><form class="filters" onSubmit=${(e) => e.preventDefault()} aria-label="Filters">
    <${Field} label="text in question or answer"><span class="pair">${input("text", { type: "search", first: true, placeholder: "press /", label: "text" })}</span><//>
    <${Field} label="steps"><span class="pair">${input("from", { type: "number", label: "first step" })}–${input("to", { type: "number", label: "last step" })}</span><//>
    ${pick("result", "correct", [["1", "correct"], ["0", "not correct"]])}
    ${pick("ended by", "end", counted("end"))}
    ${pick("exception", "exception", counted("exception"))}
    ${pick("outcome of a run", "outcome", counted("outcome"))}
    <${Field} label="code calls"><span class="pair">${input("calls_from", { type: "number", label: "fewest calls" })}–${input("calls_to", { type: "number", label: "most calls" })}</span><//>
    <${Field} label="reward"><span class="pair">${input("reward_from", { type: "number", step: "any", label: "least reward" })}–${input("reward_to", { type: "number", step: "any", label: "greatest reward" })}</span><//>
    <${Field} label="question id">${input("question", { label: "question id" })}<//>
    ${of("mode").length > 1 && pick("mode", "mode", counted("mode"))}
    ${filters.graded !== undefined && pick("graded", "graded", [["1", "graded"], ["0", "ungraded"]])}
    ${filters.slot !== undefined && html`<${Field} label="slot">${input("slot", { type: "number", label: "slot" })}<//>`}
    ${Object.keys(filters).length > 0 && html`<${Link} to=${runPath(run, "/trajectories")}>clear<//>`}
  </form></details>`;
}

// Typed passes on what was written, a moment after the last key or at Enter.
function Typed({ value, set, first, label, ...rest }) {
  const [now, setNow] = useState(value);
  useEffect(() => setNow(value), [value]);
  useEffect(() => {
    if (now === value) return undefined;
    const t = setTimeout(() => set(now), 400);
    return () => clearTimeout(t);
  }, [now]);
  return html`<input ...${rest} aria-label=${label} data-first=${first ? "" : undefined} value=${now} onInput=${(e) => setNow(e.target.value)} onKeyDown=${(e) => { if (e.key === "Enter") set(now); }} />`;
}

export { Typed };
