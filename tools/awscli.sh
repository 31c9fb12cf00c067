#!/bin/sh
# Makes sure that there are the AWS CLI and boto3 as Debian packages them, for the tests that have them drive the simulated AWS
# account, and jq, envsubst and curl for the test that types the commands of the documents. Another aws does not count. On Debian
# and Ubuntu they are installed when this runs as root, elsewhere the command to do so is printed and the tests will say that
# they are missing.
set -eu

if [ -x /usr/bin/aws ] && [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import boto3' 2>/dev/null &&
	command -v jq >/dev/null && command -v envsubst >/dev/null && command -v curl >/dev/null; then
	exit 0
fi

install="apt-get update && apt-get install -y --no-install-recommends awscli python3-boto3 jq gettext-base curl"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing awscli, python3-boto3, jq, gettext-base and curl for the tests of the simulated AWS account, about a minute"
	export DEBIAN_FRONTEND=noninteractive
	if ! log=$(sh -c "$install" 2>&1); then
		echo "$log" >&2
		echo "awscli, python3-boto3, jq, gettext-base and curl could not be installed; the tests of the simulated AWS account and of the documents will fail" >&2
	fi
else
	echo "some of awscli, python3-boto3, jq, gettext-base and curl are missing; test/clients and test/docs need them. On Debian or Ubuntu: sudo sh -c '$install'" >&2
fi
