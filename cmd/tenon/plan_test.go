package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/internal/manifest"
	"github.com/tenon-sh/tenon/plan"
)

var update = flag.Bool("update", false, "write the expected outputs anew")

// tenon runs a command line and returns its output.
func tenon(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, notes bytes.Buffer
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&notes)
	err = root.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

// TestPlanOutput checks the three formats. The only pool has one instance type in one zone, so there is one answer.
func TestPlanOutput(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "plan")
	for _, format := range []string{"table", "json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			args := []string{"plan", "-f", filepath.Join(dir, "workloads.yaml"), "--nodepools", filepath.Join(dir, "pools.yaml")}
			if format != "table" {
				args = append(args, "-o", format)
			}
			out, notes, err := tenon(t, "", args...)
			if err != nil {
				t.Fatal(err)
			}
			want := "note: these have no part in planning and are ignored: ConfigMap (1)\n" +
				"note: EC2NodeClass default: its subnets are not known offline: one in each zone is assumed\n"
			if got := onlyNotes(notes); got != want {
				t.Errorf("notes %q, want %q", got, want)
			}
			golden := filepath.Join(dir, "expected."+format)
			if *update {
				if err := os.WriteFile(golden, []byte(out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(expected), out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// onlyNotes removes the progress lines that a slow machine prints.
func onlyNotes(stderr string) string {
	var notes strings.Builder
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "note: ") {
			notes.WriteString(line)
		}
	}
	return notes.String()
}

func TestPlanCommand(t *testing.T) {
	t.Parallel()
	pool, err := os.ReadFile(filepath.Join("testdata", "plan", "pools.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}\n"
	for name, test := range map[string]struct {
		reason, stdin string
		args          []string
		out, notes    string
		fails         string
	}{
		"Nothing":     {reason: "a plan of nothing is no plan", fails: "Give -f FILE"},
		"StdinTwice":  {reason: "nobody can type two files at once", args: []string{"-f", "-", "--nodepools", "-"}, fails: "only once"},
		"Output":      {reason: "a format nobody knows", args: []string{"-f", "-", "-o", "xml"}, fails: `--output "xml"`},
		"MinValues":   {reason: "as the worker has it", args: []string{"-f", "-", "--min-values-policy", "strict"}, fails: `--min-values-policy "strict"`},
		"Preferences": {reason: "as the worker has it", args: []string{"-f", "-", "--preference-policy", "ignore"}, fails: `--preference-policy "ignore"`},
		"NodePrice":   {reason: "a node never pays", args: []string{"-f", "-", "--node-price", "-1"}, fails: "--node-price -1"},
		"NoPrice":     {reason: "not a number is no price", args: []string{"-f", "-", "--node-price", "NaN"}, fails: "--node-price NaN"},
		"Packing":     {reason: "as the worker has it", args: []string{"-f", "-", "--packing", "tight"}, fails: `--packing "tight": must be cheapest or spread`},
		"OwnPacking":  {reason: "a pool's mistake is a note", args: []string{"-f", "-"}, stdin: strings.Replace(string(pool), "metadata: {name: large}", "metadata: {name: large, annotations: {tenon.sh/packing: tight}}", 1) + pod, out: "1 new node", notes: `NodePool large: annotation tenon.sh/packing: "tight" must be cheapest or spread; it is packed as --packing says`},
		"Zones":       {reason: "zones are those of the region", args: []string{"-f", "-", "--zones", "eu-west-1a"}, stdin: pod, fails: "eu-west-1a"},
		"Mistake":     {reason: "mistakes have a place", args: []string{"-f", "-"}, stdin: strings.Replace(pod, "containers", "container", 1), fails: "document 1, Pod default/a: spec.container: "},
		"Stdin":       {reason: "everything may come from standard input", args: []string{"-f", "-"}, stdin: string(pool) + pod, out: "1 pod placed; 1 new node, 0.0960 $/hour; 0 pods without a node"},
		"Region":      {reason: "zones follow from the region", args: []string{"-f", "-", "--region", "eu-west-1"}, stdin: pod, out: "eu-west-1a", notes: "there is no NodePool: assuming one like Karpenter's first"},
		"OwnRegion":   {reason: "the nodes among the manifests say where the cluster is", args: []string{"-f", "-"}, stdin: pod + "---\napiVersion: v1\nkind: Node\nmetadata: {name: full, labels: {topology.kubernetes.io/region: eu-west-1}}\nstatus: {allocatable: {cpu: 1m}}\n", out: "eu-west-1a"},
		"OwnZones":    {reason: "and so does the status of a class", args: []string{"-f", "-"}, stdin: strings.Replace(string(pool), "us-east-1b", "eu-west-1b", 1) + "status: {subnets: [{id: subnet-1, zone: eu-west-1b}]}\n" + pod, out: "eu-west-1b"},
		"UnsoldZone":  {reason: "a pod that cannot be placed is an answer", args: []string{"-f", "-", "--zones", "us-east-1a"}, stdin: string(pool) + pod, out: "0 pods placed; 0 new nodes, 0.0000 $/hour; 1 pod without a node"},
		"StaticPool":  {reason: "the nodes of a static pool are created whatever the pods need", args: []string{"-f", "-"}, stdin: strings.Replace(string(pool), "spec:\n", "spec:\n  replicas: 2\n", 1), out: "large-1..2"},
		"Warning":     {reason: "what would keep a class from being used is said", args: []string{"-f", "-"}, stdin: strings.Replace(string(pool), "al2023@latest", "al2@latest", 1) + pod, out: "1 new node", notes: "EC2NodeClass default: it would not become Ready: spec.amiSelectorTerms: "},
		"Catalogue":   {reason: "a catalogue that is not there", args: []string{"-f", "-", "--catalogue", "none.json"}, stdin: pod, fails: "none.json"},
		"OldCluster":  {reason: "before Kubernetes 1.35 nobody tells pods where they go", args: []string{"-f", "-", "--nominate=false"}, stdin: string(pool) + pod, out: "1 pod placed; 1 new node"},
		"Environment": {reason: "the file may be missing", args: []string{"-f", "none.yaml"}, fails: "none.yaml: there is no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A small catalogue is read faster.
			args := append([]string{"plan", "--catalogue", filepath.Join("testdata", "plan", "catalogue.json")}, test.args...)
			out, notes, err := tenon(t, test.stdin, args...)
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.fails)
			}
			if !strings.Contains(out, test.out) {
				t.Errorf("%s: output lacks %q:\n%s", test.reason, test.out, out)
			}
			if !strings.Contains(notes, test.notes) {
				t.Errorf("%s: notes lack %q:\n%s", test.reason, test.notes, notes)
			}
		})
	}
}

// TestPlanInput checks that the flags reach the planner.
func TestPlanInput(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		args   []string
		want   plan.Input
	}{
		{reason: "a cluster of today", want: plan.Input{MinValues: plan.MinValuesStrict, Preferences: plan.PreferencesRespect, Nominates: true}},
		{
			reason: "one before Kubernetes 1.35", args: []string{"--nominate=false"},
			want: plan.Input{MinValues: plan.MinValuesStrict, Preferences: plan.PreferencesRespect},
		},
		{
			reason: "the worker's other policies", args: []string{"--min-values-policy=BestEffort", "--preference-policy=Ignore"},
			want: plan.Input{MinValues: plan.MinValuesBestEffort, Preferences: plan.PreferencesIgnore, Nominates: true},
		},
	} {
		var flags planFlags
		set := flags.set()
		if err := set.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, flags.input(&manifest.Cluster{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// TestPlanWithOverlays checks that NodeOverlays give the same pods other nodes, or a node at all.
func TestPlanWithOverlays(t *testing.T) {
	t.Parallel()
	overlays, err := os.ReadFile(filepath.Join("testdata", "plan", "overlays.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod := func(requests string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, resources: {requests: {" + requests + "}, limits: {" + requests + "}}}]}\n"
	}
	discount, fuse, _ := strings.Cut(string(overlays), "---\n")
	plain, device := pod("cpu: 100m"), pod("cpu: 100m, smarter-devices/fuse: 1")
	for name, test := range map[string]struct {
		reason, stdin string
		out, notes    string
		fails         string
	}{
		"None":     {reason: "the list prices", stdin: plain, out: "c6a.large"},
		"Discount": {reason: "the price that is paid", stdin: plain + "---\n" + discount, out: "m5.large  us-east-1a  on-demand  amd64  0.0480", notes: "NodeOverlays that apply, as for a worker with --feature-gates=NodeOverlay=true: 1"},
		"NoDevice": {reason: "nobody knows of the device", stdin: device, out: "no instance type has smarter-devices/fuse"},
		"Device":   {reason: "the overlay says who has it", stdin: device + "---\n" + fuse, out: "m5.large  us-east-1a  on-demand  amd64  0.0960"},
		"Both":     {reason: "each sets its own field", stdin: device + "---\n" + string(overlays), out: "0.0480", notes: "NodeOverlay=true: 2"},
		"Conflict": {reason: "of two equals one applies, and the other has a note", stdin: plain + "---\n" + discount + "---\n" + strings.Replace(discount, "name: discount", "name: again", 1), out: "0.0480",
			notes: "NodeOverlay again does not apply: NodeOverlay discount has the same weight and sets the price of"},
		"Mistake": {reason: "what an API server would refuse is a mistake", stdin: plain + "---\n" + strings.Replace(discount, `"-50%"`, `"50%"`, 1), fails: "NodeOverlay discount: spec.priceAdjustment: "},
		"Unknown": {reason: "so is a field that does not exist", stdin: plain + "---\n" + strings.Replace(discount, "priceAdjustment", "priceAdjust", 1), fails: "NodeOverlay discount: spec.priceAdjust: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, notes, err := tenon(t, test.stdin, "plan", "--catalogue", filepath.Join("testdata", "plan", "catalogue.json"), "-f", "-")
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.fails)
			}
			if !strings.Contains(out, test.out) || !strings.Contains(notes, test.notes) {
				t.Errorf("%s: output lacks %q, or notes %q:\n%s\n%s", test.reason, test.out, test.notes, out, notes)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		pods   []string
		want   string
	}{
		"One":   {reason: "a pod is named", pods: []string{"a/b"}, want: "a/b"},
		"Many":  {reason: "pods of one workload are counted", pods: []string{"a/b", "a/c", "a/b"}, want: "a/b (2), a/c"},
		"Lots":  {reason: "a line stays a line", pods: []string{"a", "b", "c", "d", "e", "f", "f"}, want: "a, b, c, d, 2 more workloads"},
		"Five":  {reason: "the last one takes no more room than its count", pods: []string{"a", "b", "c", "d", "e"}, want: "a, b, c, d, e"},
		"Empty": {reason: "a node may be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := summary(test.pods); got != test.want {
				t.Errorf("%s: %q, want %q", test.reason, got, test.want)
			}
		})
	}
}
