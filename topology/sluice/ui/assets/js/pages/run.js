// One run: how it stands, its curves, where its time goes, and what flows through it now.
import { html, useAsk, useData, useMemo, request, number, percent, signed, duration, ago, go, query, runPath, words, line } from "../base.js";
import { Async, Failure, Loading } from "../parts.js";
import { Chart } from "../chart.js";
import { Alarms } from "./alarms.js";
import { Flow, Health } from "./flow.js";

const share = [0, 1];

export default function Run({ args: [run], about }) {
  const steps = useAsk("run_steps", { run }, { every: 5 });
  const trainer = useAsk("run_trainer", { run }, { every: 5 });
  const evals = useAsk("run_eval", { run }, { every: 15 });
  const mismatch = useAsk("run_mismatch", { run }, { every: 15 });
  const work = useAsk("run_work", { run }, { every: 30 });
  const live = useData(about.kafka ? "live" : "", (signal) => request("/api/live", { signal }), 3);
  return html`<${Heads} steps=${steps.data} live=${live.data} /><${Alarms} run=${run} rows=${steps.data ?? []} />
    <${Async} of=${steps} lines=${8} empty=${html`<b>No step of this run is recorded.</b> It may have just begun, or its id is another.`}>${(rows) => html`<${Curves} run=${run} rows=${rows} trainer=${trainer.data ?? []} mismatch=${mismatch.data ?? []} evals=${evals.data ?? []} />`}<//>
    <h2>Where the time goes</h2>
    <${Async} of=${steps} empty="No step has ended yet.">${(rows) => html`<${Phases} run=${run} rows=${rows} work=${work.data?.[0]} />`}<//>
    <h2>The flow now</h2>
    ${about.kafka === false ? html`<p class="quiet">These pages were started without Kafka, so nothing live is shown.</p>`
      : live.error && !live.data ? html`<${Failure} error=${live.error} retry=${live.retry} />`
      : !live.data ? html`<${Loading} lines=${3} />` : html`<${Flow} now=${live.data} /><${Health} now=${live.data} run=${run} />`}`;
}

function Heads({ steps, live }) {
  if (!steps?.length) return null;
  const last = steps.findLast((s) => s.closed) ?? steps.at(-1);
  const first = steps.find((s) => s.reward_mean !== null);
  const sum = (name) => steps.reduce((n, s) => n + (s[name] ?? 0), 0);
  const behind = live?.behind_seconds;
  return html`<dl class="heads">
    <div><dt>step</dt><dd>${number(last.step)}</dd></div>
    <div><dt>reward</dt><dd>${signed(last.reward_mean)} <small>from ${signed(first?.reward_mean)}</small></dd></div>
    <div><dt>correct</dt><dd>${percent(last.correct_rate)}</dd></div>
    <div><dt>mended</dt><dd>${percent(last.mended_rate)}</dd></div>
    <div><dt>trajectories</dt><dd>${number(sum("trajectories"))}</dd></div>
    <div><dt>graded</dt><dd>${percent(sum("graded") / (sum("trajectories") || 1))}</dd></div>
    <div><dt>policy version</dt><dd>${number(last.policy_version_after ?? last.policy_version_max)}</dd></div>
    ${live && html`<div><dt>SQL is behind</dt><dd>${behind ? duration(behind * 1000) : html`0 s`}</dd></div>`}</dl>`;
}

