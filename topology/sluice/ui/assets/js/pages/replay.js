// One replay beside the original: families of change, and every flip.
import { html, useAsk, go, query, enc, runPath, trajectoryPath, number, percent, signed, line, words, dash } from "../base.js";
import { Async, Badge, Field, Link, Table } from "../parts.js";

const kinds = { now_wrong: "bad", now_correct: "good", now_ungraded: "warn", now_graded: "good", reward: "", read_otherwise: "" };

export default function Replay({ args: [replay, run], at }) {
  const change = at.searchParams.get("change") ?? "";
  const families = useAsk("replay_changes", { replay, run });
  const flips = useAsk("replay_flips", { replay, run, change });
  return html`<div class="title"><h2>Replay ${line(replay, 60)}</h2><span class="quiet">of <${Link} to=${runPath(run)}>${line(run, 60)}<//></span></div>
    <${Async} of=${families} empty="This replay has no trajectories of this run.">${(rows) => html`<${Table} name="Families of change" rows=${rows} keyOf=${(r) => r.change} columns=${[
      { head: "change", cell: (r) => html`<${Badge} kind=${kinds[r.change] ?? ""}>${words(r.change)}<//>` }, { head: "trajectories", class: "n", cell: (r) => number(r.trajectories) },
      { head: "reward before", class: "n", cell: (r) => signed(r.old_reward) }, { head: "after", class: "n", cell: (r) => signed(r.new_reward) },
      { head: "correct before", class: "n", cell: (r) => percent(r.old_correct) }, { head: "after", class: "n", cell: (r) => percent(r.new_correct) },
      { head: "compared", class: "n", title: "advantages of both are known", cell: (r) => number(r.compared) }, { head: "advantage turned", class: "n", title: "changed its sign", cell: (r) => number(r.advantage_flips) },
    ]} />`}<//>
    <h2>Trajectories that came out otherwise</h2>
    <div class="filters"><${Field} label="change"><select data-first="" value=${change} onChange=${(e) => go(`/replay/${enc(replay)}/${enc(run)}${query({ change: e.target.value })}`, { replace: true })}><option value="">any</option>${Object.keys(kinds).map((k) => html`<option key=${k} value=${k}>${words(k)}</option>`)}</select><//></div>
    <${Async} of=${flips} empty="Both say the same of every trajectory.">${(rows) => html`<${Table} name="Changed trajectories" rows=${rows} to=${(t) => trajectoryPath(run, t)} keyOf=${(t) => `${t.incarnation}.${t.step}.${t.slot}.${t.sample_index}.${t.copy}`} columns=${[
      { head: "place", class: "place", cell: (t) => `${t.step} / ${t.slot} / ${t.sample_index}` }, { head: "change", cell: (t) => html`<${Badge} kind=${kinds[t.change]}>${words(t.change)}<//>` },
      { head: "question", class: "clip", cell: (t) => line(t.question_id, 40) },
      { head: "answer before", class: "clip mono", cell: (t) => html`<span title=${line(t.old_ungraded || t.old_verdict, 200)}>${line(t.old_answer, 24) || dash}</span>` }, { head: "after", class: "clip mono", cell: (t) => html`<span title=${line(t.new_ungraded || t.new_verdict, 200)}>${line(t.new_answer, 24) || dash}</span>` },
      { head: "reward", class: "n", cell: (t) => `${signed(t.old_reward)} → ${signed(t.new_reward)}` },
      { head: "advantage", class: "n", cell: (t) => `${signed(t.old_advantage)} → ${signed(t.new_advantage)}` },
    ]} />`}<//>`;
}
