#!/bin/sh
# Puts one tool into .tools/ of this checkout. Usage: topology/tools/install.sh NAME
# NAME is apt, chromium, runsc, libchdb, kafka, python, buf, protoc-gen-go or golangci-lint. The Makefile calls
# it only where the stamp of the wanted version is missing. Versions come from the
# Makefile through the environment.
set -eu

cd "$(dirname "$0")/../.."
tools=$PWD/.tools
mkdir -p "$tools/bin" "$tools/lib"

say() { printf 'tools: %s\n' "$*" >&2; }

# as_root runs a command as root, or says which one to run and stops.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		sudo "$@"
	elif command -v sudo >/dev/null 2>&1 && [ -t 0 ]; then
		sudo "$@"
	else
		say "this needs root. Run, then try again:"
		say "    $*"
		exit 1
	fi
}

apt_install() {
	missing=
	for package in "$@"; do
		case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
		*"ok installed") ;;
		*) missing="$missing $package" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	if ! command -v apt-get >/dev/null 2>&1; then
		say "not a Debian system: install these by your own means:$missing"
		exit 1
	fi
	say "apt packages:$missing"
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
		say "this needs root. Run, then try again:"
		say "    apt-get update && apt-get install -y --no-install-recommends$missing"
		exit 1
	fi
	# The list may be stale or absent on a fresh machine.
	as_root apt-get update -q >&2
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2
}

# module_version prints the version of the module that a Go binary was built from.
module_version() {
	go version -m "$1" 2>/dev/null | awk '$1 == "mod" { print $3; exit }'
}

# go_tool builds PACKAGE of a module at VERSION into .tools/bin, unless it is there.
go_tool() {
	name=$1 package=$2 version=$3
	if [ "$(module_version "$tools/bin/$name")" = "$version" ]; then
		return 0
	fi
	say "building $name $version (minutes, the first time)"
	CGO_ENABLED=0 GOBIN="$tools/bin" GOFLAGS= go install "$package@$version"
}

# runsc_mark tells this build of a gVisor version from others; raise it with what
# is changed in topology/tools/gvisor.
runsc_mark=+sluice.2

# build_runsc builds gVisor with the changes of topology/tools/gvisor; where that fails,
# as it is.
build_runsc() {
	if "$tools/bin/runsc" --version 2>/dev/null | grep -qF "$RUNSC_VERSION$runsc_mark"; then
		return 0
	fi
	say "building runsc $RUNSC_VERSION (minutes, the first time)"
	source=$(mktemp -d "$tools/gvisor.XXXXXX")
	if changed_runsc "$source"; then
		rm -rf "$source"
		return 0
	fi
	rm -rf "$source"
	say "the changes of topology/tools/gvisor cannot be made: sandboxes will cost a third more"
	go_tool runsc gvisor.dev/gvisor/runsc "$RUNSC_VERSION"
}

# changed_runsc builds in the folder $1. gVisor's seccomp filters are made ready, which
# its own build does by Bazel only, and the patch is applied.
changed_runsc() {
	module=$(GOFLAGS='' go mod download -json "gvisor.dev/gvisor@$RUNSC_VERSION" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	[ -d "$module" ] || return 1
	cp -r "$module/." "$1" && chmod -R u+w "$1" || return 1
	filter=$1/runsc/boot/filter
	mkdir "$1/ready" && cp topology/tools/gvisor/seccomp.go "$1/ready/" || return 1
	(cd "$1" && GOFLAGS='' go run ready/seccomp.go) >"$1/ready.txt" && mv "$1/ready.txt" "$filter/ready.go" || return 1
	sed -e 's/^	precompiledPrograms = programs$/	registerReady(programs)\n&/' \
		"$filter/filter_precompiled.go" >"$1/edited.txt" && mv "$1/edited.txt" "$filter/filter_precompiled.go" || return 1
	grep -q registerReady "$filter/filter_precompiled.go" || return 1
	patch=$PWD/topology/tools/gvisor/runsc.patch
	(cd "$1" && GIT_CEILING_DIRECTORIES=$tools git apply "$patch") || return 1
	(cd "$1" && CGO_ENABLED=0 GOFLAGS='' go build -ldflags "-X gvisor.dev/gvisor/runsc/version.version=$RUNSC_VERSION$runsc_mark" -o "$tools/bin/runsc.new" ./runsc) || return 1
	mv -f "$tools/bin/runsc.new" "$tools/bin/runsc"
}

# npm_get unpacks an npm package into a new folder and prints its name.
npm_get() {
	command -v npm >/dev/null 2>&1 || apt_install npm
	say "npm package $1"
	into=$(mktemp -d "$tools/unpack.XXXXXX")
	(cd "$into" && npm pack --silent "$1" >/dev/null && tar -xzf ./*.tgz)
	printf '%s/package\n' "$into"
}

case ${1:-} in
apt)
	# shellcheck disable=SC2086
	apt_install $APT_PACKAGES
	;;
chromium)
	command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || apt_install chromium
	;;
runsc)
	build_runsc
	;;
libchdb)
	package=$(npm_get "@chdb/lib-linux-x64-gnu@$CHDB_VERSION")
	found=$(find "$package" -name libchdb.so | head -n 1)
	[ -n "$found" ] || { say "no libchdb.so in @chdb/lib-linux-x64-gnu@$CHDB_VERSION"; exit 1; }
	mv -f "$found" "$tools/lib/libchdb.so"
	rm -rf "${package%/package}"
	;;
kafka)
	command -v java >/dev/null 2>&1 || apt_install default-jre-headless
	command -v mvn >/dev/null 2>&1 || apt_install maven
	say "Apache Kafka $KAFKA_VERSION through Maven"
	rm -rf "$tools/kafka"
	mvn -q -B -f topology/tools/kafka.xml -Dkafka.version="$KAFKA_VERSION" \
		dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$tools/kafka" >&2
	;;
python)
	python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv
	say "a Python environment with what stages/trainer is tested with"
	rm -rf "$tools/python"
	python3 -m venv "$tools/python"
	"$tools/python/bin/pip" install --quiet --disable-pip-version-check -r stages/trainer/requirements.txt >&2
	;;
buf)
	package=$(npm_get "@bufbuild/buf-linux-x64@$BUF_VERSION")
	mv -f "$package/bin/buf" "$tools/bin/buf"
	chmod +x "$tools/bin/buf"
	rm -rf "${package%/package}"
	;;
protoc-gen-go)
	go_tool protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go "$PROTOC_GEN_GO_VERSION"
	;;
golangci-lint)
	go_tool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "$GOLANGCI_VERSION"
	;;
*)
	say "unknown tool '${1:-}'"
	exit 2
	;;
esac