function Curves({ run, rows: all, trainer, mismatch, evals }) {
  // Of an open step the short trajectories are there first: its means would be theirs.
  const ended = useMemo(() => all.filter((r) => r.closed), [all]);
  const rows = ended.length ? ended : all;
  const open_ = all.filter((r) => !r.closed).map((r) => r.step);
  const x = useMemo(() => [...new Set([...rows, ...evals].map((r) => r.step))].sort((a, b) => a - b), [rows, evals]);
  const column = (table) => { const by = new Map(table.map((r) => [r.step, r])); return (f) => x.map((step) => (by.has(step) ? f(by.get(step)) ?? null : null)); };
  const s = column(rows), t = column(trainer), e = column(evals), m = column(mismatch);
  const rate = (f) => s((r) => (r.rollout_ms > 0 ? (1000 * f(r)) / r.rollout_ms : null));
  const open = (step) => go(runPath(run, `/trajectories${query({ from: step, to: step })}`));
  const chart = (title, format, series, more = {}) => html`<${Chart} key=${title} title=${title} x=${x} open=${open} format=${format} series=${series} ...${more} />`;
  return html`${open_.length > 0 && ended.length > 0 && html`<p class="quiet">Curves are of steps that were handed to the trainer; open: ${open_.slice(-8).join(", ")}.</p>`}<div class="grid">
    ${chart("Reward", signed, [{ name: "mean", values: s((r) => r.reward_mean) }, { name: "of trained", values: s((r) => r.reward_mean_trained) }, { name: "eval", hue: "--c4", values: e((r) => r.reward_mean) }])}
    ${chart("Correct", percent, [{ name: "correct", values: s((r) => r.correct_rate) }, { name: "boxed", values: s((r) => r.valid_box_rate) }, { name: "eval", hue: "--c4", values: e((r) => r.correct_rate) }], { range: share })}
    ${chart("Tools", percent, [{ name: "used code", values: s((r) => r.code_call_rate) }, { name: "well-formed", values: s((r) => r.tool_call_share_wellformed) }, { name: "within budget", values: s((r) => r.valid_tool_call_rate) }], { range: share })}
    ${chart("Self-correction", percent, [{ name: "ended right", values: s((r) => r.self_correction_rate) }, { name: "mended", values: s((r) => r.mended_rate) }, { name: "right if retried", values: s((r) => r.retry_correct_rate) }], { range: share, note: "Over graded trajectories whose first execution failed." })}
    ${chart("Executions", percent, [{ name: "ok", hue: "--c3", values: s((r) => r.exec_ok_rate) }, { name: "error", hue: "--c5", values: s((r) => r.exec_error_rate) }, { name: "time-out", hue: "--c2", values: s((r) => r.exec_timeout_rate) }], { range: share })}
    ${chart("Calls and turns", number, [{ name: "code calls", values: s((r) => r.code_calls_mean) }, { name: "turns", values: s((r) => r.turns_mean) }])}
    ${chart("Length", number, [{ name: "tokens of a trajectory", values: s((r) => r.trajectory_tokens_mean) }])}
    ${chart("Throughput", number, [{ name: "trajectories/s", values: rate((r) => r.trajectories) }], { note: "Trajectories of a step by the time from its first sampling to its last end." })}
    ${chart("Entropy", number, [{ name: "nats per token", values: t((r) => r.entropy) }], { note: "The trainer has reported no entropy." })}
    ${chart("Probability ratio", number, [{ name: "mean", values: t((r) => r.ratio_mean) }, { name: "greatest", values: t((r) => r.ratio_max) }], { note: "The trainer has reported no ratios." })}
    ${chart("Clipped", percent, [{ name: "low", values: t((r) => r.clip_fraction_low) }, { name: "high", values: t((r) => r.clip_fraction_high) }], { note: "The trainer has reported nothing of clipping." })}
    ${chart("Gradient norm", number, [{ name: "norm", values: t((r) => r.gradient_norm) }], { note: "The trainer has reported no norms." })}
    ${mismatch.length > 0 && chart("Sampler against trainer", number, [{ name: "KL", values: m((r) => r.kl) }, { name: "mean |Δ logprob|", values: m((r) => r.mismatch_abs_mean) }], { note: "Over annotated tokens, before the update." })}
    ${chart("Groups without signal", percent, [{ name: "degenerate", values: s((r) => r.degenerate_group_rate) }, { name: "ungraded", hue: "--c5", values: s((r) => (r.graded_share === null ? null : 1 - r.graded_share)) }], { range: share })}
    ${chart("Time of an execution", duration, [{ name: "mean", values: s((r) => r.exec_latency_ms) }, { name: "99 %", values: s((r) => r.exec_latency_p99_ms) }])}
  </div>`;
}

const causes = [["rollout_ms", "sampling and running", "c1"], ["grouping_ms", "grouping and batching", "c3"], ["training_ms", "training", "c2"], ["sampler_idle_ms", "before the next step", "c6"]];

function Phases({ run, rows, work }) {
  // grouping, training and the sampler's pause follow one another; what idles overlaps training.
  const parts = rows.map((r) => {
    const idle = Math.max(0, (r.sampler_idle_ms ?? 0) - (r.grouping_ms ?? 0) - (r.training_ms ?? 0));
    return { step: r.step, values: [r.rollout_ms ?? 0, r.grouping_ms ?? 0, r.training_ms ?? 0, idle].map((v) => Math.max(0, v)) };
  });
  const most = Math.max(1, ...parts.map((p) => p.values.reduce((a, b) => a + b, 0)));
  const total = causes.map((_, i) => parts.reduce((n, p) => n + p.values[i], 0));
  const all = total.reduce((a, b) => a + b, 0) || 1;
  return html`<div class="card"><div class="stacks" role="img" aria-label=${`per step: ${causes.map(([, name], i) => `${name} ${percent(total[i] / all)}`).join(", ")}`}>
      ${parts.slice(-200).map((p) => html`<div key=${p.step} class="stack" title=${`step ${p.step}: ${causes.map(([, name], i) => `${name} ${duration(p.values[i])}`).join(", ")}`} onClick=${() => go(runPath(run, `/trajectories${query({ from: p.step, to: p.step })}`))}>
        ${causes.map(([name, , hue], i) => html`<i key=${name} class=${hue} style=${{ height: `${(100 * p.values[i]) / most}%` }}></i>`)}</div>`)}</div>
    <p class="under legend">${causes.map(([name, text, hue], i) => html`<span key=${name}><i class=${`swatch ${hue}`}></i>${text} <b>${percent(total[i] / all)}</b> ${duration(total[i])}</span>`)}</p>
    ${work && html`<p class="quiet">Summed over trajectories: sampling ${duration(1000 * work.sampling)}, programs running ${duration(1000 * work.running)} in ${number(work.executions)} executions, waiting for a sandbox ${duration(1000 * work.sandbox_wait)}; ${number(work.policy_tokens)} tokens sampled.</p>`}</div>`;
}
