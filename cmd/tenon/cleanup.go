package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tenon-sh/tenon/cloud/aws/cleanup"
	"github.com/tenon-sh/tenon/cmd/internal/program"
)

const (
	// awsAttempts is how often a call to AWS is tried: a large cluster leaves more than EC2 allows to delete at once.
	awsAttempts = 10
	// stillWarm is how long ago something must have been created before nobody is assumed to create more of it.
	stillWarm = time.Hour
)

// cleanupFlags are the flags of `tenon cleanup`.
type cleanupFlags struct {
	cluster, region, output string
	yes, dryRun, evenIf     bool
}

func newCleanupCommand() *cobra.Command {
	var flags cleanupFlags
	cmd := &cobra.Command{
		Use:   "cleanup --cluster NAME",
		Short: "Show what a deleted cluster left in AWS, and remove it",
		Long: `Lists what a cluster that is deleted left in an AWS account and region: instances, launch templates, instance profiles, and
the interruption queue with the EventBridge rules that fill it. After you have confirmed it, everything on the list is removed,
instances first. Neither Kubernetes nor Temporal is asked, only AWS, with the credentials that the AWS CLI would use;
deploy/iam/cleanup.json is all that they need.

Only tags decide what is the cluster's, and every line shows them: kubernetes.io/cluster/NAME=owned together with
karpenter.k8s.aws/ec2nodeclass, which Karpenter's instances carry too, or tenon.sh/cluster=NAME. Roles, volumes and network
interfaces stay.

While the cluster exists its worker collects orphans by itself. So nothing is removed if EKS knows a cluster of this name,
or if something on the list is younger than an hour, unless you say --even-if-the-cluster-exists.

What cannot be removed is named, and the exit code is 1; run the command again. A second run finds nothing.`,
		Example: `  tenon cleanup --cluster shop --region eu-west-1 --dry-run
  tenon cleanup --cluster shop --region eu-west-1
  tenon cleanup --cluster shop --dry-run -o json | jq -r '.items[] | select(.kind == "instance") | .id'
  tenon cleanup --cluster shop --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := flags.validate(); err != nil {
				return err
			}
			account, err := openAccount(cmd.Context(), flags)
			if err != nil {
				return err
			}
			c := &cleaner{flags: flags, account: account, in: cmd.InOrStdin(), out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr(), now: time.Now}
			if file, ok := c.in.(*os.File); ok {
				c.terminal = term.IsTerminal(int(file.Fd()))
			}
			return c.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.cluster, "cluster", "", "name of the cluster (TENON_CLUSTER)")
	f.StringVar(&flags.region, "region", "", "region of the cluster (default that of the AWS configuration)")
	f.BoolVar(&flags.dryRun, "dry-run", false, "only list")
	f.BoolVar(&flags.yes, "yes", false, "remove without asking")
	f.BoolVar(&flags.evenIf, "even-if-the-cluster-exists", false, "remove although the cluster seems to exist; its nodes are lost, and its worker launches others")
	f.StringVarP(&flags.output, "output", "o", "", "output format: json")
	return cmd
}

func (f *cleanupFlags) validate() error {
	switch {
	case f.cluster == "":
		return errors.New("which cluster? Give --cluster or TENON_CLUSTER, the name that its worker had")
	case f.yes && f.dryRun:
		return errors.New("--yes and --dry-run exclude each other")
	}
	return jsonOnly(f.output)
}

// openAccount returns the account of the AWS configuration.
func openAccount(ctx context.Context, flags cleanupFlags) (*cleanup.Account, error) {
	cfg, err := awsConfig(ctx, flags.region)
	if err != nil {
		return nil, err
	}
	return cleanup.New(cfg, flags.cluster), nil
}

// awsConfig returns the AWS configuration, with a region if one is given.
func awsConfig(ctx context.Context, region string) (aws.Config, error) {
	load := []func(*config.LoadOptions) error{config.WithRetryMaxAttempts(awsAttempts)}
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return aws.Config{}, errors.New("which region? Give --region or AWS_REGION")
	}
	return cfg, nil
}

// cleaner lists, asks and removes.
type cleaner struct {
	flags   cleanupFlags
	account *cleanup.Account
	in      io.Reader
	// terminal says that somebody can answer.
	terminal bool
	// out receives the result, progress everything else.
	out, progress io.Writer
	now           func() time.Time
}

// cleanupReport is what the command prints.
type cleanupReport struct {
	*cleanup.Found
	// Warnings say why the cluster may still exist.
	Warnings []string `json:"warnings,omitempty"`
	// Removed counts what is gone, and Remaining names what is not.
	Removed   int               `json:"removed"`
	Remaining []cleanup.Failure `json:"remaining,omitempty"`
}

func (c *cleaner) run(ctx context.Context) error {
	watch := newStopwatch(c.progress)
	defer watch.stop()
	found, err := c.account.Find(ctx, watch.step)
	watch.stop()
	if err != nil {
		return err
	}
	report := &cleanupReport{Found: found, Warnings: c.warnings(found)}
	if c.flags.output == "" {
		if err := report.table(c.out, c.now()); err != nil {
			return err
		}
	}
	err = c.decide(found, report.Warnings)
	if err == nil && !c.flags.dryRun && len(found.Items) > 0 {
		report.Remaining = c.account.Remove(ctx, found.Items, watch.step)
		watch.stop()
		report.Removed = len(found.Items) - len(report.Remaining)
	}
	return errors.Join(err, c.finish(report))
}

// warnings returns what speaks for a cluster that still exists.
func (c *cleaner) warnings(found *cleanup.Found) []string {
	var warnings []string
	if found.Status != "" {
		warnings = append(warnings, fmt.Sprintf("EKS has a cluster %s in %s, which is %s.", found.Cluster, found.Region, found.Status))
	}
	if found.ClusterUnknown != "" {
		warnings = append(warnings, fmt.Sprintf("EKS does not say whether the cluster exists: %s.", found.ClusterUnknown))
	}
	if newest := found.Newest(); newest != nil && c.now().Sub(newest.Created) < stillWarm {
		warnings = append(warnings, fmt.Sprintf("The %s %s is only %s old, so a worker may still be running.", newest.Kind, newest.ID, age(newest.Created, c.now())))
	}
	return warnings
}

// decide returns nil if the items are to be removed, or none is.
func (c *cleaner) decide(found *cleanup.Found, warnings []string) error {
	switch {
	case c.flags.dryRun || len(found.Items) == 0:
		return nil
	case len(warnings) > 0 && !c.flags.evenIf:
		return fmt.Errorf("nothing was removed: %s If the cluster is to lose its nodes, give --even-if-the-cluster-exists", strings.Join(warnings, " "))
	case c.flags.yes:
		return nil
	case !c.terminal:
		return errors.New("nothing was removed: there is no terminal to ask at; give --yes to remove, or --dry-run to list only")
	}
	_, _ = fmt.Fprintf(c.progress, "Remove these %d things? Type the cluster's name to go on: ", len(found.Items))
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != c.flags.cluster {
		return errors.New("nothing was removed: the answer is not the cluster's name")
	}
	return nil
}

// finish writes the result, and returns an error if anything is left to do.
func (c *cleaner) finish(report *cleanupReport) error {
	if c.flags.output == "json" {
		if err := writeJSON(c.out, report); err != nil {
			return err
		}
	} else if report.Removed+len(report.Remaining) > 0 {
		if _, err := io.WriteString(c.out, report.outcome()); err != nil {
			return err
		}
	}
	switch {
	case len(report.Remaining) > 0:
		return fmt.Errorf("%d of %d could not be removed; run the command again", len(report.Remaining), len(report.Items))
	case len(report.Unknown) > 0:
		return fmt.Errorf("not everything could be looked up: %s", strings.Join(report.Unknown, "; "))
	}
	return nil
}
