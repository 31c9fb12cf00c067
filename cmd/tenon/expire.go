package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// expireFlags are the flags of tenon expire.
type expireFlags struct {
	pool, reason, output string
	olderThan            time.Duration
	cancel, dryRun       bool
}

func newExpireCommand() *cobra.Command {
	var flags expireFlags
	cmd := &cobra.Command{
		Use:   "expire NODE... | --pool NODEPOOL",
		Short: "Mark nodes as expired, so that they are replaced within budgets and maintenance windows",
		Long: `Marks nodes of Tenon's as expired now, by the annotation tenon.sh/expire on their NodeClaims. Tenon then replaces them as it
replaces expired nodes of NodePools whose expiration is graceful, whatever their own NodePool says: the one that was marked
first goes first, each when what its pods need serves, within budgets, rates and maintenance windows, and not while
disruption is paused. What protects a node or its pods keeps it, unless it has a terminationGracePeriod. The mark alone never
makes a node go by force; its own expireAfter does so at its own time, as without the mark.

Nodes are given by the names of their Nodes or NodeClaims, or all of a NodePool, with --older-than only those of an age. The
command needs the API server only, and returns at once; tenon why node says what a marked node waits for. --cancel removes
the marks; a node whose replacement has begun goes all the same. To replace a node now, whatever the budgets, use tenon
replace.`,
		Example: `  tenon expire --pool web --older-than 720h --reason "kernel CVE"
  tenon expire ip-10-0-1-17.ec2.internal
  tenon expire --pool web --cancel`,
	}
	cmd.RunE = inCluster(&flags.output, func(ctx context.Context, c clusterCommand, args []string) error {
		e := &expireCommand{pauseCommand: pauseCommand(c), progress: cmd.ErrOrStderr()}
		return e.expire(ctx, args, flags)
	})
	cmd.Flags().StringVar(&flags.pool, "pool", "", "all nodes of this NodePool")
	cmd.Flags().DurationVar(&flags.olderThan, "older-than", 0, "of the NodePool only nodes older than this, such as 720h")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for everybody who wonders")
	cmd.Flags().BoolVar(&flags.cancel, "cancel", false, "remove the marks")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "only list the nodes")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	return cmd
}

// expireCommand is the connection and the output of tenon expire.
type expireCommand struct {
	pauseCommand
	// progress receives warnings and notes.
	progress io.Writer
}

// markedNode is a node as tenon expire lists it.
type markedNode struct {
	Node     string    `json:"node,omitempty"`
	Claim    string    `json:"claim"`
	NodePool string    `json:"nodePool,omitempty"`
	Created  time.Time `json:"created"`
	// Result is one of the results.
	Result string `json:"result"`
}

// What tenon expire has done, or would do, about a node.
const (
	expireMarked    = "Marked"
	expireUnmarked  = "Unmarked"
	expireBefore    = "AlreadyMarked"
	expireNotMarked = "NotMarked"
	expireLeaving   = "Leaving"
)

// expire marks nodes, or removes their marks, and lists them.
func (c *expireCommand) expire(ctx context.Context, names []string, flags expireFlags) error {
	switch {
	case len(names) > 0 == (flags.pool != ""):
		return errors.New("name nodes, or a NodePool with --pool, not both (see tenon expire --help)")
	case flags.olderThan != 0 && flags.pool == "":
		return errors.New("--older-than: is about the nodes of a NodePool; give --pool")
	case flags.olderThan < 0:
		return fmt.Errorf("--older-than %s: must be positive, such as 720h", flags.olderThan)
	}
	claims, err := c.chosen(ctx, names, flags)
	if err != nil {
		return err
	}
	by := ""
	if !flags.dryRun && !flags.cancel {
		if by, err = c.author(ctx); err != nil {
			return err
		}
	}
	order := karpv1.ExpireOrder{By: by, Reason: flags.reason, At: c.now().UTC().Truncate(time.Second)}
	marked := []markedNode{}
	for i := range claims {
		result, err := c.mark(ctx, &claims[i], order, flags)
		if err != nil {
			return err
		}
		marked = append(marked, markedNode{Node: claims[i].Status.NodeName, Claim: claims[i].Name, NodePool: claims[i].Labels[karpv1.NodePoolLabelKey],
			Created: claims[i].CreationTimestamp.UTC(), Result: result})
	}
	if err := c.printMarked(marked, flags.dryRun); err != nil || flags.cancel {
		return err
	}
	return c.noteStops(ctx, marked)
}

