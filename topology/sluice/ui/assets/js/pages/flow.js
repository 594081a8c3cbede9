// What flows through the stages now, and what they say of themselves.
import { html, number, duration, visible, words, millis, line } from "../base.js";
import { Empty } from "../parts.js";

const order = ["prompt-feeder", "sampler", "code-executor", "reward-scorer", "advantage-grouper", "ppo-batcher", "metrics-writer"];

export function Flow({ now }) {
  const alive = {};
  for (const p of now.processes) if (p.live) alive[p.status.stage] = (alive[p.status.stage] ?? 0) + 1;
  const stages = [...new Set([...order, ...now.work.map((w) => w.stage)])].filter((s) => now.flow[s] || now.work.some((w) => w.stage === s));
  const most = Math.max(1, ...now.work.filter((w) => w.stage !== "metrics-writer").map((w) => w.depth));
  return html`<div class="flow">${stages.map((stage) => {
    const work = now.work.filter((w) => w.stage === stage);
    const waits = work.reduce((n, w) => n + w.depth, 0);
    const gone = !alive[stage] && waits > 0;
    const shown = stage === "metrics-writer" ? [{ topic: "all topics", depth: waits, upper_bound: work.some((w) => w.upper_bound), rate: work.some((w) => w.rate !== undefined) ? work.reduce((n, w) => n + (w.rate ?? 0), 0) : undefined }] : work;
    return html`<section key=${stage} class=${`stage ${gone ? "away" : ""}`}><h4>${stage}<span>${alive[stage] ? `${alive[stage]} live` : "none live"}</span></h4>
      ${shown.map((w) => html`<div key=${w.topic}><div class="topic"><span>${w.topic}</span><span><b>${w.upper_bound ? "≤ " : ""}${number(w.depth)}</b>${w.rate !== undefined ? ` · ${number(w.rate, 1)}/s` : ""}</span></div>
        <div class="depth" aria-hidden="true"><i style=${{ width: `${Math.min(100, (100 * w.depth) / most)}%` }}></i></div></div>`)}
      ${shown.length === 0 && html`<div class="topic"><span>${(now.flow[stage]?.writes ?? []).slice(0, 1).map((t) => `writes ${t}`)}</span></div>`}</section>`;
  })}</div>`;
}

// Health says what each process waits for, and what each open step of the run waits for.
export function Health({ now, run }) {
  const said = [];
  for (const p of now.processes) {
    const s = p.status;
    const name = `${s.stage}/${line(s.instance, 40)}`;
    if (s.stopped) continue;
    if (!p.live) { said.push(["bad", `${name}: silent for ${duration(p.silent_ms)}, and it did not say that it ended`]); continue; }
    const at = millis(s.reported_at);
    for (const step of s.steps ?? []) {
      if (step.run_id !== run) continue;
      const idle = duration(at - millis(step.moved_at));
      const which = `step ${step.step}${step.incarnation ? ` (incarnation ${step.incarnation})` : ""}`;
      if (step.batched) said.push(["", `${which}: batched, waiting for the trainer since ${idle}`]);
      else if (!step.groups) said.push(["", `${which}: no group closed yet, last member came ${idle} ago`]);
      else said.push(["", `${which}: ${step.groups_closed ?? 0} of ${step.groups} groups closed, waiting for slot ${(step.open_slots ?? []).join(", ")} since ${idle}`]);
    }
    for (const n of s.notes ?? []) said.push([n.backend_away ? "bad" : n.not_ready ? "warn" : "", `${name}: ${n.name}${n.endpoint ? ` (${n.endpoint})` : ""}: ${n.text}, for ${duration(at - millis(n.since))}`]);
    if (s.oldest) said.push(["warn", `${name}: the oldest record in hand, ${s.oldest.topic}/${s.oldest.partition ?? 0}@${s.oldest.offset ?? 0}, has waited for ${duration(at - millis(s.oldest.since))}: ${s.oldest.text ?? ""}`]);
    if (s.last_error) said.push(["warn", `${name}: last of ${s.last_error.count} errors, ${duration(at - millis(s.last_error.at))} ago: ${s.last_error.error_type}: ${s.last_error.text}`]);
  }
  const live = now.processes.filter((p) => p.live).length;
  if (!said.length) said.push(live ? ["good", `${live} processes at work, none waits for anything.`] : ["", "No process is at work: what is shown here is what was recorded."]);
  return html`<ul class="says" aria-label="Health">${said.map(([kind, text], i) => html`<li key=${i} class=${kind}>${visible(text).slice(0, 800)}</li>`)}</ul>`;
}
