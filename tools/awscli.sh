#!/bin/sh
# Makes sure that there are the AWS CLI and boto3 as Debian packages them, for the tests that have them drive the simulated AWS
# account. Others of the same names do not count. On Debian and Ubuntu they are installed when this runs as root, elsewhere the
# command to do so is printed and the tests will say that they are missing.
set -eu

if [ -x /usr/bin/aws ] && [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import boto3' 2>/dev/null; then
	exit 0
fi

install="apt-get update && apt-get install -y --no-install-recommends awscli python3-boto3"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing awscli and python3-boto3 for the tests of the simulated AWS account, about a minute"
	export DEBIAN_FRONTEND=noninteractive
	if ! log=$(sh -c "$install" 2>&1); then
		echo "$log" >&2
		echo "awscli and python3-boto3 could not be installed; the tests of the simulated AWS account will fail" >&2
	fi
else
	echo "awscli and python3-boto3 are missing and test/clients needs them. On Debian or Ubuntu: sudo sh -c '$install'" >&2
fi
