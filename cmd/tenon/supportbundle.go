package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/bundle"
	"github.com/tenon-sh/tenon/internal/codec"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/worker"
	"github.com/tenon-sh/tenon/workflows"
)

// temporalWithin is how long Temporal may take to answer before the bundle goes without it.
const temporalWithin = 15 * time.Second

// bundleFlags are the flags of tenon support-bundle.
type bundleFlags struct {
	cluster, namespace, output, provider string
	payloads, userData, tags, dryRun     bool
	logKiB, mostWorkflows                int
	keys                                 codec.Options
}

func newSupportBundleCommand() *cobra.Command {
	var flags bundleFlags
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect what somebody who helps you has to see, without secrets",
		Long: `Collects into one archive: versions, the worker's Deployment and pods, NodePools, node classes, NodeClaims, Nodes, Tenon's
Events, pauses, workflows that are under way or failed with the events of their histories, and logs and metrics of the workers.

Left out are Secrets, user data, values of tags, annotations and foreign environment variables, and payloads of workflows;
whatever else looks like a secret is replaced. A manifest in the archive says what is in it, what was left out, and what could
not be read. Nothing leaves your machine. Look through the files before you give them away: a password that looks like an
ordinary word in a message is not recognized.

It only reads, and needs neither a worker nor Temporal to run: what does not answer is named in the manifest. --dry-run lists
the parts and the rights that each needs, and reads nothing.`,
		Example: `  tenon support-bundle --cluster my-eks-cluster
  tenon support-bundle -o incident.tar.gz --namespace karpenter
  tenon support-bundle --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			return flags.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.cluster, "cluster", "", "name of the cluster, as its worker has it (TENON_CLUSTER)")
	f.StringVarP(&flags.output, "output", "o", "", "file to write, which must not exist (default: tenon-support-CLUSTER-TIME.tar.gz)")
	f.StringVar(&flags.namespace, "namespace", "kube-system", "namespace of the worker")
	f.StringVar(&flags.provider, "provider", program.ProviderAWS, "the worker's provider: aws or kwok")
	f.IntVar(&flags.logKiB, "log-kib", 4096, "how much of each worker's log to keep, in KiB from its end")
	f.IntVar(&flags.mostWorkflows, "workflows", 200, "how many workflows under way to keep, and as many that failed")
	f.BoolVar(&flags.payloads, "with-payloads", false, "keep the payloads of histories: names, prices, planned claims, raw errors of AWS")
	f.BoolVar(&flags.userData, "with-user-data", false, "keep the user data of node classes")
	f.BoolVar(&flags.tags, "with-tags", false, "keep the values of tags in node classes")
	flags.keys.Flags(f)
	f.BoolVar(&flags.dryRun, "dry-run", false, "only list what would be collected, and the rights that it needs")
	return cmd
}

func (f *bundleFlags) run(ctx context.Context, out, progress io.Writer) error {
	switch {
	case f.cluster == "" && !f.dryRun:
		return errors.New("which cluster? Give --cluster or TENON_CLUSTER, the name that its worker has")
	case f.cluster != "" && !worker.ValidCluster(f.cluster):
		return fmt.Errorf("--cluster %q: EKS names have 1 to 100 letters, digits, hyphens and underscores", f.cluster)
	case f.logKiB < 1:
		return fmt.Errorf("--log-kib %d: must be positive", f.logKiB)
	case f.mostWorkflows < 1:
		return fmt.Errorf("--workflows %d: must be positive", f.mostWorkflows)
	}
	options := bundle.Options{Cluster: workflows.Cluster(f.cluster), Namespace: f.namespace, Payloads: f.payloads, UserData: f.userData, Tags: f.tags, LogBytes: f.logKiB << 10, MostWorkflows: f.mostWorkflows,
		Progress: func(what string) { _, _ = fmt.Fprintf(progress, "collecting %s ...\n", what) }}
	switch err := program.CheckProvider(f.provider); {
	case err != nil:
		return err
	case f.provider == program.ProviderAWS:
		options.NodeClasses = &awsv1.EC2NodeClassList{}
	}
	if f.dryRun {
		return printParts(out, bundle.Parts(options))
	}
	closeTemporal, err := f.connect(ctx, &options)
	if err != nil {
		return err
	}
	defer closeTemporal()
	return f.write(ctx, out, options)
}

// connect fills in where to read from. Only Kubernetes has to be reachable.
func (f *bundleFlags) connect(ctx context.Context, o *bundle.Options) (closeTemporal func(), err error) {
	restConfig, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
	}
	restConfig.UserAgent = "tenon-support-bundle"
	direct, err := kubeClient(restConfig)
	if err != nil {
		return nil, err
	}
	if o.Pods, err = bundle.NewFromAPI(restConfig); err != nil {
		return nil, err
	}
	o.Kube = direct
	program.NewWorkerCommand(program.NewBuild(version, commit), nil).Flags().VisitAll(func(flag *pflag.Flag) {
		o.Variables = append(o.Variables, program.EnvironmentName(flag.Name))
	})
	build := program.NewBuild(version, commit)
	o.Versions = []bundle.Version{{Program: "tenon support-bundle", Version: fmt.Sprintf("%s, commit %s, %s, %s", build.Version, build.Commit, build.Go, build.Platform)}, kubernetesVersion(restConfig)}
	ctx, cancel := context.WithTimeout(ctx, temporalWithin)
	defer cancel()
	connection, err := temporal.Dial(ctx, f.keys, zap.NewNop())
	if err != nil {
		o.Versions = append(o.Versions, bundle.Version{Program: "Temporal", Error: err.Error()})
		return func() {}, nil
	}
	o.Temporal = connection
	info, err := connection.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	o.Versions = append(o.Versions, versionOr("Temporal", info.GetServerVersion(), err))
	return connection.Close, nil
}

func kubernetesVersion(of *rest.Config) bundle.Version {
	client, err := discovery.NewDiscoveryClientForConfig(of)
	if err != nil {
		return versionOr("Kubernetes", "", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return versionOr("Kubernetes", "", err)
	}
	return versionOr("Kubernetes", info.GitVersion, nil)
}

func versionOr(program, version string, err error) bundle.Version {
	if err != nil {
		return bundle.Version{Program: program, Error: err.Error()}
	}
	return bundle.Version{Program: program, Version: version}
}

// write collects the bundle into its file, which exists afterwards only if it is whole.
func (f *bundleFlags) write(ctx context.Context, out io.Writer, options bundle.Options) (err error) {
	now := time.Now()
	path := f.output
	if path == "" {
		path = fmt.Sprintf("tenon-support-%s-%s.tar.gz", f.cluster, now.UTC().Format("20060102-150405"))
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	manifest, err := bundle.Write(ctx, file, options, now)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	if err := printParts(out, manifest.Parts); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s: %d files, %d values replaced. %s\n", path, len(manifest.Files)+1, manifest.Redacted, manifest.Limits)
	return err
}

// printParts lists the parts of a bundle, each over a few short lines.
func printParts(out io.Writer, parts []bundle.Part) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, part := range parts {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", part.Path, part.Has)
		for _, more := range []struct{ what, text string }{{"without", part.Without}, {"needs to", part.Rights}, {"MISSING:", oneLine(part.Error)}} {
			if more.text != "" {
				_, _ = fmt.Fprintf(table, "\t  %s %s\n", more.what, more.text)
			}
		}
	}
	return table.Flush()
}
