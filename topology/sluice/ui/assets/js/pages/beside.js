// Two trajectories side by side.
import { html, useAsk, useEffect, useState, runPath, number } from "../base.js";
import { Async, Link, Reward, Word } from "../parts.js";
import { Turns } from "./trajectory.js";
import { ready } from "../code.js";

export default function Beside({ args: [run, one, other], about }) {
  const [parse, setParse] = useState(null);
  useEffect(() => { ready().then((f) => setParse(() => f), () => {}); }, []);
  return html`<div class="title"><h2>Side by side</h2><${Link} to=${runPath(run, `/beside/${other}/${one}`)}>change sides<//></div>
    <div class="beside">${[one, other].map((place) => html`<${Side} key=${place} run=${run} place=${place} parse=${parse} about=${about} />`)}</div>`;
}

function Side({ run, place, parse, about }) {
  const [incarnation, step, slot, sample, copy] = place.split(".");
  const id = { run, incarnation, step, slot, sample, copy };
  const it = useAsk("trajectory", id);
  const turns = useAsk("turns", { ...id, limit: 40 });
  const siblings = useAsk("siblings", { run, incarnation, step, slot });
  const mine = siblings.data?.find((s) => String(s.sample_index) === sample && s.copy === copy);
  return html`<section aria-label=${`sample ${sample}`}><${Async} of=${it} empty="This trajectory is not recorded here.">${([t]) => html`
    <div class="title"><h3><${Link} to=${runPath(run, `/t/${place}`)}>step ${step}, slot ${slot}, sample ${sample}<//></h3><${Reward} row=${t} /><${Word} of=${t.end_reason} /><span class="quiet">${number(t.trajectory_tokens)} tokens</span></div>
    <${Turns} id=${id} of=${turns} t=${t} mine=${mine} parse=${parse} about=${about} count=${t.turns} />`}<//></section>`;
}
