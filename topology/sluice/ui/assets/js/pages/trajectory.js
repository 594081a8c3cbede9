// One trajectory: its turns, what it was paid and why, where its time went, its tokens,
// and whether what Kafka holds is what was sampled.
import { html, useAsk, useData, useEffect, useState, ask, request, go, query, runPath, trajectoryPath, enc, number, signed, percent, duration, bytes, when, line, visible, words, dash } from "../base.js";
import { Async, Badge, Facts, Failure, Link, Loading, Long, Reward, Table, Outcomes, Word, useKeys } from "../parts.js";
import { Lanes } from "./lanes.js";
import { Tokens } from "./tokens.js";
import { python, ready } from "../code.js";

export default function Trajectory({ args: [run, place], about }) {
  const [incarnation, step, slot, sample, copy] = place.split(".");
  const group = { run, incarnation, step, slot };
  const id = { ...group, sample, copy };
  const it = useAsk("trajectory", id);
  const turns = useAsk("turns", { ...id, limit: 40 });
  const siblings = useAsk("siblings", group);
  const closing = useAsk("group", group);
  const replays = useAsk("trajectory_replays", id);
  const annotations = useAsk("annotations", id);
  const [parse, setParse] = useState(null);
  useEffect(() => { ready().then((f) => setParse(() => f), () => {}); }, []);
  const list = siblings.data ?? [];
  const at = list.findIndex((s) => String(s.sample_index) === sample && s.copy === copy);
  const to = (i) => list[i] && go(trajectoryPath(run, { ...group, sample_index: list[i].sample_index, copy: list[i].copy }));
  useKeys({ n: () => to(at + 1), p: () => to(at - 1) });
  return html`<${Async} of=${it} lines=${10} empty=${html`This trajectory is not recorded here. <${Link} to=${runPath(run, "/trajectories")}>All of the run<//>`}>${([t]) => {
    const mine = list[at];
    return html`<div class="title"><h2>step ${step}, slot ${slot}, sample ${sample}${incarnation !== "0" ? `, incarnation ${incarnation}` : ""}</h2>
        <${Reward} row=${t} /> <${Word} of=${t.end_reason} /> ${mine?.advantage !== null && mine?.advantage !== undefined && html`<${Badge} kind="accent" title="reward less the group's mean">advantage ${signed(mine.advantage)}<//>`}
        <span class="pair"><button disabled=${at <= 0} onClick=${() => to(at - 1)} title="p">‹ previous</button> <button disabled=${at < 0 || at >= list.length - 1} onClick=${() => to(at + 1)} title="n">next ›</button></span></div>
      <div class="columns"><div>
        <section class="turn"><header><b>Question</b> ${line(t.question_id, 60)} <span class="right">${t.data_source && html`<${Badge}>${line(t.data_source, 40)}<//>`}<${Link} to=${runPath(run, `/trajectories${query({ question: t.question_id })}`)}>all attempts<//></span></header>
          <div class="part"><${Long} text=${t.question} total=${Math.min(t.question_length, 4000)} class="prose" first=${1500} /></div>
          <div class="part"><div class="label">reference answer</div><${Long} text=${t.reference_answer} /></div></section>
        <${Turns} id=${id} of=${turns} t=${t} mine=${mine} parse=${parse} about=${about} count=${t.turns} annotation=${annotations.data?.[0]} />
        ${t.end_detail && html`<p class="quiet">${visible(t.end_detail)}</p>`}
      </div><aside>
        <${Verdict} t=${t} />
        <${Rewards} t=${t} replays=${replays.data ?? []} />
        <section class="card"><h2>Its time</h2>${turns.data && siblings.data ? html`<${Lanes} t=${t} turns=${turns.data} mine=${mine} group=${closing.data?.[0]} />` : html`<${Loading} />`}</section>
        <${Siblings} run=${run} group=${group} list=${list} at=${at} closing=${closing.data?.[0]} />
        <section class="card"><h2>What it is</h2><${Facts} of=${[
          ["policy version", t.policy_tokens ? (t.policy_version_min === t.policy_version_max ? t.policy_version_min : `${t.policy_version_min} to ${t.policy_version_max}`) : dash],
          ["tokens", `${number(t.trajectory_tokens)}: ${number(t.prompt_tokens)} prompt, ${number(t.policy_tokens)} sampled, ${number(t.glue_tokens)} between`],
          ["sampled with", `temperature ${number(t.temperature)}, top-p ${number(t.top_p)}`], ["mode", `${t.mode}${t.tool_enabled ? ", with the tool" : ", text only"}`],
          ["place in group", `${sample} of ${t.group_size}`], ["epoch", number(t.epoch)], t.aborts > 0 && ["aborts", number(t.aborts)], t.truncated_turns > 0 && ["truncated turns", number(t.truncated_turns)],
          mine?.batch_fate && ["in the batch", html`<${Word} of=${mine.batch_fate} title=${line(mine.detail, 200)} /> ${mine.batch_fate === "trained" ? `micro-batch ${mine.micro_batch}, staleness ${mine.staleness}` : line(mine.detail, 120)}`],
          ["ended by", t.ended_by], t.dialect && ["server", `${t.dialect}, ${t.logprobs_mode || "raw"} logprobs`], ["copy", html`<span class="mono">${copy}</span>`],
        ]} /></section>
        <${InKafka} t=${t} about=${about} id=${id} />
      </aside></div>`;
  }}<//>`;
}

