// All runs, the last active first; several can be compared.
import { html, useAsk, useState, number, signed, ago, when, runPath, go, line } from "../base.js";
import { Async, Badge, Spark, Table } from "../parts.js";

export default function Runs() {
  const runs = useAsk("runs", {}, { every: 5 });
  const [chosen, setChosen] = useState([]);
  const toggle = (id) => setChosen((all) => (all.includes(id) ? all.filter((x) => x !== id) : [...all, id].slice(-6)));
  const compare = () => go(`/compare?${chosen.map((id) => `run=${encodeURIComponent(id)}`).join("&")}`);
  return html`<div class="title"><h2>Runs</h2><button disabled=${chosen.length < 2} onClick=${compare} title="Choose two to six runs">Compare ${chosen.length > 1 ? chosen.length : ""}</button></div>
    <${Async} of=${runs} empty="No run is recorded here yet. The first trajectories appear seconds after they are scored.">${(rows) => html`
      <${Table} name="Runs" rows=${rows} to=${(r) => runPath(r.run_id)} keyOf=${(r) => r.run_id + r.mode} columns=${[
        { head: "run", class: "clip", cell: (r) => line(r.run_id, 60) },
        { head: "compare", cell: (r) => html`<input type="checkbox" aria-label=${`compare ${line(r.run_id, 60)}`} checked=${chosen.includes(r.run_id)} onChange=${() => toggle(r.run_id)} />` },
        { head: "active", class: "one", cell: (r) => html`<span title=${when(r.last_at)}>${ago(r.last_at)}</span>` },
        { head: "mode", cell: (r) => html`<${Badge} kind=${r.mode === "eval" ? "accent" : ""}>${r.mode}<//>` },
        { head: "step", class: "n", cell: (r) => number(r.last_step) },
        { head: "reward", title: "mean over graded members of closed groups, per step", cell: (r) => html`<${Spark} of=${r.rewards} />` },
        { head: "last", class: "n", cell: (r) => signed(r.rewards.findLast((v) => v !== null)) },
        { head: "trajectories", class: "n", cell: (r) => number(r.trajectories) },
        { head: "groups", class: "n", title: "closed", cell: (r) => number(r.groups_closed) },
        { head: "rolled back", class: "n", title: "the newest incarnation", cell: (r) => (r.incarnation ? html`<${Badge} kind="warn">${r.incarnation}×<//>` : "–") },
        { head: "began", class: "one wide-only", cell: (r) => when(r.first_at) },
      ]} />
      <p class="under">${chosen.length ? `${chosen.length} chosen` : "Tick two or more to compare their curves."}</p>`}<//>`;
}
