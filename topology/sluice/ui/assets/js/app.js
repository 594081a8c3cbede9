// The frame around all pages, and which address is which page.
import { html, render, useAddress, useData, useEffect, useState, request, runPath, line } from "./base.js";
import { Link, Failure, Loading, useKeys } from "./parts.js";

// Each page is loaded when it is opened first.
const routes = [
  [/^\/$/, "runs"],
  [/^\/compare$/, "compare"],
  [/^\/run\/([^/]+)$/, "run"],
  [/^\/run\/([^/]+)\/trajectories$/, "trajectories"],
  [/^\/run\/([^/]+)\/t\/(\d+\.\d+\.\d+\.\d+\.\d+)$/, "trajectory"],
  [/^\/run\/([^/]+)\/beside\/(\d+\.\d+\.\d+\.\d+\.\d+)\/(\d+\.\d+\.\d+\.\d+\.\d+)$/, "beside"],
  [/^\/run\/([^/]+)\/groups$/, "groups"],
  [/^\/run\/([^/]+)\/questions$/, "questions"],
  [/^\/run\/([^/]+)\/errors$/, "errors"],
  [/^\/run\/([^/]+)\/dead-letters$/, "deadletters"],
  [/^\/dead-letters$/, "deadletters"],
  [/^\/replays$/, "replays"],
  [/^\/replay\/([^/]+)\/([^/]+)$/, "replay"],
  [/^\/sql$/, "sql"],
];

const tabs = [["", "Overview"], ["/trajectories", "Trajectories"], ["/groups", "Groups"], ["/questions", "Questions"], ["/errors", "Errors"], ["/dead-letters", "Dead letters"]];
const places = [["/", "Runs"], ["/replays", "Replays"], ["/dead-letters", "Dead letters"], ["/sql", "SQL"]];

function decoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

function App() {
  const at = useAddress();
  const about = useData("about", () => request("/api/about"), 30);
  const [page, setPage] = useState({});
  const [help, setHelp] = useState(false);
  let name = "", args = [];
  for (const [form, its] of routes) {
    const m = form.exec(at.pathname);
    if (m) { name = its; args = m.slice(1).map(decoded); break; }
  }
  const run = at.pathname.startsWith("/run/") ? args[0] : null;
  useEffect(() => {
    if (!name) return;
    import(`./pages/${name}.js`).then((m) => setPage({ name, view: m.default }), (error) => setPage({ name, error }));
  }, [name]);
  useEffect(() => { for (const a of document.querySelectorAll("nav [aria-current]")) a.scrollIntoView({ inline: "center", block: "nearest" }); }, [at.pathname]);
  useEffect(() => { document.title = `${run ? `${line(run, 40)} · ` : ""}${name || "not found"} · Sluice`; }, [at]);
  useKeys({ "?": () => setHelp(!help), Escape: () => setHelp(false), "/": () => document.querySelector("[data-first]")?.focus() });
  const here = (path) => (path === "/" ? at.pathname === "/" || at.pathname.startsWith("/run") && !at.pathname.startsWith("/replay") || at.pathname === "/compare" : at.pathname.startsWith(path));
  return html`<a class="skip" href="#main">To the page</a>
    <header><${Link} to="/" class="name"><img src="/assets/mark.svg" alt="" width="22" height="22" />Sluice<//>
      <nav aria-label="Pages">${places.map(([path, text]) => html`<${Link} key=${path} to=${path} aria-current=${here(path) ? "page" : undefined}>${text}<//>`)}</nav>
      <span class="tools"><${Theme} /><button class="icon" onClick=${() => setHelp(!help)} aria-label="Keys" aria-expanded=${help} title="Keys (?)">?</button></span></header>
    ${run && html`<div class="tabs"><h1 title=${line(run, 300)}><${Link} to=${runPath(run)}>${line(run, 60)}<//></h1>
      <nav aria-label="Of this run">${tabs.map(([path, text]) => html`<${Link} key=${path} to=${runPath(run, path)} aria-current=${at.pathname === runPath(run, path) || path === "/trajectories" && (at.pathname.startsWith(runPath(run, "/t/")) || at.pathname.startsWith(runPath(run, "/beside/"))) ? "page" : undefined}>${text}<//>`)}</nav></div>`}
    ${help && html`<${Keys} close=${() => setHelp(false)} />`}
    ${about.data?.clickhouse && html`<div class="note warn" role="status">ClickHouse: ${line(about.data.clickhouse, 300)}</div>`}
    <main id="main" tabindex="-1">${!name ? html`<p>There is no page at this address. <${Link} to="/">All runs<//></p>`
      : page.error ? html`<${Failure} error=${page.error} />`
      : page.name !== name ? html`<${Loading} />`
      : html`<${page.view} key=${at.pathname} args=${args} at=${at} about=${about.data ?? {}} />`}</main>
    <footer>${about.data ? `sluice ${about.data.version}` : ""}</footer>`;
}

function Theme() {
  const next = { "": "dark", dark: "light", light: "" };
  const names = { "": "as the system", dark: "dark", light: "light" };
  const [now, set] = useState(document.documentElement.dataset.theme ?? "");
  const change = () => {
    const to = next[now];
    apply(to);
    set(to);
  };
  return html`<button class="icon" onClick=${change} aria-label=${`Colours: ${names[now]}`} title=${`Colours: ${names[now]}`}>${{ "": "◐", dark: "●", light: "○" }[now]}</button>`;
}

function apply(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  try { localStorage.setItem("theme", theme); } catch { /* it lasts as long as the page */ }
  dispatchEvent(new Event("theme"));
}

function Keys({ close }) {
  const keys = [["j  k", "next and previous row"], ["Enter", "open the row, or the step of a chart"], ["← →", "walk through a chart"], ["n  p", "next and previous trajectory of a group"], ["/", "to the first filter"], ["Esc", "leave a field, close this"], ["?", "this list"]];
  return html`<div class="keys" role="dialog" aria-label="Keys"><table>${keys.map(([key, does]) => html`<tr key=${key}><td><kbd>${key}</kbd></td><td>${does}</td></tr>`)}</table><button onClick=${close}>Close</button></div>`;
}

addEventListener("keydown", (e) => { if (e.key === "Escape") document.activeElement?.blur?.(); });
try { const theme = localStorage.getItem("theme"); if (theme) apply(theme); } catch { /* as the system */ }
document.getElementById("app").replaceChildren();
render(html`<${App} />`, document.getElementById("app"));
