// Python in colours: the parser gives places in the text, which become text nodes.
import { html, visible } from "./base.js";

let parsing;
const load = () => (parsing ??= Promise.all([import("@lezer/python"), import("@lezer/highlight")]).then(([python, highlight]) => {
  const t = highlight.tags;
  const style = highlight.tagHighlighter([
    { tag: [t.keyword, t.controlKeyword, t.operatorKeyword, t.definitionKeyword, t.moduleKeyword, t.bool, t.null, t.self], class: "kw" },
    { tag: [t.string, t.special(t.string)], class: "str" }, { tag: t.number, class: "num" }, { tag: [t.comment, t.lineComment], class: "com" },
    { tag: [t.function(t.definition(t.variableName)), t.definition(t.className)], class: "def" }, { tag: t.function(t.variableName), class: "fn" },
  ]);
  return (text) => {
    const parts = [];
    let at = 0;
    highlight.highlightTree(python.parser.parse(text), style, (from, to, cls) => {
      if (from > at) parts.push([text.slice(at, from), ""]);
      parts.push([text.slice(from, to), cls]);
      at = to;
    });
    if (at < text.length) parts.push([text.slice(at), ""]);
    return parts;
  };
}));

export const ready = load;

// most is up to how many characters are coloured: a parser of what others wrote has bounds.
const most = 20000;

// python is a text with its colours, once the parser is there.
export function python(text, parse) {
  if (!parse || text.length > most) return visible(text);
  let parts;
  try { parts = parse(text); } catch { return visible(text); }
  return parts.map(([piece, cls], i) => (cls ? html`<span key=${i} class=${cls}>${visible(piece)}</span>` : visible(piece)));
}