export function Turns({ id, of, t, mine, parse, about, count, annotation }) {
  const [more, setMore] = useState({ turns: [] });
  return html`<${Async} of=${of} empty="It has no turns: it ended before the policy wrote anything.">${(begin) => {
    const all = [...begin, ...more.turns];
    const next = async () => {
      setMore((m) => ({ ...m, busy: true, error: null }));
      try { const page = await ask("turns", { ...id, from: all.at(-1).turn + 1, limit: 40 }); setMore((m) => ({ turns: [...m.turns, ...page.objects] })); } catch (error) { setMore((m) => ({ ...m, busy: false, error })); }
    };
    let sampled = 0; // tokens before a turn: the trainer's arrays are over all of them
    return html`${all.map((turn) => { const from = sampled; sampled += turn.policy_tokens; return html`<${Turn} key=${turn.turn} id=${id} turn=${turn} mine=${mine} t=${t} parse=${parse} about=${about} trained=${annotation && { version: annotation.policy_version, logprobs: annotation.logprobs.slice(from, sampled), entropy: annotation.entropy.slice(from, sampled) }} />`; })}
      ${all.length < count && html`<p class="under"><button disabled=${more.busy} onClick=${next}>${more.busy ? "loading …" : `more turns (${count - all.length} left)`}</button></p>`}
      ${more.error && html`<${Failure} error=${more.error} />`}`;
  }}<//>`;
}

