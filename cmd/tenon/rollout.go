package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// rolloutFlags are the flags of the commands of tenon rollout.
type rolloutFlags struct {
	reason, output string
	yes            bool
}

func newRolloutCommand() *cobra.Command {
	var flags rolloutFlags
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Watch, stop, resume or take back the rollout of a NodePool's drifted nodes",
		Long: `A NodePool with the annotation tenon.sh/rollout, such as 1,10%,100%, has its drifted nodes replaced in steps: after each, the
new nodes and their pods are watched, and what goes wrong stops the rollout (docs/rollouts.md).

The commands need the API server only: neither a worker nor Temporal has to run. What a person orders is kept on the
NodePool, with the name by which the API server knows the person.`,
		Example: `  tenon rollout status
  tenon rollout stop web --reason "latency is up"
  tenon rollout resume web --reason "the probe was wrong"
  tenon rollout back web`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	order := func(what, short, long, example string) *cobra.Command {
		child := &cobra.Command{Use: what + " POOL", Short: short, Long: long, Example: example, Args: onePool,
			RunE: withRollouts(&flags, func(ctx context.Context, r *rolloutCommand, args []string) error {
				return r.order(ctx, args[0], what, flags)
			})}
		child.Flags().StringVar(&flags.reason, "reason", "", "why, for everybody who wonders; required")
		return child
	}
	status := &cobra.Command{Use: "status [POOL]", Short: "Show how far rollouts are, and what has stopped them",
		Example: "  tenon rollout status\n  tenon rollout status web -o json", Args: cobra.MaximumNArgs(1),
		RunE: withRollouts(&flags, func(ctx context.Context, r *rolloutCommand, args []string) error { return r.status(ctx, args...) })}
	back := &cobra.Command{Use: "back POOL", Short: "Have nodes made again from what they were made from before the rollout",
		Long: `Restores what the nodes of a NodePool were made from before the rollout: the NodePool's spec.template and the spec of its
EC2NodeClass, with the images that it chose then. Without --yes it only shows the changes. With it, nodes of the new target
drift and are replaced within the budgets, and those that were not replaced yet no longer drift.

Whatever manages the two objects from manifests, such as GitOps, will undo this unless the manifests change as well.`,
		Example: "  tenon rollout back web\n  tenon rollout back web --yes --reason \"nodes do not become Ready\"", Args: onePool,
		RunE: withRollouts(&flags, func(ctx context.Context, r *rolloutCommand, args []string) error { return r.back(ctx, args[0], flags) })}
	back.Flags().StringVar(&flags.reason, "reason", "", "why, for everybody who wonders")
	back.Flags().BoolVar(&flags.yes, "yes", false, "change the objects, instead of only showing how")
	cmd.AddCommand(status, back,
		order(karpv1.RolloutStop, "Have no more nodes replaced for having drifted", "Stops a rollout until somebody resumes it. Drains that have begun go on (see tenon drain pause).",
			"  tenon rollout stop web --reason \"latency is up\""),
		order(karpv1.RolloutResume, "Go on in spite of what has stopped a rollout", `Has a stopped rollout go on. Nodes and pods that exist now are not judged any more; the step is watched anew. A query that
still fails stops it again.`, "  tenon rollout resume web --reason \"the probe was wrong\""))
	return cmd
}

func onePool(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: name one NodePool; got %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
	}
	return nil
}

// rolloutCommand is the connection and the output of the commands.
type rolloutCommand struct {
	kube kube.Client
	now  func() time.Time
	out  io.Writer
	json bool
}

// withRollouts connects to Kubernetes and then runs a command.
func withRollouts(flags *rolloutFlags, run func(context.Context, *rolloutCommand, []string) error) func(*cobra.Command, []string) error {
	return inCluster(&flags.output, func(ctx context.Context, c clusterCommand, args []string) error {
		r := rolloutCommand(c)
		return run(ctx, &r, args)
	})
}

// rolloutStatus is a rollout as tenon rollout status shows it.
type rolloutStatus struct {
	NodePool string `json:"nodePool"`
	// Reason and Message are those of the condition Rollout, Since is since when it has had this status.
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since,omitzero"`
	// Steps are those of the annotation.
	Steps string              `json:"steps"`
	State karpv1.RolloutState `json:"state"`
	Order karpv1.RolloutOrder `json:"order,omitzero"`
	// Previous identifies what tenon rollout back goes back to; empty if there is nothing.
	Previous string `json:"previous,omitempty"`
}

