package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/manifest"
	"github.com/tenon-sh/tenon/internal/offline"
	"github.com/tenon-sh/tenon/plan"
)

// planGCPercent is GOGC while planning files: the command is short, and most of its garbage is the input it has just
// read.
const planGCPercent = 200

// planFlags are the flags of `tenon plan`.
type planFlags struct {
	files, nodePools []string
	account          offline.Options
	output           string
	minValues        string
	preferences      string
	nominate         bool
	nodePrice        float64
	packing          string
}

func newPlanCommand() *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "plan -f FILE...",
		Short: "Say which nodes manifests would get, without any cluster",
		Long: `Runs the planner on manifests and prints the nodes that Tenon would create for them, the pods on each, what they cost
per hour, and why a pod would stay without a node. It asks neither Kubernetes nor AWS.

FILE is a file, a directory or - for standard input; YAML or JSON, any number of documents, lists as "kubectl get -o yaml"
prints them. Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs (one run) are planned, with the
PersistentVolumes and claims, StorageClasses, PriorityClasses, RuntimeClasses, LimitRanges, Namespaces and CapacityBuffers
they need, and NodeOverlays. Existing Nodes and NodeClaims are filled first, with the pods that spec.nodeName puts there; every other pod is
taken to be pending. PodDisruptionBudgets are accepted, and ResourceQuotas and kinds that mean nothing to planning are
ignored with a note. A field that does not exist is an error.

NodePools and EC2NodeClasses come from --nodepools, else from among the FILEs, and count as Ready. Without any, a pool
like Karpenter's first is assumed, without limits: on-demand, linux, amd64, categories c, m and r of generation 3 and
later. Instance types, capacity and allocatable are computed as the worker does, from the built-in catalogue or from
--catalogue; prices are those of us-east-1, and spot prices are estimates. Subnets cannot be looked up: without an
EC2NodeClass's status, as a cluster writes it, a subnet in each of --zones is assumed.

From Kubernetes 1.35 on, Tenon tells the kube-scheduler which node each pod was planned for, so that the leanest plan holds.
Before, pods go where the kube-scheduler puts them, and the plan allows for that: --nominate=false shows what such a cluster
would get.

Pods without a node are listed with a reason for each NodePool. They are an answer, not a failure: the exit code is 0
whenever there is a plan, and 1 for mistakes in manifests or flags.`,
		Example: `  tenon plan -f deploy/ --nodepools pools.yaml
  kubectl get deployments,statefulsets,daemonsets -A -o yaml | tenon plan -f - -o json
  tenon plan -f workloads.yaml --nominate=false    # a cluster before Kubernetes 1.35
  tenon plan -f workloads.yaml -o json | jq -e '.unplaced == []'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			return runPlan(cmd.Context(), flags, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().AddFlagSet(flags.set())
	return cmd
}

// set returns the flag set.
func (p *planFlags) set() *pflag.FlagSet {
	f := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	f.StringArrayVarP(&p.files, "filename", "f", nil, "file or directory of manifests, or - for standard input; repeatable")
	f.StringArrayVar(&p.nodePools, "nodepools", nil, "file or directory of NodePools and EC2NodeClasses to use instead of those among the manifests; repeatable")
	f.StringVar(&p.account.CatalogueFile, "catalogue", "", "JSON file of instance types to use instead of the built-in ones, as tenon-lab ec2sim takes it")
	f.StringVar(&p.account.Region, "region", "", "region whose zones are planned with (default that of the Nodes and EC2NodeClasses, else "+offline.DefaultRegion+"); prices are those of us-east-1")
	f.StringSliceVar(&p.account.Zones, "zones", nil, "availability zones (default a, b and c of the region)")
	f.StringVar(&p.minValues, "min-values-policy", string(plan.MinValuesStrict), "Strict or BestEffort")
	f.StringVar(&p.preferences, "preference-policy", string(plan.PreferencesRespect), "Respect or Ignore what pods prefer but do not require")
	f.BoolVar(&p.nominate, "nominate", true, "plan as for Kubernetes 1.35 and later, where pods are told which node is theirs; false plans as for older ones")
	f.Float64Var(&p.nodePrice, "node-price", 0, "US dollars per hour (yuan in China) that a node costs in addition to its machine and its volumes")
	f.StringVar(&p.packing, "packing", string(plan.PackingSpread), "cheapest, or spread: which plan wins among those of almost equal cost, where a NodePool does not say it")
	f.StringVarP(&p.output, "output", "o", "", "output format: json or yaml (default: a table)")
	return f
}

func (p *planFlags) validate() error {
	switch {
	case len(p.files) == 0:
		return errors.New("which manifests? Give -f FILE (see tenon plan --help)")
	case count(p.files, manifest.Stdin)+count(p.nodePools, manifest.Stdin) > 1:
		return errors.New("standard input (-) can be read only once")
	case !slices.Contains([]string{"", "json", "yaml"}, p.output):
		return fmt.Errorf("--output %q: must be json, yaml or left out", p.output)
	case p.minValues != string(plan.MinValuesStrict) && p.minValues != string(plan.MinValuesBestEffort):
		return fmt.Errorf("--min-values-policy %q: must be Strict or BestEffort", p.minValues)
	case p.preferences != string(plan.PreferencesRespect) && p.preferences != string(plan.PreferencesIgnore):
		return fmt.Errorf("--preference-policy %q: must be Respect or Ignore", p.preferences)
	case !(p.nodePrice >= 0) || math.IsInf(p.nodePrice, 1):
		return fmt.Errorf("--node-price %v: must be US dollars per hour, such as 0.01, and not negative", p.nodePrice)
	case !plan.Packing(p.packing).Valid():
		return fmt.Errorf("--packing %q: must be cheapest or spread", p.packing)
	}
	return nil
}

func count(values []string, value string) int {
	n := 0
	for _, v := range values {
		if v == value {
			n++
		}
	}
	return n
}

// runPlan reads the manifests, plans, and prints the report.
func runPlan(ctx context.Context, flags planFlags, in io.Reader, out, progress io.Writer) error {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(planGCPercent))
	}
	watch := newStopwatch(progress)
	defer watch.stop()
	cluster, err := readCluster(ctx, flags, in, watch)
	if err != nil {
		return err
	}
	watch.begin("reading instance types")
	account, err := offline.New(flags.place(cluster))
	if err != nil {
		return err
	}
	defer func() { _ = account.Close() }() // its results have all been read
	input := flags.input(cluster)
	notes := cluster.Notes
	for _, pool := range cluster.NodePools {
		class := cluster.Classes[pool.Spec.Template.Spec.NodeClassRef.Name]
		types, assumed, err := account.InstanceTypes(ctx, class)
		if err != nil {
			return err
		}
		for _, note := range assumed {
			if cluster.Assumed[class.Name] {
				break // nobody asks about a class that no manifest names
			}
			notes = append(notes, fmt.Sprintf("EC2NodeClass %s: %s", class.Name, note))
		}
		if _, err := pool.Packing(); err != nil {
			notes = append(notes, fmt.Sprintf("NodePool %s: %v; it is packed as --packing says", pool.Name, err))
		}
		input.Pools = append(input.Pools, plan.Pool{NodePool: pool, Types: types, Excluded: account.Excluded(class), NodePrice: flags.nodePrice + account.VolumePrice(class),
			Packing: plan.Packing(flags.packing).For(pool)})
	}
	overlays, problems := plan.NewOverlays(cluster.Snapshot.LabelKeys, cluster.Overlays, input.Pools)
	for i := range input.Pools {
		input.Pools[i].Types = overlays.Apply(input.Pools[i].NodePool, input.Pools[i].Types)
	}
	notes = append(notes, overlayNotes(cluster.Overlays, problems)...)
	slices.Sort(notes)
	for _, note := range slices.Compact(notes) {
		watch.say("note: %s", note)
	}
	watch.begin("planning %d pods", len(cluster.Snapshot.Pending))
	packed := plan.Pack(input)
	static, withheld := plan.Static(input)
	packed.Claims = append(static, packed.Claims...)
	watch.stop()
	for _, reason := range withheld {
		watch.say("note: NodePool %s: %s", reason.NodePool, reason.Message)
	}
	report, err := reportOf(input, packed, cloud.Currency(account.Region()))
	if err != nil {
		return err
	}
	return report.print(out, flags.output)
}

// input returns the plan's input from the flags and the manifests, without pools.
func (p *planFlags) input(cluster *manifest.Cluster) plan.Input {
	return plan.Input{
		Snapshot: cluster.Snapshot, MinValues: plan.MinValuesPolicy(p.minValues), Preferences: plan.PreferencePolicy(p.preferences), Nominates: p.nominate,
	}
}

// overlayNotes returns notes about which NodeOverlays apply, and why others do not.
func overlayNotes(overlays []*karpv1alpha1.NodeOverlay, problems map[string]plan.OverlayProblem) []string {
	var notes []string
	for name, problem := range problems {
		notes = append(notes, fmt.Sprintf("NodeOverlay %s does not apply: %s", name, problem.Message))
	}
	if applied := len(overlays) - len(problems); applied > 0 {
		notes = append(notes, fmt.Sprintf("NodeOverlays that apply, as for a worker with --feature-gates=NodeOverlay=true: %d", applied))
	}
	return notes
}

// place returns the region and zones to plan in: those of the flags, else those of the manifests.
func (p *planFlags) place(cluster *manifest.Cluster) offline.Options {
	place := p.account
	if place.Region == "" {
		place.Region = cluster.Region
		if len(place.Zones) == 0 {
			place.Zones = cluster.Zones
		}
	}
	return place
}

// readCluster reads the manifests, and the NodePools and EC2NodeClasses of --nodepools.
func readCluster(ctx context.Context, flags planFlags, in io.Reader, watch *stopwatch) (*manifest.Cluster, error) {
	watch.begin("reading manifests")
	manifests, err := manifest.Read(ctx, flags.files, in, watch.progress)
	if err != nil {
		return nil, err
	}
	if len(flags.nodePools) > 0 {
		pools, err := manifest.Read(ctx, flags.nodePools, in, nil)
		if err != nil {
			return nil, err
		}
		manifests = manifests.WithPools(pools)
	}
	for _, note := range manifests.Notes() {
		watch.say("note: %s", note)
	}
	return manifests.Cluster(time.Now())
}
