#!/bin/sh
# Makes sure that there is axe-core, which judges whether the page can be used by everyone (test/ui). It is a tool of the test
# alone: npm downloads it into bin/, and nothing of it is in the product.
set -eu

version=4.14.1
cd "$(dirname "$0")/.."
if [ -f "bin/axe-$version.min.js" ]; then
	exit 0
fi
install="apt-get update && apt-get install -y --no-install-recommends npm"
if ! command -v npm >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing npm to download axe-core, about a minute"
	export DEBIAN_FRONTEND=noninteractive
	if ! log=$(sh -c "$install" 2>&1); then
		echo "$log" >&2
	fi
fi
if ! command -v npm >/dev/null 2>&1; then
	echo "npm is missing and the test of the page needs it to download axe-core. On Debian or Ubuntu: sudo sh -c '$install'" >&2
	exit 0
fi
echo "downloading axe-core"
mkdir -p bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! log=$(npm pack --silent --pack-destination "$scratch" "axe-core@$version" 2>&1); then
	echo "$log" >&2
	echo "axe-core could not be downloaded; the test of the page will fail" >&2
	exit 0
fi
tar -xzf "$scratch/axe-core-$version.tgz" -C "$scratch" package/axe.min.js
mv "$scratch/package/axe.min.js" "bin/axe-$version.min.js"