function Turn({ id, turn, mine, t, parse, about, trained }) {
  const [tokens, setTokens] = useState(false);
  const piece = (field) => (from) => ask("text", { ...id, turn: turn.turn, field, from }).then((a) => a.objects[0]?.piece ?? "");
  const ran = turn.outcome !== "";
  const began = turn.code ? turn.text.indexOf(turn.code) : -1;
  // The program is shown by itself; what the policy wrote around it stays as it is.
  const before = began > 0 ? turn.text.slice(0, began) : turn.text;
  const whole = turn.text_length <= 6000 || began <= 0;
  return html`<article class="turn" aria-label=${`turn ${turn.turn + 1}`}>
    <header><b>Turn ${turn.turn + 1}</b> <${Word} of=${turn.kind} />${turn.invalid_reason && html`<${Badge} kind="bad">${words(line(turn.invalid_reason, 60))}<//>`}${turn.truncated && html`<${Badge} kind="warn" title="stopped by its length">truncated<//>`}
      <span>${number(turn.policy_tokens)} tokens sampled${turn.policy_tokens ? ` by version ${turn.policy_version_min === turn.policy_version_max ? turn.policy_version_min : `${turn.policy_version_min} to ${turn.policy_version_max}`}` : ""}${turn.logprob_mean !== null ? `, mean logprob ${number(turn.logprob_mean)}` : ""}</span>
      <span class="right">${turn.attempts > 1 && html`<${Badge} kind="warn">${turn.attempts} attempts<//>`}<button class="link" onClick=${() => setTokens(!tokens)} aria-expanded=${tokens}>tokens</button></span></header>
    ${tokens && html`<div class="part"><${Tokens} id=${id} turn=${turn} advantage=${mine?.advantage ?? null} about=${about} t=${t} trained=${trained} /></div>`}
    ${before.trim() && html`<div class="part"><${Long} text=${whole && began > 0 ? before.trimEnd() : turn.text} total=${whole && began > 0 ? undefined : turn.text_length} more=${whole && began > 0 ? undefined : piece("text")} class="prose" /></div>`}
    ${turn.code && html`<div class="part"><div class="label">program</div><${Long} text=${turn.code} total=${turn.code_length} more=${piece("code")} first=${6000} render=${(text) => python(text, parse)} /></div>`}
    ${ran && html`<div class="part ran"><div class="label"><${Word} of=${turn.outcome} />${turn.exception && html`<${Badge} kind="bad">${line(turn.exception, 60)}<//>`}<span>exit ${turn.exit_code}</span><span>ran ${duration(turn.wall_ms)}</span><span>waited ${duration(turn.queue_wait_ms)} for a sandbox</span><span>${bytes(turn.peak_memory_bytes)}</span>${turn.unknown_runs > 0 && html`<${Badge} kind="warn" title="attempts before of which nobody knows how they ended">may have run ${turn.unknown_runs + 1} times<//>`}</div>
      <${Stream} name="stdout" turn=${turn} piece=${piece("stdout")} /><${Stream} name="stderr" turn=${turn} piece=${piece("stderr")} />
      ${!turn.stdout && !turn.stderr && html`<span class="quiet">It printed nothing.</span>`}</div>`}
    ${turn.observation && turn.observation.trim() !== (turn.outcome === "ok" ? turn.stdout : turn.stderr).trim() && html`<div class="part"><div class="label">what the policy saw of it (${number(turn.glue)} tokens with the template, not trained on)</div><${Long} text=${turn.observation} total=${turn.observation_length} more=${piece("observation")} /></div>`}
  </article>`;
}

const Stream = ({ name, turn, piece }) => (turn[name] ? html`<div class="label">${name}${turn[`${name}_truncated`] ? `, the end of ${bytes(turn[`${name}_bytes`])}` : ""}</div><${Long} text=${turn[name]} total=${turn[`${name}_length`]} more=${piece} class=${name === "stderr" ? "err" : ""} />` : null);

function Verdict({ t }) {
  return html`<section class="card"><h2>Verdict</h2>${t.graded
    ? html`<${Facts} of=${[["result", html`<${Word} of=${t.verdict || (t.correct ? "equal" : "different")} /> ${words(t.verdict_method)}`], ["answer", html`<span class="mono">${t.answer ? visible(t.answer) : "no box"}</span>`], ["reference", html`<span class="mono">${line(t.reference_answer, 200)}</span>`],
      t.gold_read && ["read as", html`<span class="mono">${visible(t.pred_read) || dash}</span>`], t.gold_read && ["reference read", html`<span class="mono">${visible(t.gold_read)}</span>`], t.verdict_reason && ["why", visible(t.verdict_reason)]]} />`
    : html`<p><${Badge} kind="warn">ungraded<//></p><p>${visible(t.ungraded_reason)}</p>`}</section>`;
}

function Rewards({ t, replays }) {
  const rows = t.score_names.map((name, i) => ({ by: i === 0 ? "decides" : "", name, version: t.score_versions[i], reward: t.score_rewards[i], error: t.score_errors[i] }));
  for (const r of replays) rows.push({ by: "replay", name: r.replay_id, version: r.scorer_version, reward: r.graded ? r.reward : null, error: r.graded ? "" : r.ungraded_reason, changed: r.correct !== t.correct || r.graded !== t.graded });
  if (!rows.length) return null;
  return html`<section class="card"><h2>Rewards</h2><table class="small">${rows.map((r, i) => html`<tr key=${i}><td>${line(r.name, 40)} ${r.by && html`<${Badge} kind=${r.by === "decides" ? "accent" : ""}>${r.by}<//>`}${r.changed && html` <${Badge} kind="warn">flipped<//>`}</td><td class="n">${r.error ? html`<span title=${line(r.error, 300)}><${Badge} kind="bad">failed<//></span>` : signed(r.reward)}</td><td class="quiet mono clip" title=${line(r.version, 100)}>${line(r.version, 10)}</td></tr>`)}</table></section>`;
}

function Siblings({ run, group, list, at, closing }) {
  if (!list.length) return null;
  return html`<section class="card"><h2>Its group ${closing ? html`<${Word} of=${closing.closing} />` : html`<${Badge}>open<//>`}</h2>
    <table class="small siblings">${list.map((s, i) => html`<tr key=${s.sample_index + s.copy} aria-current=${i === at ? "true" : undefined}><td class="n"><${Link} to=${trajectoryPath(run, { ...group, ...s })}>${s.sample_index}<//></td><td><${Reward} row=${s} /></td><td class="n">${s.advantage === null ? dash : signed(s.advantage)}</td><td><${Outcomes} of=${s.execution_outcomes} /></td><td class="clip">${line(s.answer, 14) || dash}</td><td>${at >= 0 && i !== at && html`<${Link} to=${runPath(run, `/beside/${[list[at], s].map((x) => [group.incarnation, group.step, group.slot, x.sample_index, x.copy].join(".")).join("/")}`)} title="side by side with this one" aria-label=${`side by side with sample ${s.sample_index}`}>⇄<//>`}</td></tr>`)}</table>
    ${closing && html`<p class="quiet">mean ${signed(closing.reward_mean)} over ${closing.graded} graded${closing.missing ? `, ${closing.missing} missing` : ""}; ${words(line(closing.reason, 60))} ${line(closing.detail, 120)}</p>`}</section>`;
}

function InKafka({ t, about, id }) {
  const key = about.kafka ? JSON.stringify([t.source_topic, t.source_partition, t.source_offset]) : "";
  const r = useData(key, (signal) => request(`/api/record?topic=${enc(t.source_topic)}&partition=${t.source_partition}&offset=${t.source_offset}`, { signal }));
  const found = r.data && !r.data.gone ? r.data : null;
  const mine = found && [id.run, id.incarnation, id.step, id.slot, id.sample, id.copy].every((v, i) => v === found.place[i]);
  return html`<section class="card"><h2>In Kafka</h2><${Facts} of=${[
      ["record", html`<span class="mono">${line(t.source_topic, 80)}/${t.source_partition}@${t.source_offset}</span>`], ["scored", when(t.scored_at)],
      found && ["size", bytes(found.bytes)],
      found && ["digests", found.custody === "holds" && mine ? html`<${Badge} kind="good">chain holds<//>` : found.custody === "none" ? "no turns" : html`<${Badge} kind="bad">${mine ? "chain is broken" : "another trajectory lies there"}<//>`],
      found?.detail && ["", visible(found.detail)],
      found?.turns.length > 0 && ["last digest", html`<span class="mono" title=${found.turns.at(-1).digest}>${found.turns.at(-1).digest.slice(0, 16)}…</span>`],
    ]} />${r.data?.gone && html`<p class="quiet">It is not in Kafka: retention has taken it, or it is another cluster.</p>`}${r.error && html`<p class="quiet">${visible(r.error.message)}</p>`}
    ${about.kafka === false && html`<p class="quiet">These pages were started without Kafka, so its digests are not checked.</p>`}</section>`;
}
