#!/bin/sh
# Builds one of the programs that the laboratory, the tests or make check run, and puts it into bin/:
#
#   tools/build.sh kubelab            etcd, kube-apiserver, scheduler, controller-manager, kwok and kubectl in one binary
#   tools/build.sh temporal           the Temporal command-line tool with its development server and web UI
#   tools/build.sh temporal-server    the Temporal server as it is released, which the tests run on PostgreSQL
#   tools/build.sh temporal-sql-tool  the tool that creates and upgrades that server's tables
#   tools/build.sh karpenter          unmodified Karpenter, which the tests compare with Tenon and hand clusters over to
#   tools/build.sh nodeadm            nodeadm as in EKS's images, which checks the user data of nodes
#   tools/build.sh helm               Helm
#   tools/build.sh golangci-lint      the linters
#   tools/build.sh workflowcheck      the check that workflows are deterministic
#
# A finished program is kept outside the tree under the hash of everything it is made of: its own sources, go.mod,
# go.sum, this script, and the Go version. A second clone links it from there.
set -eu

name=${1:?usage: tools/build.sh kubelab|temporal|temporal-server|temporal-sql-tool|karpenter|nodeadm|helm|golangci-lint|workflowcheck}
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/bin

version_of() { go list -m -f '{{.Version}}' "$1"; }

module=$name
flags=
ldflags="-s -w"
links=
case $name in
kubelab)
	duration="about ten minutes"
	package=.
	flags="-trimpath -buildvcs=false"
	export CGO_ENABLED=0
	;;
temporal)
	duration="about three minutes"
	package=github.com/temporalio/cli/cmd/temporal
	flags="-trimpath -buildvcs=false"
	export CGO_ENABLED=0
	;;
temporal-server)
	duration="about a minute after the command-line tool, which shares most of its packages"
	module=temporal
	package=go.temporal.io/server/cmd/server
	flags="-trimpath -buildvcs=false"
	export CGO_ENABLED=0
	;;
temporal-sql-tool)
	duration="half a minute after the command-line tool, which shares most of its packages"
	module=temporal
	package=go.temporal.io/server/cmd/tools/sql
	flags="-trimpath -buildvcs=false"
	export CGO_ENABLED=0
	;;
karpenter)
	duration="about five minutes"
	package=github.com/aws/karpenter-provider-aws/cmd/controller
	;;
nodeadm)
	duration="about three minutes"
	package=github.com/awslabs/amazon-eks-ami/nodeadm/cmd/nodeadm
	;;
helm)
	duration="about two minutes"
	package=helm.sh/helm/v4/cmd/helm
	;;
golangci-lint)
	duration="about five minutes"
	module=golangci
	package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	;;
workflowcheck)
	duration="half a minute"
	package=go.temporal.io/sdk/contrib/tools/workflowcheck
	;;
*)
	echo "tools/build.sh: unknown program $name" >&2
	exit 2
	;;
esac

cd "$root/tools/$module"
case $name in
kubelab)
	# Without its version the API server calls itself v0.0.0 and refuses to serve its own API versions.
	kubernetes=$(version_of k8s.io/kubernetes)
	ldflags="$ldflags -X sigs.k8s.io/kwok/pkg/consts.Version=$(version_of sigs.k8s.io/kwok)"
	for v in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		minor=${kubernetes#v1.}
		ldflags="$ldflags -X $v.gitVersion=$kubernetes -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}"
		ldflags="$ldflags -X $v.gitTreeState=clean -X $v.gitCommit=module-$kubernetes -X $v.buildDate=1970-01-01T00:00:00Z"
	done
	links=kubectl
	;;
temporal)
	cli=$(version_of github.com/temporalio/cli)
	ldflags="$ldflags -X github.com/temporalio/cli/internal/temporalcli.Version=${cli#v}"
	;;
esac

hash=$({
	go env GOVERSION GOOS GOARCH
	find . ../build.sh -type f ! -name '*_test.go' | LC_ALL=C sort | while read -r file; do
		echo "$file $(git hash-object --no-filters "$file")"
	done
} | git hash-object --stdin)
cache=${TENON_TOOLS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tenon/tools}
cached=$cache/$name-$hash

if [ ! -x "$cached" ]; then
	mkdir -p "$cache"
	# Compiling Kubernetes takes about 1 GB for each package compiled at the same time.
	jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
	[ "$jobs" -le 8 ] || jobs=8
	partial=$cached.$$
	log=$partial.log
	trap 'rm -f "$partial" "$log"' EXIT
	GOWORK=off go build -p "$jobs" $flags -ldflags "$ldflags" -o "$partial" "$package" >"$log" 2>&1 &
	build=$!
	trap 'kill "$build" 2>/dev/null; rm -f "$partial" "$log"; exit 130' INT TERM
	waited=0
	echo "building $name, $duration when nothing is cached"
	while kill -0 "$build" 2>/dev/null; do
		sleep 1
		waited=$((waited + 1))
		[ $((waited % 5)) -ne 0 ] || echo "building $name, $duration when nothing is cached ... $waited s"
	done
	if ! wait "$build"; then
		echo "building $name failed:" >&2
		cat "$log" >&2
		exit 1
	fi
	chmod 555 "$partial"
	mv -f "$partial" "$cached"
	echo "built $name in $waited s"
fi

mkdir -p "$bin"
if [ ! "$bin/$name" -ef "$cached" ]; then
	ln -f "$cached" "$bin/$name" 2>/dev/null || { rm -f "$bin/$name" && cp "$cached" "$bin/$name"; }
fi
for link in $links; do
	ln -sf "$name" "$bin/$link"
done
