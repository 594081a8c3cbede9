// Failed executions in clusters: what the error says, with its numbers and names taken out.
import { html, useAsk, useMemo, go, query, runPath, trajectoryPath, number, percent, line } from "../base.js";
import { Async, Badge, Field, Link, Spark, Table, Word } from "../parts.js";
import { Chart } from "../chart.js";
import { Typed } from "./trajectories.js";

export default function Errors({ args: [run], at }) {
  const filters = Object.fromEntries(["from", "to", "exception"].map((n) => [n, at.searchParams.get(n) ?? ""]).filter(([, v]) => v !== ""));
  const all = useAsk("errors", { run, ...filters });
  const steps = useAsk("run_steps", { run });
  const change = (changed) => go(runPath(run, `/errors${query({ ...filters, ...changed })}`), { replace: true });
  return html`<form class="filters" onSubmit=${(e) => e.preventDefault()} aria-label="Filters">
      <${Field} label="steps"><span class="pair"><${Typed} first type="number" label="first step" value=${filters.from ?? ""} set=${(v) => change({ from: v })} />–<${Typed} type="number" label="last step" value=${filters.to ?? ""} set=${(v) => change({ to: v })} /></span><//>
      <${Field} label="exception"><${Typed} label="exception" value=${filters.exception ?? ""} set=${(v) => change({ exception: v })} /><//>
      ${Object.keys(filters).length > 0 && html`<${Link} to=${runPath(run, "/errors")}>clear<//>`}</form>
    <${Async} of=${all} lines=${8} empty="No program of this run failed.">${(rows) => html`
      ${steps.data?.length > 1 && html`<${Share} rows=${rows} steps=${steps.data} run=${run} />`}
      <h2>Clusters</h2>
      <${Table} name="Clusters of errors" rows=${rows} keyOf=${(e) => e.outcome + e.exception + e.shape} to=${(e) => runPath(run, `/trajectories${query({ exception: e.exception, outcome: e.exception ? "" : e.outcome, from: filters.from, to: filters.to })}`)} columns=${[
        { head: "exception", class: "one", cell: (e) => (e.exception ? line(e.exception, 40) : html`<${Word} of=${e.outcome} />`) },
        { head: "says", class: "clip mono full", cell: (e) => html`<span title=${line(e.an_example, 300)}>${line(e.shape, 100) || "(nothing)"}</span>` },
        { head: "failures", class: "n", cell: (e) => number(e.failures) },
        { head: "of executions", class: "n", cell: (e) => percent(e.share) },
        { head: "trajectories", class: "n", cell: (e) => number(e.trajectories) },
        { head: "over steps", cell: (e) => html`<${Spark} of=${e.by_step[1]} low=${0} />` },
        { head: "steps", class: "n", cell: (e) => (e.first_step === e.last_step ? e.first_step : `${e.first_step}–${e.last_step}`) },
        { head: "first seen", class: "one", cell: (e) => { const [incarnation, step, slot, sample_index, copy] = e.first_seen; return html`<${Link} to=${trajectoryPath(run, { incarnation, step, slot, sample_index, copy })}>${step} / ${slot} / ${sample_index}<//>`; } },
      ]} /><p class="under">${rows.length === 100 ? "The 100 greatest clusters. " : ""}Numbers, quoted names and addresses are taken out of what an error says; hold the pointer over it for one as it was.</p>`}<//>`;
}

function Share({ rows, steps, run }) {
  const x = useMemo(() => steps.map((s) => s.step), [steps]);
  const executions = new Map(steps.map((s) => [s.step, s.executions]));
  const by = new Map();
  for (const r of rows) {
    const name = r.exception || r.outcome;
    const sums = by.get(name) ?? new Map();
    r.by_step[0].forEach((step, i) => sums.set(step, (sums.get(step) ?? 0) + Number(r.by_step[1][i])));
    by.set(name, sums);
  }
  const total = (m) => [...m.values()].reduce((a, b) => a + b, 0);
  const top = [...by].sort((a, b) => total(b[1]) - total(a[1])).slice(0, 5);
  return html`<${Chart} title="Share of executions that failed so" x=${x} format=${percent} height=${190} open=${(step) => go(runPath(run, `/trajectories${query({ from: step, to: step })}`))}
    series=${top.map(([name, sums]) => ({ name: line(name, 30), values: x.map((step) => (executions.get(step) ? (sums.get(step) ?? 0) / executions.get(step) : null)) }))} />`;
}
