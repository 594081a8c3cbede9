// Records that no stage could handle, with the command that puts one back.
import { html, useAsk, useState, ago, when, bytes, number, line, visible, runPath } from "../base.js";
import { Async, Badge, Facts, Link } from "../parts.js";

export default function DeadLetters({ args: [run] }) {
  const all = useAsk("dead_letters", { run: run ?? "" }, { every: 10 });
  return html`<h2>${run ? "Dead letters of this run, and of none" : "Dead letters"}</h2>
    <${Async} of=${all} empty=${html`<b>None.</b> Every record so far could be handled.`}>${(rows) => html`${rows.map((d) => html`<${Letter} key=${`${d.failed_topic}/${d.failed_partition}@${d.failed_offset}`} d=${d} run=${run} />`)}
      <p class="under">${rows.length}${rows.length === 200 ? ", the newest 200" : ""}. These pages write nothing: <code>sluice dead-letters requeue</code> puts a record back.</p>`}<//>`;
}

function Letter({ d, run }) {
  const [copied, setCopied] = useState(false);
  const command = `sluice dead-letters requeue --id ${d.source_partition}/${d.source_offset}`;
  return html`<article class="turn"><header><b>${line(d.stage, 40)}</b><${Badge} kind="bad">${line(d.error_type, 60)}<//><span class="mono">${line(d.failed_topic, 80)}/${d.failed_partition}@${d.failed_offset}</span><span class="right" title=${when(d.failed_at ?? d.event_time)}>${ago(d.failed_at ?? d.event_time)}</span></header>
    <div class="part"><pre class="text" dir="ltr">${visible(d.error)}</pre></div>
    <div class="part"><${Facts} of=${[
      d.run_id && ["of", html`${d.run_id === run ? "" : html`<${Link} to=${runPath(d.run_id)}>${line(d.run_id, 60)}<//>, `}step ${number(d.step)}, slot ${number(d.slot)}${d.sample_index !== null ? `, sample ${d.sample_index}` : ""}${d.question_id ? `, question ${line(d.question_id, 40)}` : ""}`],
      ["record", html`${bytes(d.value_bytes)}, given up after ${number(d.delivery_count)} ${d.delivery_count === 1 ? "attempt" : "attempts"}; begins <span class="mono">${d.value_begins.slice(0, 32).toLowerCase()}…</span>`],
      ["put it back", html`<span class="mono">${command}</span> <button class="link" onClick=${() => navigator.clipboard?.writeText(command).then(() => setCopied(true), () => {})}>${copied ? "copied" : "copy"}</button>`],
    ]} /></div></article>`;
}
