package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloud/kwok"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/ask"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// pricesAtOnce is how many workflows are asked at once what their instance costs.
	pricesAtOnce = 16
	// mostAsked is for how many waiting pods a worker is asked why.
	mostAsked = 20
	// readWithin is how long the cluster may take to be read.
	readWithin = 2 * time.Minute
)

// getFlags are the flags that all `tenon get` commands share.
type getFlags struct {
	whyFlags
	provider, pool string
}

func newGetCommand() *cobra.Command {
	var flags getFlags
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List nodes, claims or pods with their fill, state and price, or NodePools and what keeps their nodes",
		Long: `Lists nodes, NodeClaims or pods as the worker's page shows them: both show the same model. Prices are those at the launch,
as the claims' workflows have recorded them; a node without such a workflow has none. A worker is asked why pods wait that
the kube-scheduler found no node for, for at most 20 of them.`,
		Example: "  tenon get nodes\n  tenon get claims --pool web\n  tenon get pods -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags.temporalFlags.add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	cmd.PersistentFlags().StringVar(&flags.provider, "provider", program.ProviderAWS, "the worker's provider: aws or kwok")
	cmd.PersistentFlags().StringVar(&flags.pool, "pool", "", "only what belongs to this NodePool; of pods, those on its nodes")
	cmd.AddCommand(newGetPoolsCommand(&flags.output))
	for _, kind := range []struct {
		name, short string
		write       func(io.Writer, *view.Cluster, bool) error
	}{{"nodes", "List nodes and claims that have no node yet", writeNodes}, {"claims", "List NodeClaims", writeClaims}, {"pods", "List pods, those that wait first", writePods}} {
		cmd.AddCommand(&cobra.Command{Use: kind.name, Short: kind.short, Example: "  tenon get " + kind.name + "\n  tenon get " + kind.name + " -o json", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := program.FromEnvironment(cmd.Flags()); err != nil {
					return err
				}
				if err := jsonOnly(flags.output); err != nil {
					return err
				}
				seen, err := flags.look(cmd.Context(), cmd.ErrOrStderr(), kind.name == "pods")
				if err != nil {
					return err
				}
				return kind.write(cmd.OutOrStdout(), ofPool(seen, flags.pool), flags.output == "json")
			}})
	}
	return cmd
}

// look reads the cluster once, and makes the view of it.
func (f *getFlags) look(ctx context.Context, progress io.Writer, reasons bool) (*view.Cluster, error) {
	var kind cloud.Kind
	switch f.provider {
	case program.ProviderAWS:
		kind = nodeclass.Kind()
	case program.ProviderKwok:
		kind = kwok.Kind()
	default:
		return nil, program.CheckProvider(f.provider)
	}
	_, connection, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	slow := time.AfterFunc(2*time.Second, func() { _, _ = fmt.Fprintln(progress, "reading the cluster and what Temporal has recorded ...") })
	defer slow.Stop()
	snapshot, err := mirrorOnce(ctx, kind)
	if err != nil {
		return nil, err
	}
	name := workflows.Cluster(f.cluster)
	prices, err := launchPrices(ctx, connection, name, snapshot.Nodes)
	if err != nil {
		return nil, err
	}
	in := view.Input{Snapshot: snapshot, Prices: func(n *plan.Node) view.Price { return view.Price{PerHour: prices[n.Claim]} }}
	if reasons {
		in.Reasons = askWhy(ctx, ask.Asker{Temporal: connection, Cluster: name}, snapshot.Pending)
	}
	return view.NewBuilder(f.cluster).Build(in), nil
}

// mirrorOnce returns a snapshot of the cluster of the kubeconfig, made by the worker's own mirror.
func mirrorOnce(ctx context.Context, kind cloud.Kind) (*plan.Snapshot, error) {
	restConfig, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
	}
	restConfig.QPS = -1
	mirror, err := cluster.NewMirror(restConfig, cluster.Options{Kind: kind})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return mirror.Run(running) })
	err = mirror.WaitSynced(running)
	cancel()
	if ended := group.Wait(); err == nil && ended != nil && !errors.Is(ended, context.Canceled) {
		err = ended
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	return mirror.Snapshot(), nil
}

