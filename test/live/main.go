package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand(realWorld(os.Stdout)).ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "live: %v\n", err)
		os.Exit(1)
	}
}

const help = `Live launches a few small instances in a real AWS account through Tenon's provider, finds out what EC2 does
with replayed tokens, and removes everything again. It takes about half an hour and costs less than --max-dollars.

Without --really-spend-money nothing is called: the plan is printed, and what it would cost at most.`

const examples = `  # What it would do and cost; no credentials are needed.
  go run ./test/live --plan

  # The permissions it needs.
  go run ./test/live --policy --tag tenon-live=first --region us-east-1 --cluster my-cluster --account 111122223333

  # Everything there is: nodes join and are drained, FIS interrupts a spot instance, and its message arrives in a queue.
  go run ./test/live --really-spend-money --tag tenon-live=first --region us-east-1 --cluster my-cluster \
    --class nodeclass.yaml --kubeconfig ~/.kube/config --queue tenon-live-first \
    --fis-role arn:aws:iam::111122223333:role/tenon-live-fis --state live.json --record live.jsonl

  # In an account without EKS: instances boot and join nothing.
  go run ./test/live --really-spend-money --tag tenon-live=first --region us-east-1 --cluster none --class nodeclass.yaml \
    --cluster-endpoint https://192.0.2.1 --cluster-ca Zm9v --service-cidr 10.100.0.0/16 --kubernetes-version 1.34 --state live.json

  # The same tokens once more, 25 hours later.
  go run ./test/live --really-spend-money --resume live.json --record later.jsonl

  # Whatever happened: find everything by the tag, and remove it.
  go run ./test/live --cleanup-only --tag tenon-live=first --region us-east-1 --cluster my-cluster

  # Make cases for the simulator of a recording.
  go run ./test/live cases live.jsonl > cases.json`

// newCommand returns the command line.
func newCommand(w world) *cobra.Command {
	var s settings
	command := &cobra.Command{
		Use: "live", Short: "First contact with a real AWS account", Long: help, Example: examples,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return act(cmd.Context(), w, s) },
	}
	f := command.Flags()
	f.BoolVar(&s.spend, "really-spend-money", false, "do it; without this flag nothing is called")
	f.BoolVar(&s.plan, "plan", false, "print the steps and what they cost at most, and call nothing")
	f.BoolVar(&s.policy, "policy", false, "print the permissions a run needs, as IAM policies, and call nothing")
	f.BoolVar(&s.cleanupOnly, "cleanup-only", false, "remove everything that carries the tag, and launch nothing")
	f.StringVar(&s.tag, "tag", "", "tenon-live=NAME: what everything is tagged with; letters, digits and dashes, at most 30")
	f.StringVar(&s.region, "region", "", "the region")
	f.StringVar(&s.cluster, "cluster", "", "name of the EKS cluster; neither Tenon nor Karpenter may be acting on it")
	f.StringVar(&s.class, "class", "", "file with the EC2NodeClass to launch from; its name and its reservations are replaced")
	f.StringSliceVar(&s.types, "instance-types", []string{"t3.medium", "t3a.medium", "t4g.medium", "m6i.large", "m7g.large"},
		"instance types to choose the cheapest from")
	f.Float64Var(&s.maxDollars, "max-dollars", 5, "refuse to begin if it could cost more, in US dollars")
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "the cluster, for nodes to join and be drained; without it those steps are not run")
	f.StringVar(&s.queue, "queue", "", "interruption queue, by name or URL; one that nobody else reads")
	f.StringVar(&s.fisRole, "fis-role", "", "ARN of a role that FIS may interrupt spot instances with; without it that step is not run")
	f.StringVar(&s.state, "state", "", "file to keep the spent tokens in, for --resume")
	f.StringVar(&s.resume, "resume", "", "file that a run has kept its state in, 25 hours ago: its tokens are replayed")
	f.StringVar(&s.record, "record", "", "file to write all requests and raw replies to, as JSON lines")
	f.StringVar(&s.endpoint, "cluster-endpoint", "", "the API server's URL, where EKS does not know the cluster; with the next three")
	f.StringVar(&s.ca, "cluster-ca", "", "the API server's certificate authority, base64 of PEM")
	f.StringVar(&s.serviceCIDR, "service-cidr", "", "the cluster's range of service addresses")
	f.StringVar(&s.version, "kubernetes-version", "", "the cluster's minor version, such as 1.34")
	f.StringVar(&s.account, "account", "", "the account's id, for --policy")
	command.AddCommand(newCasesCommand(w))
	return command
}

// act does what the flags say.
func act(ctx context.Context, w world, s settings) error {
	if s.plan || !s.spend && !s.cleanupOnly && !s.policy {
		if err := printPlan(w.out, s); err != nil {
			return err
		}
		if s.plan {
			return nil
		}
		return errors.New("nothing was called: this spends money, and --really-spend-money is missing")
	}
	var before *state
	if s.resume != "" {
		var err error
		if before, err = loadState(s.resume); err != nil {
			return err
		}
		if err := s.continues(before); err != nil {
			return err
		}
		if due := before.due(); w.now().Before(due) {
			return fmt.Errorf("it is too early: the last token was spent at %s, so --resume is due at %s",
				due.Add(-again).Format(time.RFC3339), due.Format(time.RFC3339))
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	if s.policy {
		return printPolicies(w.out, s)
	}
	l, err := newLive(ctx, w, s)
	if err != nil {
		return err
	}
	defer l.close()
	switch {
	case s.cleanupOnly:
		return l.play(ctx, nil)
	case before != nil:
		l.state = before
		return l.play(ctx, laterSteps())
	}
	return l.play(ctx, steps())
}
