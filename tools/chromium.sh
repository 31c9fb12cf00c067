#!/bin/sh
# Makes sure that there is a Chromium for the test that opens Temporal's web UI. Beside what awscli.sh installs it is the one
# thing the tests need that cannot be built from Go modules: on Debian and Ubuntu it is installed when this runs as root,
# elsewhere the command to do so is printed and the test will say that it is missing.
set -eu

for program in chromium chromium-browser google-chrome google-chrome-stable; do
	if command -v "$program" >/dev/null 2>&1; then
		exit 0
	fi
done

install="apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing chromium for the test of the web UI, about a minute"
	export DEBIAN_FRONTEND=noninteractive
	if ! log=$(sh -c "$install" 2>&1); then
		echo "$log" >&2
		echo "chromium could not be installed; the test of the web UI will fail" >&2
	fi
else
	echo "chromium is missing and the test of the web UI needs it. On Debian or Ubuntu: sudo sh -c '$install'" >&2
fi
