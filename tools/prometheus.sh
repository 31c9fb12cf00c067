#!/bin/sh
# Makes sure that bin/ has prometheus and promtool, for the tests of metrics, alert rules and dashboards. On Debian and Ubuntu
# they are unpacked from the package prometheus, without installing it; elsewhere those on the PATH are linked.
set -eu

bin=$(cd "$(dirname "$0")/.." && pwd)/bin
if [ -x "$bin/prometheus" ] && [ -x "$bin/promtool" ]; then
	exit 0
fi
mkdir -p "$bin"
if command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; then
	ln -sf "$(command -v prometheus)" "$(command -v promtool)" "$bin/"
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "prometheus and promtool are missing: put both into $bin" >&2
	exit 1
fi
echo "unpacking Debian's prometheus, a few seconds"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
if ! log=$(apt-get download prometheus 2>&1); then
	[ "$(id -u)" = 0 ] && apt-get update >/dev/null 2>&1 && log=$(apt-get download prometheus 2>&1) || {
		echo "$log" >&2
		echo "prometheus could not be downloaded; run apt-get update, or put prometheus and promtool into $bin" >&2
		exit 1
	}
fi
dpkg -x prometheus_*.deb unpacked
mv unpacked/usr/bin/prometheus unpacked/usr/bin/promtool "$bin/"