// chosen returns the claims of the nodes that a person has named, ordered by age, the oldest first.
func (c *expireCommand) chosen(ctx context.Context, names []string, flags expireFlags) ([]karpv1.NodeClaim, error) {
	var all karpv1.NodeClaimList
	if err := c.kube.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	if flags.pool != "" {
		if err := c.kube.Get(ctx, kube.ObjectKey{Name: flags.pool}, &karpv1.NodePool{}); err != nil {
			return nil, fmt.Errorf("--pool %s: %w", flags.pool, err)
		}
	}
	var claims []karpv1.NodeClaim
	found := map[string]bool{}
	for i := range all.Items {
		claim := &all.Items[i]
		named := slices.Contains(names, claim.Name) || claim.Status.NodeName != "" && slices.Contains(names, claim.Status.NodeName)
		ofPool := flags.pool != "" && claim.Labels[karpv1.NodePoolLabelKey] == flags.pool && !c.now().Before(claim.CreationTimestamp.Add(flags.olderThan))
		if named || ofPool {
			found[claim.Name], found[claim.Status.NodeName] = true, true
			claims = append(claims, *claim)
		}
	}
	for _, name := range names {
		if !found[name] {
			return nil, fmt.Errorf("no NodeClaim is, or has a node, named %s: only nodes of Tenon's expire", name)
		}
	}
	slices.SortStableFunc(claims, func(a, b karpv1.NodeClaim) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return claims, nil
}

// mark marks one claim, or removes its mark, and says what it has done. A mark that is there stays as it is.
func (c *expireCommand) mark(ctx context.Context, claim *karpv1.NodeClaim, order karpv1.ExpireOrder, flags expireFlags) (string, error) {
	_, is := claim.Annotations[karpv1.ExpireAnnotationKey]
	result := expireMarked
	switch {
	case claim.DeletionTimestamp != nil:
		return expireLeaving, nil
	case is && !flags.cancel:
		return expireBefore, nil
	case !is && flags.cancel:
		return expireNotMarked, nil
	case flags.cancel:
		result = expireUnmarked
	}
	if flags.dryRun {
		return result, nil
	}
	changed := claim.DeepCopy()
	if flags.cancel {
		delete(changed.Annotations, karpv1.ExpireAnnotationKey)
	} else {
		text, err := order.Format()
		if err != nil {
			return "", err
		}
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, karpv1.ExpireAnnotationKey, text)
	}
	if err := c.kube.Patch(ctx, changed, kube.MergeFrom(claim)); err != nil {
		return "", fmt.Errorf("write annotation %s of NodeClaim %s: %w", karpv1.ExpireAnnotationKey, claim.Name, err)
	}
	return result, nil
}

// printMarked lists what was done.
func (c *expireCommand) printMarked(marked []markedNode, dryRun bool) error {
	if c.json {
		return writeJSON(c.out, marked)
	}
	if len(marked) == 0 {
		_, err := fmt.Fprintln(c.out, "no node is chosen")
		return err
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODE\tNODECLAIM\tNODEPOOL\tAGE\tRESULT")
	for _, m := range marked {
		result := m.Result
		if dryRun {
			result += " (dry run)"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", orDash(m.Node), m.Claim, orDash(m.NodePool), duration.HumanDuration(c.now().Sub(m.Created)), result)
	}
	return table.Flush()
}

// noteStops says which pauses keep the marked nodes for now.
func (c *expireCommand) noteStops(ctx context.Context, marked []markedNode) error {
	var said []string
	for _, m := range marked {
		stop, err := c.disruptionStop(ctx, m.NodePool)
		if err != nil {
			return err
		}
		if stop != nil && !slices.Contains(said, stop.String()) {
			said = append(said, stop.String())
		}
	}
	if len(said) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(c.progress, "note: %s; the nodes wait until that is over\n", strings.Join(said, "; "))
	return err
}
