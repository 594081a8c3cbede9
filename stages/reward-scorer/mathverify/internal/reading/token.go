package reading

import (
	"strings"
)

// kind classes tokens.
type kind uint8

const (
	tEnd    kind = iota
	TNum         // digits with at most one decimal point; text holds it
	TLetter      // one symbol: a letter or a named one ("alpha")
	TWord        // several letters in a row that are a word, or the content of \text
	tFunc        // a known function: "sin", "log", "gcd"
	tCmd         // a command with its own grammar: "frac", "sqrt", "begin"
	TOp          // one character of punctuation or arithmetic
	TRel         // a relation: "=", "<", "<=", ">", ">=", "!=", "~", "in"
	tSetOp       // "cup", "cap", "setminus"
	TPost        // what words behind a quantity make of it: ">=" ("or more"), "neg" ("below zero")
)

// Token is one lexical unit. Spaced says that white space stood before it;
// it separates "27 4/6" from "274/6".
type Token struct {
	Kind    kind
	Spaced  bool
	wide    bool // \quad stood before it
	upright bool // a letter of \text
	worded  bool // made of words
	Text    string
	at      int // byte offset, for error messages
}

func (t Token) Is(k kind, text string) bool { return t.Kind == k && t.Text == text }

func (t Token) Op(text string) bool { return t.Kind == TOp && t.Text == text }

func (t Token) Word(text string) bool { return t.Kind == TWord && strings.EqualFold(t.Text, text) }

func (t Token) cmd(text string) bool { return t.Kind == tCmd && t.Text == text }

// class of a command.
type class uint8

const (
	unknownCommand class = iota
	looks                // ignored
	space
	dropped // ignored with its argument
	textual
	symbolic // becomes one token
)

type meaning struct {
	class class
	kind  kind
	text  string
}

// commands is all tables of commands in one, so that each command is looked up
// once. Later tables do not overrule earlier ones.
var commands = func() map[string]meaning {
	m := map[string]meaning{"displaymode": {class: symbolic, kind: TLetter, text: `\displaymode`}}
	put := func(name string, v meaning) {
		if m[name].class == unknownCommand {
			m[name] = v
		}
	}
	for c, names := range map[class]map[string]bool{dropped: hidden, looks: ignored, space: spaces, textual: textCommands} {
		for name := range names {
			put(name, meaning{class: c})
		}
	}
	for _, table := range []struct {
		kind  kind
		names map[string]string
	}{{TRel, relations}, {tSetOp, setOps}, {tCmd, grammar}, {TOp, operators}, {tFunc, functions}, {TLetter, symbols}, {TWord, currencies}} {
		for name, text := range table.names {
			if text == "accent" {
				text = "accent:" + name
			}
			put(name, meaning{symbolic, table.kind, text})
		}
	}
	return m
}()

// hidden commands do not show what they hold, or hold what is no mathematics.
var hidden = map[string]bool{
	"color": true, "textcolor": true, "phantom": true, "hphantom": true, "vphantom": true, "label": true, "tag": true, "cite": true, "ref": true, "pagecolor": true, "colorbox": true,
}

// relations by command and by character.
var relations = map[string]string{
	"le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "lt": "<",
	"ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=", "gt": ">",
	"ne": "!=", "neq": "!=", "in": "in", "approx": "~", "approxeq": "~", "simeq": "~", "sim": "~",
	"equiv": "=", "coloneqq": "=", "cong": "=", "ll": "<<", "gg": ">>",
	"subseteq": "subseteq", "subset": "subset", "supseteq": "supseteq", "supset": "supset", "notin": "notin",
	"to": "to", "rightarrow": "to", "longrightarrow": "to", "Rightarrow": "to", "mapsto": "to",
	"implies": "to", "parallel": "parallel", "perp": "perp", "propto": "propto",
	"Longrightarrow": "to", "leadsto": "to", "iff": "iff", "Leftrightarrow": "iff",
}

// currencies are the commands that stand for a word.
var currencies = map[string]string{"pounds": "gbp", "euro": "euro", "yen": "yen"}

// negated are relations behind \not.
var negated = map[string]string{"=": "!=", "in": "notin", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}

var setOps = map[string]string{
	"cup": "cup", "bigcup": "cup", "cap": "cap", "bigcap": "cap", "setminus": "setminus",
	"smallsetminus": "setminus", "backslash": "setminus", "uplus": "cup",
}

// functions are the names that take an argument.
var functions = map[string]string{
	"sin": "sin", "cos": "cos", "tan": "tan", "tg": "tan", "cot": "cot", "ctg": "cot", "sec": "sec", "csc": "csc",
	"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctg": "atan", "asin": "asin", "acos": "acos", "atan": "atan",
	"arccot": "acot", "arcsec": "asec", "arccsc": "acsc",
	"sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch",
	"arcsinh": "asinh", "arsinh": "asinh", "arccosh": "acosh", "arcosh": "acosh", "arctanh": "atanh", "artanh": "atanh",
	"asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
	"ln": "ln", "log": "log", "lg": "lg", "exp": "exp", "Gamma": "gamma",
	"gcd": "gcd", "lcm": "lcm", "max": "max", "min": "min", "floor": "floor", "ceil": "ceil",
	"Re": "re", "Im": "im", "arg": "arg", "det": "det", "tr": "tr", "trace": "tr", "abs": "abs", "cis": "cis", "sgn": "sgn", "sign": "sgn",
}

