// A run's questions: which are never solved, which always, which turn.
import { html, useAsk, go, query, runPath, number, percent, signed, line } from "../base.js";
import { Async, Field, Link, Share, Spark, Table } from "../parts.js";
import { Typed } from "./trajectories.js";

export default function Questions({ args: [run], at }) {
  const filters = Object.fromEntries(["sort", "only", "text"].map((n) => [n, at.searchParams.get(n) ?? ""]).filter(([, v]) => v !== ""));
  const all = useAsk("questions", { run, ...filters, limit: 200 });
  const change = (changed) => go(runPath(run, `/questions${query({ ...filters, ...changed })}`), { replace: true });
  const pick = (label, name, options) => html`<${Field} label=${label}><select data-first=${name === "only" ? "" : undefined} value=${filters[name] ?? ""} onChange=${(e) => change({ [name]: e.target.value })}>${options.map(([v, text]) => html`<option key=${v} value=${v}>${text}</option>`)}</select><//>`;
  return html`<form class="filters" onSubmit=${(e) => e.preventDefault()} aria-label="Filters">
      ${pick("solved", "only", [["", "all questions"], ["never", "never"], ["sometimes", "sometimes"], ["always", "always"]])}
      ${pick("order", "sort", [["", "hardest first"], ["attempts", "most tried first"], ["flips", "most flips first"]])}
      <${Field} label="text or id"><${Typed} type="search" label="text or id" value=${filters.text ?? ""} set=${(v) => change({ text: v })} /><//>
      ${Object.keys(filters).length > 0 && html`<${Link} to=${runPath(run, "/questions")}>clear<//>`}</form>
    <${Async} of=${all} lines=${8} empty="No question is like this.">${(rows) => html`
      <${Table} name="Questions" rows=${rows} keyOf=${(q) => q.question_id} to=${(q) => runPath(run, `/trajectories${query({ question: q.question_id })}`)} columns=${[
        { head: "question", class: "clip", cell: (q) => html`<span title=${line(q.question_begins, 200)}>${line(q.question_begins, 110)}</span>` },
        { head: "id", class: "clip", cell: (q) => line(q.question_id, 24) },
        { head: "solved", title: "right / graded attempts", cell: (q) => html`<${Share} of=${q.correct_rate}>${percent(q.correct_rate)}<//>` },
        { head: "attempts", class: "n", cell: (q) => number(q.attempts) },
        { head: "groups", class: "n", cell: (q) => number(q.groups_seen) },
        { head: "over time", cell: (q) => html`<${Spark} of=${q.rates} low=${0} high=${1} />` },
        { head: "flips", class: "n", title: "how often more than half became less than half, or the other way", cell: (q) => number(q.flips) },
        { head: "reward", class: "n", cell: (q) => signed(q.reward_mean) },
        { head: "calls", class: "n", title: "code calls per attempt", cell: (q) => number(q.calls_mean, 2) },
        { head: "steps", class: "n", cell: (q) => (q.first_step === q.last_step ? q.first_step : `${q.first_step}–${q.last_step}`) },
      ]} /><p class="under">${rows.length}${rows.length === 200 ? ", the first 200" : ""} questions of mode train; attempts are graded members.</p>`}<//>`;
}
