// What makes a run learn nothing, said where it is so, with three trajectories to look at.
import { html, useAsk, query, runPath, trajectoryPath, line } from "../base.js";
import { Link } from "../parts.js";

// Over the last steps that were handed to the trainer, up to five.
const causes = [
  [(s) => s.trajectories > 0 && s.graded === 0, "No trajectory is graded", "infrastructure or the reward fails every one of them", {}],
  [(s) => s.graded > 0 && s.valid_box_rate === 0, "No answer holds a readable box", "every reward is that of a wrong answer", { graded: 1 }],
  [(s) => s.degenerate_group_rate === 1, "Every group is degenerate", "all of a group are right or all are wrong, so nothing is trained on", { graded: 1 }],
  [(s) => s.groups_used > 0 && s.loss_tokens === 0, "No data was packed", "the batcher refused all of it: too long, too stale, or without advantage", { graded: 1 }],
];

export function Alarms({ run, rows }) {
  const last = rows.filter((s) => s.closed).slice(-5);
  const found = last.length > 0 ? causes.find(([holds]) => last.every(holds)) : undefined;
  return found ? html`<${Alarm} run=${run} from=${last[0].step} to=${last.at(-1).step} found=${found} />` : null;
}

function Alarm({ run, from, to, found: [, what, why, filter] }) {
  const rows = useAsk("trajectories", { run, from, to, mode: "train", ...filter, limit: 3 });
  return html`<div class="alarm" role="status"><b>${what}</b> in ${from === to ? `step ${to}` : `steps ${from} to ${to}`}: ${why}. Look at ${(rows.data ?? []).map((t, i) => html`${i ? ", " : ""}<${Link} key=${t.copy} to=${trajectoryPath(run, t)}>${t.step} / ${t.slot} / ${t.sample_index}<//> (${line(t.end_reason.replaceAll("_", " "), 30)})`)}, or at <${Link} to=${runPath(run, `/trajectories${query({ from, to })}`)}>all of them<//>.</div>`;
}
