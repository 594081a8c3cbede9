#!/bin/sh
# Puts the named versions of the front end's libraries beside this file, each with its
# licence, as they are published but for the lines that name source maps. For developers:
# what it makes is committed.
set -eu
cd "$(dirname "$0")"
here=$PWD
into=$(mktemp -d)
trap 'rm -rf "$into"' EXIT
cd "$into"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts \
	preact@11.2.0 htm@3.1.1 uplot@1.6.32 \
	@lezer/common@1.5.5 @lezer/lr@1.4.12 @lezer/highlight@1.2.5 @lezer/python@1.1.19
take() { # package, file in it, name here
	grep -v '^//# sourceMappingURL=' "node_modules/$1/$2" >"$here/$3"
}
licence() { cp "node_modules/$1/LICENSE" "$here/$2.LICENSE"; }
take preact dist/preact.mjs preact.js
take preact hooks/dist/hooks.mjs preact-hooks.js
take htm dist/htm.mjs htm.js
take uplot dist/uPlot.esm.js uplot.js
take uplot dist/uPlot.min.css uplot.css
take @lezer/common dist/index.js lezer-common.js
take @lezer/lr dist/index.js lezer-lr.js
take @lezer/highlight dist/index.js lezer-highlight.js
take @lezer/python dist/index.js lezer-python.js
licence preact preact
licence htm htm
licence uplot uplot
for p in common lr highlight python; do licence "@lezer/$p" "lezer-$p"; done
