// Where the time of a trajectory went: one lane for each cause, all on one clock.
import { html, millis, duration } from "../base.js";

export function Lanes({ t, turns, mine, group }) {
  const lanes = lanesOf(t, turns, mine, group);
  const all = lanes.flatMap((l) => l.spans).flat().filter((v) => !Number.isNaN(v));
  if (all.length < 2) return html`<p class="quiet">Its events bear no times.</p>`;
  const from = Math.min(...all), to = Math.max(...all, from + 1);
  return html`<div class="lanes">${lanes.filter((l) => l.spans.length).map((l) => {
    const total = l.spans.reduce((n, [a, b]) => n + Math.max(0, b - a), 0);
    return html`<div key=${l.name} class="lane"><span title=${l.note}>${l.name}</span><span class="track" role="img" aria-label=${`${l.name} ${duration(total)}`}>${l.spans.map(([a, b], i) => html`<i key=${i} class=${l.hue} style=${{ left: `${(100 * (a - from)) / (to - from)}%`, width: `${Math.max(0.4, (100 * (b - a)) / (to - from))}%` }} title=${duration(b - a)}></i>`)}</span><span class="n">${duration(total)}</span></div>`;
  })}</div><p class="quiet">${duration(to - from)} from ${t.fed_at ? "feeding" : "the first event"} to ${group?.answered_at ? "the trainer's answer" : "the last event"}.</p>`;
}

export function lanesOf(t, turns, mine, group) {
  const span = (a, b) => { const x = millis(a), y = millis(b); return Number.isNaN(x) || Number.isNaN(y) || y < x ? [] : [[x, y]]; };
  const ran = turns.filter((u) => u.outcome !== "");
  return [
    { name: "queued", hue: "c6", note: "fed, until its first sampling", spans: span(t.fed_at, turns[0]?.sample_started_at ?? t.started_at) },
    { name: "sampling", hue: "c1", spans: turns.flatMap((u) => span(u.sample_started_at, u.sample_ended_at)) },
    { name: "sandbox wait", hue: "c6", note: "a program asked for, until it ran", spans: ran.flatMap((u) => span(u.queued_at, u.execution_started_at)) },
    { name: "running", hue: "c2", spans: ran.flatMap((u) => span(u.execution_started_at, u.execution_ended_at)) },
    { name: "scoring", hue: "c4", spans: span(t.ended_at, t.scored_at) },
    { name: "group wait", hue: "c6", note: "scored, until its group closed", spans: span(t.scored_at, group?.closed_at) },
    { name: "batch wait", hue: "c6", note: "its group closed, until the step was batched", spans: span(group?.closed_at, group?.batched_at) },
    { name: "training", hue: "c3", note: "the step's batch, until the trainer answered", spans: mine?.batch_fate === "trained" || !mine ? span(group?.batched_at, group?.answered_at) : [] },
  ];
}