// PlainFunctions are those that also count without a backslash.
var PlainFunctions = map[string]bool{
	"sin": true, "cos": true, "tan": true, "cot": true, "sec": true, "csc": true, "arcsin": true, "arccos": true,
	"arctan": true, "sinh": true, "cosh": true, "tanh": true, "ln": true, "log": true, "exp": true,
	"gcd": true, "lcm": true, "max": true, "min": true, "floor": true, "ceil": true, "asin": true, "acos": true, "atan": true, "abs": true, "cis": true,
}

// letters are the commands that stand for one symbol.
var letters = map[string]string{
	"varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "varrho": "rho", "varsigma": "sigma",
	"varpi": "varpi", "ell": "ell", "hbar": "hbar", "nabla": "nabla", "partial": "partial", "aleph": "aleph",
	"angle": "angle", "triangle": "triangle", "bigtriangleup": "triangle", "Box": "square", "square": "square",
	"star": "star", "ast": "*", "bullet": "bullet", "forall": "forall", "exists": "exists", "hslash": "hbar", "imath": "i", "exponentialE": "e", "jmath": "j",
}

func allSymbols() map[string]string {
	m := make(map[string]string, len(letters)+48)
	for k, v := range letters {
		m[k] = v
	}
	for _, g := range greek {
		m[g] = g
	}
	return m
}

var greek = []string{
	"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
	"omicron", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Delta", "Theta", "Lambda", "Xi",
	"Sigma", "Upsilon", "Phi", "Psi", "Omega",
}

var symbols = allSymbols()

// grammar are the commands that the parser treats one by one.
var grammar = map[string]string{
	"frac": "frac", "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "sfrac": "frac", "nicefrac": "frac", "over": "over",
	"sqrt": "sqrt", "binom": "binom", "dbinom": "binom", "tbinom": "binom", "choose": "choose",
	"sum": "sum", "prod": "prod", "int": "int", "iint": "int", "lim": "lim",
	"begin": "begin", "end": "end", "pi": "pi", "infty": "infty", "infinity": "infty", "pm": "pm", "mp": "mp",
	"overline": "accent", "bar": "accent", "vec": "accent", "overrightarrow": "accent", "hat": "accent", "widehat": "accent",
	"tilde": "accent", "widetilde": "accent", "dot": "accent", "ddot": "accent", "overset": "accent2",
	"bmod": "mod", "mod": "mod", "pmod": "pmod", "emptyset": "emptyset", "varnothing": "emptyset",
	"lfloor": "lfloor", "rfloor": "rfloor", "lceil": "lceil", "rceil": "rceil",
	"llcorner": "lfloor", "lrcorner": "rfloor", "ulcorner": "lceil", "urcorner": "rceil",
	"mathbb": "mathbb", "cdots": "dots", "ldots": "dots", "dots": "dots", "dotsc": "dots", "dotsb": "dots", "vdots": "dots",
	"land": "and", "wedge": "and", "lor": "or", "vee": "or", "lVert": "norm", "rVert": "norm", "Vert": "norm",
	"substack": "substack", "not": "not", "variable": "variable", "R": "reals",
}

// operators are the commands that stand for one character.
var operators = map[string]string{
	"cdot": "*", "times": "*", "cdotp": "*", "div": "/", "slash": "/", "colon": ":", "mid": "|", "vert": "|", "lvert": "|", "rvert": "|",
	"lbrace": `\{`, "rbrace": `\}`, "lbrack": "[", "rbrack": "]", "lgroup": "(", "rgroup": ")", "langle": "(", "rangle": ")",
	"prime": "'", "degree": "°", "circ": "°", "percent": "%", "ast": "*",
}

// ignored commands change only the looks.
var ignored = map[string]bool{
	"left": true, "right": true, "mleft": true, "mright": true, "big": true, "Big": true, "bigg": true, "Bigg": true,
	"bigl": true, "bigr": true, "Bigl": true, "Bigr": true, "biggl": true, "biggr": true, "Biggl": true, "Biggr": true,
	"middle": true, "displaystyle": true, "textstyle": true, "scriptstyle": true, "limits": true, "nolimits": true, "rm": true, "bf": true,
	"boxed": true, "fbox": true, "mathstrut": true, "strut": true, "tiny": true, "small": true, "large": true, "Large": true,
	"mathbf": true, "boldsymbol": true, "bm": true, "mathit": true, "mathcal": true, "mathfrak": true, "mathsf": true, "mathscr": true,
	"underbrace": true, "underline": true, "hline": true, "overbrace": true, "ensuremath": true, "hfill": true, "blacksquare": true, "qed": true, "qedhere": true, "notag": true, "nonumber": true, "mathord": true, "mathopen": true, "mathclose": true, "mathinner": true, "mathbin": true, "mathrel": true, "normalsize": true, "allowbreak": true, "nobreak": true, "relax": true, "checkmark": true, "noindent": true, "centering": true, "it": true, "em": true,
}

// spaces are the commands that are white space.
var spaces = map[string]bool{
	"quad": true, "qquad": true, "thinspace": true, "enspace": true, "hspace": true, "vspace": true, "medspace": true, "thickspace": true, "newline": true, "par": true, "space": true, "nobreakspace": true,
}

// textCommands hold words.
var textCommands = map[string]bool{
	"text": true, "textbf": true, "textit": true, "textrm": true, "mbox": true, "hbox": true, "textnormal": true,
	"texttt": true, "textsf": true, "emph": true, "mathrm": true, "operatorname": true, "mathop": true, "textup": true, "textsc": true,
}
