// A run's closed groups: who was right, why each closed as it did.
import { html, useAsk, useEffect, useState, ask, go, query, runPath, number, signed, duration, millis, line, words } from "../base.js";
import { Async, Badge, Failure, Field, Link, Table, Word } from "../parts.js";
import { Typed } from "./trajectories.js";

const names = ["from", "to", "question", "closing", "mode"];

export default function Groups({ args: [run], at }) {
  const filters = Object.fromEntries(names.map((n) => [n, at.searchParams.get(n) ?? ""]).filter(([, v]) => v !== ""));
  const first = useAsk("groups", { run, ...filters, limit: 100 });
  const [more, setMore] = useState({ rows: [] });
  useEffect(() => setMore({ rows: [] }), [JSON.stringify(filters)]);
  const change = (changed) => go(runPath(run, `/groups${query({ ...filters, ...changed })}`), { replace: true });
  const next = async (rows) => {
    const last = rows.at(-1);
    setMore((m) => ({ ...m, busy: true, error: null }));
    try {
      const page = await ask("groups", { run, ...filters, limit: 100, a_incarnation: last.incarnation, a_step: last.step, a_slot: last.slot });
      setMore((m) => ({ rows: [...m.rows, ...page.objects], end: page.objects.length < 100 }));
    } catch (error) { setMore((m) => ({ ...m, busy: false, error })); }
  };
  return html`<form class="filters" onSubmit=${(e) => e.preventDefault()} aria-label="Filters">
      <${Field} label="closed as"><select data-first="" value=${filters.closing ?? ""} onChange=${(e) => change({ closing: e.target.value })}><option value="">any</option>${["used", "degenerate", "dropped"].map((v) => html`<option key=${v} value=${v}>${v}</option>`)}</select><//>
      <${Field} label="steps"><span class="pair"><${Typed} type="number" label="first step" value=${filters.from ?? ""} set=${(v) => change({ from: v })} />–<${Typed} type="number" label="last step" value=${filters.to ?? ""} set=${(v) => change({ to: v })} /></span><//>
      <${Field} label="question id"><${Typed} label="question id" value=${filters.question ?? ""} set=${(v) => change({ question: v })} /><//>
      ${Object.keys(filters).length > 0 && html`<${Link} to=${runPath(run, "/groups")}>clear<//>`}</form>
    <${Async} of=${first} lines=${8} empty="No closed group is like this.">${(begin) => {
      const rows = [...begin, ...more.rows];
      const ended = more.end ?? begin.length < 100;
      return html`<${Table} name="Groups" rows=${rows} keyOf=${(g) => `${g.incarnation}.${g.step}.${g.slot}`} to=${(g) => runPath(run, `/trajectories${query({ from: g.step, to: g.step, slot: g.slot, incarnation: g.incarnation })}`)} columns=${[
        { head: "place", class: "place", title: "step / slot", cell: (g) => html`${g.step} / ${g.slot}${g.incarnation ? html` <${Badge} kind="warn" title="incarnation">′${g.incarnation}<//>` : ""}` },
        { head: "closed as", cell: (g) => html`<${Word} of=${g.closing} />` },
        { head: "rewards", title: "of each place, in order", cell: (g) => html`<span class="dots">${g.rewards.map((r, i) => html`<i key=${i} class=${r === null ? "" : r > 0 ? "right" : "wrong"} title=${`sample ${i}: ${r === null ? "none" : signed(r)}`}></i>`)}</span>` },
        { head: "mean", class: "n", cell: (g) => (g.graded ? signed(g.reward_mean) : "–") },
        { head: "graded", class: "n", cell: (g) => `${g.graded} of ${g.group_size}` },
        { head: "missing", class: "n", cell: (g) => number(g.missing) },
        { head: "why", cell: (g) => html`<span title=${line(g.detail, 300)}>${words(line(g.reason, 40))}</span>` },
        { head: "took", class: "n", cell: (g) => duration(millis(g.closed_at) - millis(g.opened_at)) },
        { head: "question", class: "clip", cell: (g) => line(g.question_id, 40) },
      ]} />
      <p class="under">${rows.length} shown, the newest step first. ${!ended && html`<button disabled=${more.busy} onClick=${() => next(rows)}>${more.busy ? "loading …" : "100 more"}</button>`}</p>
      ${more.error && html`<${Failure} error=${more.error} />`}`;
    }}<//>`;
}
