package docs

import (
	"slices"
	"time"
)

// rule says what becomes of a command that a document shows. The first rule that fits a command counts.
type rule struct {
	// program and words fit a command whose arguments contain the words in this order.
	program string
	words   []string
	// why says why the command is not run as it stands; empty if it is.
	why string
	// drop are arguments that are left out, each with its value; lead are put before the others, and add after them.
	drop, lead, add []string
	// stopped is after how long a command that never ends is stopped.
	stopped time.Duration
	// once says that a second command with the same flags is not run: starting the AWS CLI takes seconds.
	once bool
	// exit is the exit code that means success.
	exit int
	// flags are those that a command may have that is not run at all, and prints is what it prints.
	flags  []string
	prints string
}

// fits says whether the rule is for a command.
func (r rule) fits(program string, args []string) bool {
	if program != r.program {
		return false
	}
	for _, word := range r.words {
		i := slices.Index(args, word)
		if i < 0 {
			return false
		}
		args = args[i+1:]
	}
	return true
}

// runs says whether a real program is run.
func (r rule) runs() bool { return r.flags == nil }

// simulated has the AWS CLI talk to the simulated account, which versions before 2.13 do not learn from the environment, and nowhere
// to nobody: it has checked a command's arguments by AWS's model when it finds nobody there, and ends with this exit code.
var (
	simulated = []string{"--endpoint-url", "$AWS_ENDPOINT_URL"}
	nowhere   = []string{"--endpoint-url", "http://127.0.0.1:1"}
)

const nobodyThere = 255

const (
	noCall     = "the simulated account has no such call: the AWS CLI checks the arguments by AWS's model"
	tooOld     = "the AWS CLI in Debian is older than the call"
	noRegistry = "no registry can be reached"
	noKubelet  = "no kubelet runs containers: the API server judges what would be made"
	noCloud    = "it makes a cluster on AWS"
	takesLong  = "it takes minutes to hours: make says what it would run"
	// TestDisruption/all/approve-drift and its neighbours run these commands.
	nothingWaits = "nothing waits for approval on the laboratory"
	owns         = "the laboratory's own worker has objects of these names"
)

// rules are all of them.
var rules = []rule{
	// What people type most.
	{program: "tenon", words: []string{"worker"}, why: "the laboratory runs a worker already",
		flags: []string{"--ui-address", "--ui-temporal-url", "--observe", "--cluster", "--log-level"}},
	{program: "tenon", words: []string{"approve"}, why: nothingWaits, flags: []string{"--all", "--pool", "--reason"}},
	{program: "tenon", words: []string{"reject"}, why: nothingWaits, flags: []string{"--all", "--pool", "--reason", "--for"}},
	{program: "tenon", words: []string{"rollout", "back"}, why: "nothing was rolled out before", flags: []string{"--yes"}},
	{program: "tenon", words: []string{"convert", "--cluster"}, why: "the laboratory has nothing of older versions", flags: []string{"--cluster"}},
	{program: "tenon"},
	{program: "tenon-lab", words: []string{"dev"}, why: "the laboratory runs already", flags: []string{"--dir", "--provider"}},
	{program: "kubectl", words: []string{"--watch"}, stopped: 3 * time.Second},
	{program: "kubectl", words: []string{"port-forward"}, why: noKubelet, flags: []string{"-n", "--namespace"}},
	{program: "kubectl", words: []string{"create", "secret", "generic", "tenon-codec-keys"}},
	{program: "kubectl", words: []string{"create", "secret"}, why: "nothing on the laboratory reads it", add: []string{"--dry-run=server"}},
	{program: "kubectl", words: []string{"rollout", "deployment/tenon"}, why: noKubelet, flags: []string{"--namespace"}},
	{program: "kubectl", words: []string{"run"}, why: noKubelet, drop: []string{"--rm", "-it"}, add: []string{"--dry-run=server"}},
	{program: "kubectl"},
	{program: "curl"},

	// Helm, with a real API server.
	{program: "helm", words: []string{"--repo"}, why: noRegistry, flags: []string{"--repo", "--version", "--namespace", "--values", "--timeout", "--set"}},
	{program: "helm", words: []string{"install"}, why: owns + "; several documents install the chart", drop: []string{"install"}, lead: []string{"upgrade", "--install"},
		add: []string{"--set", "fullnameOverride=documented"}},
	{program: "helm", words: []string{"rollback", "--wait"}, why: noKubelet, drop: []string{"--wait"}},
	{program: "helm"},

	// Temporal. The laboratory's namespace is called default.
	{program: "temporal", words: []string{"workflow", "show", "--codec-endpoint"}, why: noKubelet, flags: []string{"--workflow-id", "--codec-endpoint"}},
	{program: "temporal", words: []string{"--namespace"}, why: "the laboratory's namespace is called default", drop: []string{"--namespace tenon"}},

	// AWS.
	{program: "aws", words: []string{"sts", "get-caller-identity"}, why: noCall, flags: []string{"--query", "--output"}, prints: "123456789012"},
	{program: "aws", words: []string{"iam", "create-policy"}, why: noCall, add: nowhere, exit: nobodyThere, once: true, prints: "arn:aws:iam::123456789012:policy/made"},
	{program: "aws", words: []string{"iam"}, why: noCall, add: nowhere, exit: nobodyThere, once: true},
	{program: "aws", words: []string{"eks", "create-access-entry"}, why: tooOld, flags: []string{"--cluster-name", "--type", "--principal-arn"}},
	{program: "aws", words: []string{"eks", "list-access-entries"}, why: tooOld, flags: []string{"--cluster-name"}},
	{program: "aws", words: []string{"events", "put-targets"}, why: "a loop makes the same of each rule, and one is enough", add: simulated, once: true},
	{program: "aws", add: simulated},

	// What a laboratory cannot do.
	{program: "make", why: takesLong, add: []string{"--dry-run"}},
	{program: "go", words: []string{"tool", "pprof"}, why: noKubelet, flags: []string{}},
	{program: "pg_basebackup", why: "there is no such database", flags: []string{"--host", "--username", "--checkpoint", "--pgdata"}},
	{program: "docker", words: []string{"build"}, why: noRegistry, flags: []string{"-f", "--build-arg", "-t"}},
	{program: "docker", words: []string{"push"}, why: noRegistry, flags: []string{}},
	{program: "eksctl", words: []string{"create", "cluster"}, why: noCloud, flags: []string{"--name", "--region", "--with-oidc", "--nodes", "--node-type", "--tags"}},
	{program: "eksctl", words: []string{"delete", "cluster"}, why: noCloud, flags: []string{"--name", "--region"}},
}