// launchPrices returns what the instances of claims cost per hour at their launch, as their workflows have recorded it.
func launchPrices(ctx context.Context, temporal client.Client, name workflows.Cluster, nodes []*plan.Node) (map[string]float64, error) {
	found := make([]float64, len(nodes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pricesAtOnce)
	for i, node := range nodes {
		if node.Claim == "" {
			continue
		}
		group.Go(func() error {
			history := temporal.GetWorkflowHistory(ctx, name.NodeClaimID(node.Claim), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			if !history.HasNext() {
				return nil
			}
			first, err := history.Next()
			if missing := new(serviceerror.NotFound); errors.As(err, &missing) {
				return nil // the claim has no workflow yet, or none any more
			}
			if err != nil {
				return err
			}
			var in workflows.NodeClaimInput
			if converter.GetDefaultDataConverter().FromPayloads(first.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in) == nil {
				found[i] = in.Instance.Price
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	prices := make(map[string]float64, len(nodes))
	for i, node := range nodes {
		prices[node.Claim] = found[i]
	}
	return prices, nil
}

// whyAsker is what is asked why pods wait.
type whyAsker interface {
	Pod(ctx context.Context, namespace, name string) (workflows.PodAnswer, error)
}

// askWhy asks why pods wait. After the first question that gets no answer, none is asked any more.
func askWhy(ctx context.Context, worker whyAsker, pending []*plan.Pod) map[types.UID]string {
	reasons := map[types.UID]string{}
	for _, pod := range pending {
		if !pod.Unschedulable || pod.Virtual {
			continue
		}
		if len(reasons) == mostAsked {
			break
		}
		answer, err := worker.Pod(ctx, pod.Namespace, pod.Name)
		if err != nil {
			reasons[pod.UID] = err.Error()
			break
		}
		reasons[pod.UID] = verdict(answer)
	}
	return reasons
}

// verdict is a worker's answer in a sentence.
func verdict(answer workflows.PodAnswer) string {
	switch answer.Verdict {
	case workflows.PodFits:
		return "it fits on " + answer.Node
	case workflows.PodPromised:
		return "a plan was made for it: it is meant for " + answer.Node
	case workflows.PodLaunch:
		return fmt.Sprintf("the next plan launches a node for it: NodePool %s, %s", answer.NodePool, answer.CapacityType)
	case workflows.PodUnplaced:
		text := "no node can be provisioned for it"
		for i, reason := range answer.Reasons {
			separator := "; "
			if i == 0 {
				separator = ": "
			}
			if reason.NodePool != "" {
				separator += "NodePool " + reason.NodePool + ": "
			}
			text += separator + reason.Message
		}
		return text
	}
	return "the worker does not plan for it at present"
}

// ofPool returns what belongs to a NodePool; everything if none is named.
func ofPool(seen *view.Cluster, pool string) *view.Cluster {
	if pool == "" {
		return seen
	}
	only := *seen
	only.Nodes = slices.DeleteFunc(slices.Clone(seen.Nodes), func(n *view.Node) bool { return n.Pool != pool })
	only.Pending = nil
	return &only
}

func writeNodes(out io.Writer, seen *view.Cluster, json bool) error {
	if json {
		return writeJSON(out, seen.Nodes)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODE\tNODEPOOL\tTYPE\tZONE\tCAPACITY\tSTATE\tCPU\tMEMORY\tPODS\tPER HOUR\tAGE")
	pods, perHour := 0, 0.0
	for _, n := range seen.Nodes {
		name := n.Name
		if name == "" {
			name = n.Claim
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%.0f %%\t%.0f %%\t%d\t%s\t%s\n", name, n.Pool, n.InstanceType, n.Zone, n.CapacityType, n.State, 100*n.Fill.CPU, 100*n.Fill.Memory,
			len(n.Pods), priceInWords(n), ageInWords(n.Created, seen.Time))
		pods += len(n.Pods)
		perHour += n.PerHour
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d nodes with %d pods, %.4f %s per hour; %d pods wait\n", len(seen.Nodes), pods, perHour, seen.Cost.Currency, len(seen.Pending))
	return err
}

func writeClaims(out io.Writer, seen *view.Cluster, json bool) error {
	claims := slices.DeleteFunc(slices.Clone(seen.Nodes), func(n *view.Node) bool { return n.Claim == "" })
	if json {
		return writeJSON(out, claims)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODECLAIM\tNODEPOOL\tNODE\tTYPE\tZONE\tCAPACITY\tSTATE\tPER HOUR\tAGE\tNOTE")
	for _, n := range claims {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Claim, n.Pool, n.Name, n.InstanceType, n.Zone, n.CapacityType, n.State, priceInWords(n),
			ageInWords(n.Created, seen.Time), oneLine(n.Note))
	}
	return table.Flush()
}

func writePods(out io.Writer, seen *view.Cluster, json bool) error {
	pods := []view.Pod{}
	for _, p := range seen.Pending {
		pods = append(pods, *p)
	}
	for _, n := range seen.Nodes {
		for _, p := range n.Pods {
			p.Node = n.Name
			pods = append(pods, p)
		}
	}
	if json {
		return writeJSON(out, pods)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "POD\tOWNER\tSTATE\tNODE\tCPU\tMEMORY\tAGE\tWHY IT WAITS")
	for _, p := range pods {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%dm\t%dMi\t%s\t%s\n", p.Key(), p.Owner, p.State, p.Node, p.CPU, p.Memory>>20, ageInWords(p.Created, seen.Time), oneLine(p.Reason))
	}
	return table.Flush()
}

func priceInWords(n *view.Node) string {
	if n.PerHour == 0 {
		return "-"
	}
	return cloud.Money(n.Zone, n.PerHour)
}

func ageInWords(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(since))
}
