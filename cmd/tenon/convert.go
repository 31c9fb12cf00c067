package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/manifest"
)

// convertFlags are the flags of `tenon convert`.
type convertFlags struct {
	files   []string
	cluster bool
	options convert.Options
	output  string
	groups  groupFlags
}

func newConvertCommand() *cobra.Command {
	var flags convertFlags
	cmd := &cobra.Command{
		Use:   "convert {-f FILE... | --cluster | --from-asg}",
		Short: "Turn older manifests of Karpenter into v1, and node groups of EKS into NodePools",
		Long: `Turns Provisioners (v1alpha5) and AWSNodeTemplates (v1alpha1), and the v1beta1 versions of NodePools and EC2NodeClasses,
into v1 manifests, and prints these. What changes its place or its meaning, and what v1 has nothing like, is said on standard
error, field by field. Nothing is written to a cluster.

FILE is a file, a directory or - for standard input; YAML or JSON, any number of documents and lists. Convert pools together
with their classes: kubelet settings are a field of the class in v1, so a class is copied where its pools have different ones.
Documents that are v1 already and those of other kinds are passed through; of the latter, labels and annotations with old
names are said. Defaults that v1alpha5 implied (linux, amd64, on-demand, c, m and r of generation 3 and later) are written out.

AWSNodeTemplates without an instanceProfile got that of the setting aws.defaultInstanceProfile. v1 has no such setting: give
--role or --instance-profile, or ConfigMap karpenter-global-settings among the manifests.

With --cluster the old objects come from the cluster of the kubeconfig (KUBECONFIG), as far as it serves the old versions.

With --from-asg, NodePools and EC2NodeClasses are proposed for the node groups that the Cluster Autoscaler scales: the managed
node groups of an EKS cluster, and Auto Scaling groups that carry the Cluster Autoscaler's tags for it. They are read from AWS
with the credentials that the AWS CLI would use; deploy/iam/node-groups.json is all that they need. Groups that differ only in
their zones and sizes become one NodePool. The notes are in the manifests too, as comments. See docs/from-cluster-autoscaler.md.

If a document cannot be converted, nothing is printed and the exit code is 1.`,
		Example: `  tenon convert -f provisioners.yaml -f nodetemplates.yaml > pools.yaml
  tenon convert -f old/ --role KarpenterNodeRole-shop | kubectl apply --dry-run=server -f -
  tenon convert --cluster > pools.yaml
  tenon convert --from-asg --cluster-name shop --region eu-west-1 > pools.yaml
  tenon convert --from-asg --cluster-name shop --node-group web-a --node-group web-b | kubectl apply --dry-run=server -f -
  tenon convert -f old/ -o json | jq '.notes[] | select(.effect == "lost")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			if flags.groups.fromASG {
				cfg, err := awsConfig(cmd.Context(), flags.groups.region)
				if err != nil {
					return err
				}
				return runConvertGroups(cmd.Context(), cfg, flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return runConvert(cmd.Context(), flags, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "file or directory of manifests, or - for standard input; repeatable")
	f.BoolVar(&flags.cluster, "cluster", false, "convert what is in the cluster of the kubeconfig")
	f.StringVar(&flags.options.Role, "role", "", "IAM role of the nodes of AWSNodeTemplates without an instanceProfile")
	f.StringVar(&flags.options.InstanceProfile, "instance-profile", "", "instance profile of the nodes of AWSNodeTemplates without one")
	f.BoolVar(&flags.groups.fromASG, "from-asg", false, "propose NodePools for the node groups of an EKS cluster")
	f.StringVar(&flags.groups.cluster, "cluster-name", "", "with --from-asg, the name of the cluster in EKS (TENON_CLUSTER)")
	f.StringVar(&flags.groups.region, "region", "", "with --from-asg, the region of the cluster (default that of the AWS configuration)")
	f.StringArrayVar(&flags.groups.names, "node-group", nil, "with --from-asg, only the node group of this name; repeatable")
	f.StringVarP(&flags.output, "output", "o", "yaml", "output format: yaml, or json for one object with the manifests and the notes")
	return cmd
}

func (c *convertFlags) validate() error {
	sources := 0
	for _, given := range []bool{len(c.files) > 0, c.cluster, c.groups.fromASG} {
		if given {
			sources++
		}
	}
	switch {
	case sources == 0:
		return errors.New("which manifests? Give -f FILE, --cluster or --from-asg (see tenon convert --help)")
	case sources > 1:
		return errors.New("-f, --cluster and --from-asg exclude each other: give one of them")
	case c.groups.fromASG && c.options != (convert.Options{}):
		return errors.New("--role and --instance-profile are for older manifests: with --from-asg they are the node groups' own")
	case count(c.files, manifest.Stdin) > 1:
		return errors.New("standard input (-) can be read only once")
	case c.options.Role != "" && c.options.InstanceProfile != "":
		return errors.New("--role and --instance-profile exclude each other: give one of them")
	case !slices.Contains([]string{"yaml", "json"}, c.output):
		return fmt.Errorf("--output %q: must be yaml or json", c.output)
	}
	return c.groups.validate()
}

// documents reads what is to be converted.
func (c *convertFlags) documents(ctx context.Context, in io.Reader, watch *stopwatch) ([]manifest.Document, error) {
	if !c.cluster {
		watch.begin("reading manifests")
		return manifest.Documents(c.files, in)
	}
	restConfig, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
	}
	watch.begin("reading the cluster")
	return clusterDocuments(ctx, restConfig, watch)
}

// runConvert reads the documents, converts them, and prints manifests and notes.
func runConvert(ctx context.Context, flags convertFlags, in io.Reader, out, progress io.Writer) error {
	watch := newStopwatch(progress)
	defer watch.stop()
	docs, err := flags.documents(ctx, in, watch)
	if err != nil {
		return err
	}
	result := convert.Convert(docs, flags.options)
	watch.stop()
	if err := flags.tell(result, watch); err != nil {
		return err
	}
	if flags.output == "json" {
		return writeJSON(out, result)
	}
	return writeYAML(out, result.Objects)
}

// tell says the notes of a result where its output does not have them, and fails if anything was not converted.
func (c *convertFlags) tell(result convert.Result, watch *stopwatch) error {
	var failures []string
	for _, note := range result.Notes {
		switch {
		case note.Effect == convert.Failed:
			failures = append(failures, fmt.Sprintf("  %s (%s)", note, note.Place))
		case c.output == "yaml":
			watch.say("note: %s", note)
		}
	}
	if len(failures) > 0 {
		return fmt.Errorf("nothing is printed, since these cannot be converted:\n%s", strings.Join(failures, "\n"))
	}
	return nil
}

// writeYAML writes manifests as documents of one file.
func writeYAML(out io.Writer, objects []map[string]any) error {
	var all bytes.Buffer
	for i, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			all.WriteString("---\n")
		}
		all.Write(data)
	}
	_, err := out.Write(all.Bytes())
	return err
}
