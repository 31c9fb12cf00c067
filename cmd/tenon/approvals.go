package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cmd/internal/program"
)

func newApprovalsCommand() *cobra.Command {
	var pool, output string
	var decided bool
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List what waits for a person's approval",
		Long: `Lists the decisions of NodePools annotated tenon.sh/approval that wait for a person: what would be done, to which nodes, what
it saves, since when it waits and when it expires. With --decided also what was approved and rejected, and by whom, for as
long as that holds. It reads NodeClaims only: neither a worker nor Temporal has to run.`,
		Example: "  tenon approvals\n  tenon approvals --pool gpu -o json\n  tenon approvals --decided",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := jsonOnly(output); err != nil {
				return err
			}
			restConfig, err := config.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
			}
			direct, err := kubeClient(restConfig)
			if err != nil {
				return err
			}
			all, err := listApprovals(cmd.Context(), direct, time.Now(), pool, decided)
			if err != nil {
				return err
			}
			return showApprovals(cmd.OutOrStdout(), all, output == "json")
		},
	}
	cmd.Flags().StringVar(&pool, "pool", "", "only those of this NodePool")
	cmd.Flags().BoolVar(&decided, "decided", false, "also what was approved or rejected lately")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

// listedApproval is an approval as `tenon approvals` shows it.
type listedApproval struct {
	karpv1.Approval
	// Nodes are the Nodes of the NodeClaims that are still there.
	Nodes []string `json:"nodes,omitempty"`
	// NodePools are those of the NodeClaims, each once.
	NodePools []string `json:"nodePools,omitempty"`
}

// listApprovals returns what waits, of one NodePool or of all, and with decided also what people have decided.
func listApprovals(ctx context.Context, direct kube.Client, now time.Time, pool string, decided bool) ([]listedApproval, error) {
	all, err := approvalsOf(ctx, direct, now)
	return slices.DeleteFunc(all, func(l listedApproval) bool {
		return pool != "" && !slices.Contains(l.NodePools, pool) || !decided && l.State != karpv1.ApprovalWaiting
	}), err
}

// showApprovals writes them for people or for programs.
func showApprovals(out io.Writer, all []listedApproval, asJSON bool) error {
	if asJSON {
		return writeJSON(out, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "nothing waits for approval")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tSTATE\tNODEPOOL\tREASON\tNODES\tSAVES/H\tSINCE\tUNTIL\tBY\tWHAT")
	for _, l := range all {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, l.State, strings.Join(l.NodePools, ","), l.Reason, strings.Join(l.Nodes, ","),
			cloud.Money(l.Zone, l.SavesPerHour), when(l.Since, "-"), when(l.Until, "-"), orDash(l.By), cmp.Or(l.Note, l.Does))
	}
	return table.Flush()
}

// approvalsOf returns what the NodeClaims say about approvals that hold now, the oldest first.
func approvalsOf(ctx context.Context, direct kube.Client, now time.Time) ([]listedApproval, error) {
	var claims karpv1.NodeClaimList
	if err := direct.List(ctx, &claims); err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	all := []listedApproval{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		for _, a := range karpv1.ReadApprovals(claim.Annotations[karpv1.ApprovalsAnnotationKey]) {
			if !now.Before(a.Until) {
				continue
			}
			at := slices.IndexFunc(all, func(l listedApproval) bool { return l.ID == a.ID && l.State == a.State })
			if at < 0 {
				at, all = len(all), append(all, listedApproval{Approval: a})
			}
			l := &all[at]
			l.Nodes = append(l.Nodes, cmp.Or(claim.Status.NodeName, claim.Name))
			if pool := claim.Labels[karpv1.NodePoolLabelKey]; !slices.Contains(l.NodePools, pool) {
				l.NodePools = append(l.NodePools, pool)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b listedApproval) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// chosen returns the approvals that wait and that a person means: by an id or by the name of a Node or a NodeClaim, or all
// of a NodePool.
func chosen(all []listedApproval, name, pool string) ([]listedApproval, error) {
	waiting := slices.DeleteFunc(slices.Clone(all), func(l listedApproval) bool {
		return l.State != karpv1.ApprovalWaiting || pool != "" && !slices.Contains(l.NodePools, pool) ||
			name != "" && l.ID != name && !slices.Contains(l.Nodes, name) && !slices.Contains(l.Claims, name)
	})
	switch {
	case len(waiting) > 0:
		return waiting, nil
	case name != "":
		return nil, fmt.Errorf("%s: nothing waits for approval under this id, Node or NodeClaim; see tenon approvals", name)
	case pool != "":
		return nil, fmt.Errorf("--pool %s: nothing of this NodePool waits for approval", pool)
	}
	return nil, errors.New("nothing waits for approval")
}
