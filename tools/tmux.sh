#!/bin/sh
# Makes sure that there is a tmux, the terminal in which a test runs tenon top. On Debian and Ubuntu it is installed when this
# runs as root, elsewhere the command to do so is printed and the test will say that it is missing.
set -eu

if command -v tmux >/dev/null 2>&1; then
	exit 0
fi

install="apt-get update && apt-get install -y --no-install-recommends tmux"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing tmux for the test of tenon top, a few seconds"
	export DEBIAN_FRONTEND=noninteractive
	if ! log=$(sh -c "$install" 2>&1); then
		echo "$log" >&2
		echo "tmux could not be installed; the test of tenon top will fail" >&2
	fi
else
	echo "tmux is missing and the test of tenon top needs it. On Debian or Ubuntu: sudo sh -c '$install'" >&2
fi
