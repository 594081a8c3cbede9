// Charts over steps: uPlot, with the pages' colours, one cursor for all of them, and keys.
import uPlot from "uplot";
import { html, useEffect, useRef, useState, number } from "./base.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const hues = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
const together = uPlot.sync("steps");

// Chart draws series over x, which rises. series: {name, values, hue}. open(x) is called
// for a point that is clicked, or where Enter is pressed.
export function Chart({ title, note, x, series, format = number, range, open, height = 150 }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [at, setAt] = useState(null);
  const drawn = series.filter((s) => s.values.some((v) => v !== null && v !== undefined));
  const theme = useTheme();
  const shape = JSON.stringify([drawn.map((s) => [s.name, s.hue]), theme, height, range]);
  const openIt = useRef(open);
  openIt.current = open;
  useEffect(() => {
    if (!drawn.length) return undefined;
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif", gap: 4 };
    const u = new uPlot({
      width: box.current.clientWidth || 300, height, legend: { show: false }, padding: [8, 6, 0, 0],
      cursor: { sync: { key: together.key }, drag: { x: true, y: false }, points: { size: 6 }, focus: { prox: 30 } },
      scales: { x: { time: false }, y: range ? { range: () => range } : { range: (_, lo, hi) => (lo === hi ? [lo - 1, hi + 1] : uPlot.rangeNum(lo, hi, 0.12, false)) } },
      axes: [{ ...axis, size: 22, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] }, { ...axis, size: 48, values: (_, ticks) => ticks.map((v) => format(v)) }],
      series: [{}, ...drawn.map((s, i) => ({
        label: s.name, stroke: colour(s.hue ?? hues[i]), width: 1.75, spanGaps: true,
        points: { show: x.length < 40, size: 4, fill: colour(s.hue ?? hues[i]) },
      }))],
      hooks: { setCursor: [(c) => setAt(c.cursor.idx ?? null)] },
    }, [x, ...drawn.map((s) => s.values)], box.current);
    plot.current = u;
    let down = 0;
    u.over.addEventListener("mousedown", (e) => { down = e.clientX; });
    u.over.addEventListener("click", (e) => { if (Math.abs(e.clientX - down) < 4 && u.cursor.idx !== null) openIt.current?.(u.data[0][u.cursor.idx]); });
    const resize = new ResizeObserver(() => box.current && u.setSize({ width: box.current.clientWidth || 300, height }));
    resize.observe(box.current);
    return () => { resize.disconnect(); u.destroy(); plot.current = null; };
  }, [shape]);
  useEffect(() => { plot.current?.setData([x, ...drawn.map((s) => s.values)]); }, [x, JSON.stringify(drawn.map((s) => s.values.at(-1))), x.length]);
  const press = (e) => {
    const u = plot.current;
    if (!u) return;
    const now = at ?? x.length - 1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: x.length - 1 }[e.key];
    if (to !== undefined) {
      const i = Math.max(0, Math.min(x.length - 1, to));
      u.setCursor({ left: u.valToPos(x[i], "x"), top: 10 });
      e.preventDefault();
    } else if (e.key === "Enter") open?.(x[now]);
  };
  const shown = at ?? x.length - 1;
  const of = (s) => s.values[shown] ?? (at === null ? s.values.findLast((v) => v !== null && v !== undefined) : null);
  const words = drawn.map((s) => `${s.name} ${format(of(s))}`).join(", ");
  return html`<figure class="chart" tabindex=${drawn.length ? 0 : undefined} role="group" aria-label=${`${title}: ${words}`} onKeyDown=${press}>
    <figcaption><b title=${note}>${title}</b>${drawn.length > 0 && html`<span class="at">step ${x[shown]}</span>`}
      <span class="legend">${drawn.map((s, i) => html`<span key=${s.name}><i class=${`swatch ${(s.hue ?? hues[i]).slice(2)}`}></i>${s.name} <b>${format(of(s))}</b></span>`)}</span></figcaption>
    ${drawn.length ? html`<div class="plot" ref=${box} style=${{ height: `${height}px` }}></div>` : html`<div class="empty small">${note ?? "No values yet."}</div>`}</figure>`;
}

// useTheme changes when the colours do.
function useTheme() {
  const [theme, set] = useState(themeNow());
  useEffect(() => {
    const f = () => set(themeNow());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", f);
    addEventListener("theme", f);
    return () => { dark.removeEventListener("change", f); removeEventListener("theme", f); };
  }, []);
  return theme;
}

const themeNow = () => `${document.documentElement.dataset.theme ?? ""}${matchMedia("(prefers-color-scheme: dark)").matches}`;
