// Replays: recorded trajectories under another reward.
import { html, useAsk, number, percent, line, enc } from "../base.js";
import { Async, Table } from "../parts.js";

export default function Replays() {
  const all = useAsk("replays", {}, { every: 30 });
  return html`<h2>Replays</h2><${Async} of=${all} empty=${html`<b>No replay is recorded.</b> <code>sluice replay --id NAME --reward FILE</code> scores a run again, and <code>metrics-writer --replay-id NAME</code> brings it here.`}>${(rows) => html`
    <${Table} name="Replays" rows=${rows} keyOf=${(r) => r.replay_id + r.run_id} to=${(r) => `/replay/${enc(r.replay_id)}/${enc(r.run_id)}`} columns=${[
      { head: "replay", class: "clip", cell: (r) => line(r.replay_id, 60) }, { head: "of run", class: "clip", cell: (r) => line(r.run_id, 60) },
      { head: "trajectories", class: "n", cell: (r) => number(r.trajectories) }, { head: "changed", class: "n", cell: (r) => `${number(r.changed)} (${percent(r.changed / (r.trajectories || 1))})` },
      { head: "flips", class: "n", title: "right or wrong, graded or not", cell: (r) => number(r.flips) },
    ]} />`}<//>`;
}
