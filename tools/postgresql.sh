#!/bin/sh
# Makes sure that bin/postgresql is the directory of PostgreSQL's programs, for the tests that run Temporal on PostgreSQL. On
# Debian and Ubuntu the package is installed when this runs as root, and no database of its own is created; elsewhere the command
# to do so is printed and the tests will say that it is missing.
set -eu

bin=$(cd "$(dirname "$0")/.." && pwd)/bin

# Debian keeps the programs of each version in a directory of their own, off the PATH.
found() {
	for initdb in $(command -v initdb 2>/dev/null) /usr/lib/postgresql/*/bin/initdb; do
		dir=$(dirname "$(readlink -f "$initdb")")
		[ -x "$dir/postgres" ] && [ -x "$dir/pg_dump" ] && [ -x "$dir/psql" ] && echo "$dir" && return
	done
	return 1
}

if ! found >/dev/null; then
	install="apt-get update && apt-get install -y --no-install-recommends postgresql"
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "installing postgresql for the tests of Temporal on PostgreSQL, about a minute"
		export DEBIAN_FRONTEND=noninteractive
		mkdir -p /etc/postgresql-common
		[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
		if ! log=$(sh -c "$install" 2>&1); then
			echo "$log" >&2
			echo "postgresql could not be installed; the tests of Temporal on PostgreSQL will fail" >&2
			exit 0
		fi
	else
		echo "postgresql is missing and test/postgres needs it. On Debian or Ubuntu: sudo sh -c '$install'" >&2
		exit 0
	fi
fi
mkdir -p "$bin"
ln -sfn "$(found)" "$bin/postgresql"
