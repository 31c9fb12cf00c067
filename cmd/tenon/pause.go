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
	authenticationv1 "k8s.io/api/authentication/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/view"
)

// pauseFlags are the flags of the commands pause and resume.
type pauseFlags struct {
	pool, reason, output string
	lasts                time.Duration
}

func newPauseCommand() *cobra.Command {
	var flags pauseFlags
	cmd := &cobra.Command{
		Use:   "pause [provisioning|disruption|interruption|all]",
		Short: "Stop what Tenon does, for a while or until it is resumed",
		Long: `Stops one kind of work, or all, in the whole cluster or for one NodePool:

  provisioning   no instance is launched, for pods, static pools, replacements or claims made by hand
  disruption     no node is removed that Tenon wants to remove: consolidation, drift, expiry, surplus, repair
  interruption   nothing is done about the cloud's messages that it takes instances away; they wait on their NodeClaims

What is under way goes on: instances that are launched join, and nodes that are being drained go (see tenon drain pause).
What a person does goes on too: tenon drain, and kubectl delete of a NodeClaim or a Node.

A pause is kept in the cluster, in a ConfigMap or on the NodePool, with your name as the API server knows it. It needs
neither a worker nor Temporal, holds when they return, and ends by itself after --for.`,
		Example: `  tenon pause disruption --reason "peak traffic" --for 2h
  tenon pause all --pool gpu --reason "driver rollout"
  tenon pause list -o json
  tenon resume disruption`,
		Args: oneScope,
		RunE: withPauses(&flags, func(ctx context.Context, p *pauseCommand, args []string) error { return p.pause(ctx, args[0], flags) }),
	}
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for everybody who wonders; required")
	cmd.Flags().DurationVar(&flags.lasts, "for", 0, "how long, such as 2h; without it, until somebody resumes")
	cmd.Flags().StringVar(&flags.pool, "pool", "", "only for this NodePool (default: the whole cluster)")
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List what is paused, by whom and why", Example: "  tenon pause list\n  tenon pause list -o json", Args: cobra.NoArgs,
		RunE: withPauses(&flags, func(ctx context.Context, p *pauseCommand, _ []string) error { return p.list(ctx) }),
	})
	return cmd
}

func newResumeCommand() *cobra.Command {
	var flags pauseFlags
	cmd := &cobra.Command{
		Use:   "resume [provisioning|disruption|interruption|all]",
		Short: "End a pause",
		Long: `Ends a pause of the whole cluster, or with --pool that of a NodePool. Each is ended where it was begun: what is paused in
the whole cluster stays paused for a NodePool whose own pause is ended, and the other way round.`,
		Example: "  tenon resume disruption\n  tenon resume all --pool gpu",
		Args:    oneScope,
		RunE:    withPauses(&flags, func(ctx context.Context, p *pauseCommand, args []string) error { return p.resume(ctx, args[0], flags) }),
	}
	cmd.Flags().StringVar(&flags.pool, "pool", "", "the pause of this NodePool (default: that of the whole cluster)")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	return cmd
}

func oneScope(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: say what: provisioning, disruption, interruption or all; got %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
	}
	return nil
}

// pauseCommand is the connection and the output of the commands.
type pauseCommand struct {
	kube kube.Client
	now  func() time.Time
	out  io.Writer
	json bool
}

// withPauses connects to Kubernetes and then runs a command.
func withPauses(flags *pauseFlags, run func(context.Context, *pauseCommand, []string) error) func(*cobra.Command, []string) error {
	return inCluster(&flags.output, func(ctx context.Context, c clusterCommand, args []string) error {
		p := pauseCommand(c)
		return run(ctx, &p, args)
	})
}

// pause writes pauses and shows what is paused then.
func (p *pauseCommand) pause(ctx context.Context, what string, flags pauseFlags) error {
	scopes, err := karpv1.ParsePauseScopes(what)
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(flags.reason) == "":
		return errors.New("--reason: say why, for everybody who wonders")
	case flags.lasts < 0:
		return fmt.Errorf("--for %s: must be positive, such as 2h", flags.lasts)
	}
	by, err := p.author(ctx)
	if err != nil {
		return err
	}
	now := p.now().UTC().Truncate(time.Second)
	if err := p.place(flags.pool).change(ctx, func(pauses []karpv1.Pause) []karpv1.Pause {
		for _, scope := range scopes {
			pause := karpv1.Pause{What: scope, Reason: flags.reason, By: by, Since: now}
			if flags.lasts > 0 {
				pause.Until = now.Add(flags.lasts)
			}
			pauses = karpv1.SetPause(pauses, pause, now)
		}
		return pauses
	}); err != nil {
		return err
	}
	return p.list(ctx)
}

// resume removes pauses and shows what is paused then.
func (p *pauseCommand) resume(ctx context.Context, what string, flags pauseFlags) error {
	scopes, err := karpv1.ParsePauseScopes(what)
	if err != nil {
		return err
	}
	lifted := false
	now := p.now()
	if err := p.place(flags.pool).change(ctx, func(pauses []karpv1.Pause) []karpv1.Pause {
		lifted = slices.ContainsFunc(pauses, func(pause karpv1.Pause) bool {
			return slices.Contains(scopes, pause.What) && pause.Holds(pause.What, now)
		})
		return karpv1.LiftPauses(pauses, scopes, now)
	}); err != nil {
		return err
	}
	if !lifted && !p.json {
		where := "in the whole cluster"
		if flags.pool != "" {
			where = "for NodePool " + flags.pool
		}
		if _, err := fmt.Fprintf(p.out, "%s was not paused %s\n", what, where); err != nil {
			return err
		}
	}
	return p.list(ctx)
}

// author returns the user name by which the API server knows this person. A pause without an author is not written.
func (p *pauseCommand) author(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := p.kube.Create(ctx, review); err != nil {
		return "", fmt.Errorf("ask the API server who you are: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// list shows what is paused now.
func (p *pauseCommand) list(ctx context.Context) error {
	listed, err := p.inForce(ctx)
	if err != nil {
		return err
	}
	if p.json {
		return writeJSON(p.out, listed)
	}
	if len(listed) == 0 {
		_, err := fmt.Fprintln(p.out, "nothing is paused")
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODEPOOL\tPAUSED\tBY\tSINCE\tUNTIL\tREASON")
	for _, l := range listed {
		pool, what, reason := l.NodePool, string(l.What), l.Reason
		if pool == "" {
			pool = "(whole cluster)"
		}
		if l.Observed {
			what, reason = karpv1.PauseAll, "only observed ("+karpv1.ObserveAnnotationKey+")"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", pool, what, orDash(l.By), when(l.Since, "-"), when(l.Until, "resumed"), reason)
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func when(at time.Time, never string) string {
	if at.IsZero() {
		return never
	}
	return at.UTC().Format(time.RFC3339)
}

// inForce returns what is paused now: in the whole cluster first, then by NodePool.
func (p *pauseCommand) inForce(ctx context.Context) ([]view.Pause, error) {
	everywhere, err := clusterPauses(ctx, p.kube)
	if err != nil {
		return nil, err
	}
	var listed karpv1.NodePoolList
	if err := p.kube.List(ctx, &listed); err != nil {
		return nil, fmt.Errorf("list NodePools: %w", err)
	}
	pools := make([]*karpv1.NodePool, 0, len(listed.Items))
	for i := range listed.Items {
		pools = append(pools, &listed.Items[i])
	}
	return view.Pauses(everywhere, pools, p.now()), nil
}
