package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/workflows"
)

// approveFlags are the flags of the commands approve and reject.
type approveFlags struct {
	temporalFlags
	output, pool, reason string
	all                  bool
	lasts                time.Duration
}

func newApproveCommand() *cobra.Command {
	var flags approveFlags
	cmd := &cobra.Command{
		Use:   "approve ID|NODE",
		Short: "Approve what waits for approval",
		Long: `Approves a decision that waits because its NodePool is annotated tenon.sh/approval (see tenon approvals). The decision is
checked again first: if it no longer holds, nothing is done and the command says why. What is approved then goes as
everything else does: within budgets, and not while it is paused. Your name is recorded, as the API server knows you.`,
		Example: `  tenon approve a1b2c3d4
  tenon approve ip-10-0-1-17.ec2.internal --reason "new AMI is fine"
  tenon approve --all --pool gpu`,
		Args: oneApproval(&flags),
		RunE: withApprovals(&flags, func(ctx context.Context, a *approveCommand, name string) error {
			return a.decide(ctx, name, flags, workflows.ApprovalDecision{Approve: true, Note: flags.reason})
		}),
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for those who look at it later")
	return cmd
}

func newRejectCommand() *cobra.Command {
	var flags approveFlags
	cmd := &cobra.Command{
		Use:   "reject ID|NODE",
		Short: "Reject what waits for approval",
		Long: `Rejects a decision that waits for approval (see tenon approvals). It is not proposed again for a while, unless it is another
one by then, such as drift for another reason. Your name is recorded, as the API server knows you.`,
		Example: `  tenon reject a1b2c3d4 --reason "not before the release"
  tenon reject --all --pool gpu --reason "training runs" --for 72h`,
		Args: oneApproval(&flags),
		RunE: withApprovals(&flags, func(ctx context.Context, a *approveCommand, name string) error {
			switch {
			case strings.TrimSpace(flags.reason) == "":
				return errors.New("--reason: say why, for everybody who wonders")
			case flags.lasts < time.Second:
				return fmt.Errorf("--for %s: must be positive, such as 24h", flags.lasts)
			}
			return a.decide(ctx, name, flags, workflows.ApprovalDecision{Note: flags.reason, For: int64(flags.lasts / time.Second)})
		}),
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for everybody who wonders; required")
	cmd.Flags().DurationVar(&flags.lasts, "for", workflows.RejectedFor, "how long it is not proposed again")
	return cmd
}

// add adds the flags that both commands have.
func (f *approveFlags) add(cmd *cobra.Command) {
	f.temporalFlags.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.all, "all", false, "everything that waits, or with --pool everything of a NodePool")
	cmd.Flags().StringVar(&f.pool, "pool", "", "with --all, only what waits of this NodePool")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "output format: json")
}

func oneApproval(flags *approveFlags) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case flags.all && len(args) > 0:
			return fmt.Errorf("%s: give --all or an id or node, not both (see %[1]s --help)", cmd.CommandPath())
		case !flags.all && flags.pool != "":
			return errors.New("--pool: only with --all")
		case !flags.all && len(args) != 1:
			return fmt.Errorf("%s: name one id or node, or give --all; got %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
		}
		return nil
	}
}

// updater sends updates to workflows. A Temporal client implements it.
type updater interface {
	UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error)
}

// approveCommand is the connections and the output of the commands.
type approveCommand struct {
	cluster  workflows.Cluster
	kube     kube.Client
	temporal updater
	now      func() time.Time
	out      io.Writer
	json     bool
}

// withApprovals connects to Kubernetes and Temporal and then runs a command.
func withApprovals(flags *approveFlags, run func(ctx context.Context, a *approveCommand, name string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := program.FromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		if err := jsonOnly(flags.output); err != nil {
			return err
		}
		direct, connection, err := flags.connect(cmd.Context())
		if err != nil {
			return err
		}
		defer connection.Close()
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return run(cmd.Context(), &approveCommand{cluster: workflows.Cluster(flags.cluster), kube: direct, temporal: connection, now: time.Now, out: cmd.OutOrStdout(),
			json: flags.output == "json"}, name)
	}
}

// decidedApproval is what the commands say of each decision.
type decidedApproval struct {
	ID    string   `json:"id"`
	Nodes []string `json:"nodes,omitempty"`
	workflows.ApprovalResult
	// Error says why the decision could not be delivered.
	Error string `json:"error,omitempty"`
}

// decide tells the workflows of what a person means what they have decided. It fails if one could not be told, or if what was
// to be approved no longer holds.
func (a *approveCommand) decide(ctx context.Context, name string, flags approveFlags, decision workflows.ApprovalDecision) error {
	all, err := approvalsOf(ctx, a.kube, a.now())
	if err != nil {
		return err
	}
	meant, err := chosen(all, name, flags.pool)
	if err != nil {
		return err
	}
	if decision.By, err = (&pauseCommand{kube: a.kube}).author(ctx); err != nil {
		return err
	}
	want := workflows.ApprovalRejected
	if decision.Approve {
		want = workflows.ApprovalApproved
	}
	said, missed := make([]decidedApproval, 0, len(meant)), 0
	for _, l := range meant {
		one := decidedApproval{ID: l.ID, Nodes: l.Nodes}
		result, err := a.tell(ctx, l.ID, decision)
		if err != nil {
			one.Error = err.Error()
		}
		one.ApprovalResult = result
		if result.Outcome != want {
			missed++
		}
		said = append(said, one)
		if !a.json {
			if _, err := fmt.Fprintln(a.out, one.text()); err != nil {
				return err
			}
		}
	}
	if a.json {
		if err := writeJSON(a.out, said); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d are not %s", missed, len(said), strings.ToLower(want))
	}
	return nil
}

func (d *decidedApproval) text() string {
	text := fmt.Sprintf("%s (%s): ", d.ID, strings.Join(d.Nodes, ", "))
	switch {
	case d.Error != "":
		return text + d.Error
	case d.Outcome == workflows.ApprovalOutdated:
		return text + "it no longer holds: " + d.Why
	}
	text += strings.ToLower(d.Outcome)
	if d.By != "" {
		text += " by " + d.By
	}
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text
}

// tell tells the workflow of an approval what a person has decided, and returns what has become of it.
func (a *approveCommand) tell(ctx context.Context, id string, decision workflows.ApprovalDecision) (result workflows.ApprovalResult, err error) {
	within, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	handle, err := a.temporal.UpdateWorkflow(within, client.UpdateWorkflowOptions{WorkflowID: a.cluster.ApprovalID(id), UpdateName: workflows.UpdateDecide,
		Args: []any{decision}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = handle.Get(within, &result)
	}
	var refused *sdk.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &refused):
		return result, errors.New(refused.Message())
	case errors.As(err, &missing):
		return result, errors.New("no workflow waits for it any more; if it still holds, people are asked anew within minutes")
	case errors.Is(within.Err(), context.DeadlineExceeded):
		return result, fmt.Errorf("no worker of cluster %s answered within %s; is one running? Decide again when one does", a.cluster, answerTimeout)
	}
	return result, fmt.Errorf("tell workflow %s: %w", a.cluster.ApprovalID(id), err)
}
