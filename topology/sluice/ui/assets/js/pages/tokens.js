// The tokens of a turn, coloured by what one wants to know of each.
import { html, useAsk, useData, useState, request, number, signed, visible } from "../base.js";
import { Async, Failure } from "../parts.js";

const views = [["logprob", "logprob"], ["mask", "loss mask"], ["version", "policy version"], ["advantage", "advantage"], ["trainer", "trainer − sampler"]];

export function Tokens({ id, turn, advantage, about, t, trained }) {
  const [by, setBy] = useState("logprob");
  const answer = useAsk("tokens", { ...id, turn: turn.turn });
  const row = answer.data?.[0];
  const ids = row ? [...new Set([...row.tokens, ...row.glue])].slice(0, 1000) : [];
  const texts = useData(about.words && ids.length ? `words ${id.copy} ${turn.turn}` : "", (signal) => request(`/api/words?ids=${ids.join(",")}`, { signal }));
  const record = useData(about.kafka && by === "version" ? `record ${id.copy}` : "", (signal) => request(`/api/record?topic=${encodeURIComponent(t.source_topic)}&partition=${t.source_partition}&offset=${t.source_offset}`, { signal }));
  return html`<div class="under" role="group" aria-label="Colour by">${views.map(([name, text]) => html`<button key=${name} aria-pressed=${by === name} class=${by === name ? "primary" : ""} disabled=${(name === "advantage" && advantage === null) || (name === "trainer" && !trained)} onClick=${() => setBy(name)}>${text}</button>`)}
      <span class="quiet">${by === "logprob" ? "the stronger, the less likely the token was" : by === "mask" ? "coloured tokens are trained on (loss mask 1)" : by === "version" ? "the version that sampled each token" : by === "trainer" ? `how far the trainer's logprob is from the sampler's, at version ${trained.version}; the stronger, the farther` : `each sampled token bears ${signed(advantage)}`}</span></div>
    <${Async} of=${answer} lines=${2}>${() => {
      const versions = spans(record.data?.turns?.[turn.turn]?.versions, row);
      const text = (token) => texts.data?.[token];
      const shade = (i) => (by === "logprob" ? tone(row.logprobs[i]) : by === "version" ? `t${(versions[i] ?? 0) % 5}` : by === "mask" ? "t1" : by === "trainer" ? apart(trained.logprobs[i] - row.logprobs[i]) : `t${Math.min(4, Math.round(4 * Math.abs(advantage)))}`);
      return html`<div class=${`tokens ${by} ${advantage > 0 ? "plus" : "minus"}`}>${row.tokens.map((token, i) => html`<span key=${i} class=${shade(i)} title=${`token ${token}, logprob ${number(row.logprobs[i])}, version ${versions[i] ?? row.policy_version_min}, mask 1${trained ? `; trainer: logprob ${number(trained.logprobs[i])}${trained.entropy.length ? `, entropy ${number(trained.entropy[i])}` : ""}` : ""}`}>${shown(text(token), token)}</span>`)}${row.glue.map((token, i) => html`<span key=${`g${i}`} class="glue" title=${`token ${token}, mask 0`}>${shown(text(token), token)}</span>`)}</div>
        ${(row.tokens_length > 4096 || row.glue_length > 4096) && html`<p class="quiet">The first 4,096 of ${number(row.tokens_length)} sampled and ${number(row.glue_length)} other tokens.</p>`}
        ${!about.words && html`<p class="quiet">Ids only: no inference server was named that knows their text.</p>`}${texts.error && html`<${Failure} error=${texts.error} />`}`;
    }}<//>`;
}

const shown = (text, token) => (text === undefined ? `${token} ` : visible(text).replaceAll("\n", "↵\n"));
const tone = (logprob) => (logprob > -0.05 ? "" : logprob > -0.5 ? "t0" : logprob > -1.5 ? "t1" : logprob > -3 ? "t2" : logprob > -6 ? "t3" : "t4");

const apart = (d) => (!(Math.abs(d) >= 0.001) ? "" : Math.abs(d) < 0.01 ? "t0" : Math.abs(d) < 0.1 ? "t1" : Math.abs(d) < 0.5 ? "t2" : Math.abs(d) < 1 ? "t3" : "t4");

function spans(versions, row) {
  if (!versions) return row.tokens.map(() => (row.policy_version_min === row.policy_version_max ? row.policy_version_min : undefined));
  return versions.flatMap((v) => Array(Math.min(v.count, 4096)).fill(v.version));
}
