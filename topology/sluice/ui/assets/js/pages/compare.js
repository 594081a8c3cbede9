// The curves of several runs over each other.
import { html, ask, useData, number, percent, signed, line, runPath, go, query } from "../base.js";
import { Async, Link } from "../parts.js";
import { Chart, hues } from "../chart.js";

const curves = [
  ["Reward", "reward_mean", signed], ["Correct", "correct_rate", percent], ["Self-correction", "self_correction_rate", percent], ["Mended", "mended_rate", percent],
  ["Code calls", "code_calls_mean", number], ["Well-formed calls", "valid_tool_call_rate", percent], ["Tokens of a trajectory", "trajectory_tokens_mean", number], ["Degenerate groups", "degenerate_group_rate", percent],
];

export default function Compare({ at }) {
  const runs = [...new Set(at.searchParams.getAll("run"))].slice(0, 6);
  const rows = useData(runs.length ? JSON.stringify(runs) : "", async (signal) => {
    const each = await Promise.all(runs.map((run) => ask("run_steps", { run }, signal)));
    return each.flatMap((t, i) => t.objects.filter((r) => r.closed).map((r) => ({ ...r, run_id: runs[i] })));
  }, 10);
  if (!runs.length) return html`<p>Choose runs to compare in <${Link} to="/">the list<//>.</p>`;
  return html`<h2>${runs.length} runs</h2><p class="legend">${runs.map((id, i) => html`<span key=${id}><i class=${`swatch ${hues[i].slice(2)}`}></i><${Link} to=${runPath(id)}>${line(id, 60)}<//>  </span>`)}</p>
    <${Async} of=${rows} empty="None of these runs has a step yet.">${(all) => {
      const x = [...new Set(all.map((r) => r.step))].sort((a, b) => a - b);
      const by = new Map(all.map((r) => [`${r.step} ${r.run_id}`, r]));
      return html`<div class="grid">${curves.map(([title, name, format]) => html`<${Chart} key=${name} title=${title} x=${x} format=${format}
        open=${(step) => go(runPath(runs[0], `/trajectories${query({ from: step, to: step })}`))}
        series=${runs.map((id, i) => ({ name: line(id, 24), hue: hues[i], values: x.map((step) => by.get(`${step} ${id}`)?.[name] ?? null) }))} />`)}</div>`;
    }}<//>`;
}