// status shows the rollouts of some NodePools, or of all that have one.
func (r *rolloutCommand) status(ctx context.Context, names ...string) error {
	shown := []rolloutStatus{}
	if len(names) > 0 {
		for _, name := range names {
			pool, err := r.pool(ctx, name)
			if err != nil {
				return err
			}
			shown = append(shown, statusOf(pool))
		}
	} else {
		var pools karpv1.NodePoolList
		if err := r.kube.List(ctx, &pools); err != nil {
			return fmt.Errorf("list NodePools: %w", err)
		}
		for i := range pools.Items {
			if _, some := pools.Items[i].Annotations[karpv1.RolloutAnnotationKey]; some {
				shown = append(shown, statusOf(&pools.Items[i]))
			}
		}
	}
	slices.SortFunc(shown, func(a, b rolloutStatus) int { return strings.Compare(a.NodePool, b.NodePool) })
	if r.json {
		return writeJSON(r.out, shown)
	}
	if len(shown) == 0 {
		_, err := fmt.Fprintln(r.out, "no NodePool has a rollout (annotation "+karpv1.RolloutAnnotationKey+")")
		return err
	}
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODEPOOL\tSTEPS\tSTATE\tMESSAGE")
	for _, s := range shown {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.NodePool, s.Steps, s.Reason, s.Message)
	}
	return table.Flush()
}

// statusOf describes the rollout of a NodePool. Until a worker has looked at an order, the order is what holds.
func statusOf(pool *karpv1.NodePool) rolloutStatus {
	shown := rolloutStatus{NodePool: pool.Name, Steps: pool.Annotations[karpv1.RolloutAnnotationKey], Reason: karpv1.RolloutUnknown, Message: "no worker has looked at it yet"}
	if condition := pool.Condition(karpv1.ConditionTypeRollout); condition != nil {
		shown.Reason, shown.Message, shown.Since = condition.Reason, condition.Message, condition.LastTransitionTime.Time
	}
	// What cannot be read, the condition says.
	shown.State, _ = pool.RolloutState()
	shown.Order, _ = pool.RolloutOrder()
	if why := pool.RolloutStop(); why != "" && shown.Reason != karpv1.RolloutInvalid {
		shown.Reason, shown.Message = karpv1.RolloutStopped, why
	}
	if targets, err := pool.RolloutTargets(); err == nil && targets.Previous != nil {
		shown.Previous = targets.Previous.Target
	}
	return shown
}

// pool reads a NodePool that has a rollout.
func (r *rolloutCommand) pool(ctx context.Context, name string) (*karpv1.NodePool, error) {
	var pool karpv1.NodePool
	if err := r.kube.Get(ctx, kube.ObjectKey{Name: name}, &pool); err != nil {
		return nil, fmt.Errorf("read NodePool %s: %w", name, err)
	}
	if _, some := pool.Annotations[karpv1.RolloutAnnotationKey]; !some {
		return nil, fmt.Errorf("NodePool %s has no rollout: give it the annotation %s, such as 1,10%%,100%%", name, karpv1.RolloutAnnotationKey)
	}
	return &pool, nil
}

// order writes an order onto a NodePool, and shows what holds then.
func (r *rolloutCommand) order(ctx context.Context, name, what string, flags rolloutFlags) error {
	if strings.TrimSpace(flags.reason) == "" {
		return errors.New("--reason: say why, for everybody who wonders")
	}
	if err := r.write(ctx, name, what, flags.reason, nil); err != nil {
		return err
	}
	return r.status(ctx, name)
}

// write writes an order onto a NodePool, together with another change. If somebody else has written at the same time, it
// begins anew.
func (r *rolloutCommand) write(ctx context.Context, name, what, reason string, change func(*karpv1.NodePool)) error {
	by, err := (&pauseCommand{kube: r.kube}).author(ctx)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pool, err := r.pool(ctx, name)
		if err != nil {
			return err
		}
		state, err := pool.RolloutState()
		if err != nil {
			return err
		}
		order := karpv1.RolloutOrder{What: what, Reason: reason, By: by, At: r.now().UTC().Truncate(time.Second)}
		// The clock of whoever has stopped the rollout may be ahead of this one.
		for _, after := range []time.Time{state.Began, state.StoppedAt, state.Resumed.Add(time.Second)} {
			if order.At.Before(after) {
				order.At = after
			}
		}
		text, err := json.Marshal(order)
		if err != nil {
			return fmt.Errorf("write the order: %w", err)
		}
		before := pool.DeepCopy()
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.RolloutOrderAnnotationKey, string(text))
		if change != nil {
			change(pool)
		}
		if err := r.kube.Patch(ctx, pool, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("write the order onto NodePool %s: %w", name, err)
		}
		return nil
	})
}
