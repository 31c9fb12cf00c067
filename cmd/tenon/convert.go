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
}

func newConvertCommand() *cobra.Command {
	var flags convertFlags
	cmd := &cobra.Command{
		Use:   "convert {-f FILE... | --cluster}",
		Short: "Turn manifests of older versions of Karpenter into v1",
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

If a document cannot be converted, nothing is printed and the exit code is 1.`,
		Example: `  tenon convert -f provisioners.yaml -f nodetemplates.yaml > pools.yaml
  tenon convert -f old/ --role KarpenterNodeRole-shop | kubectl apply --dry-run=server -f -
  tenon convert --cluster > pools.yaml
  tenon convert -f old/ -o json | jq '.notes[] | select(.effect == "lost")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			return runConvert(cmd.Context(), flags, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "file or directory of manifests, or - for standard input; repeatable")
	f.BoolVar(&flags.cluster, "cluster", false, "convert what is in the cluster of the kubeconfig")
	f.StringVar(&flags.options.Role, "role", "", "IAM role of the nodes of AWSNodeTemplates without an instanceProfile")
	f.StringVar(&flags.options.InstanceProfile, "instance-profile", "", "instance profile of the nodes of AWSNodeTemplates without one")
	f.StringVarP(&flags.output, "output", "o", "yaml", "output format: yaml, or json for one object with the manifests and the notes")
	return cmd
}

func (c *convertFlags) validate() error {
	switch {
	case len(c.files) == 0 && !c.cluster:
		return errors.New("which manifests? Give -f FILE or --cluster (see tenon convert --help)")
	case len(c.files) > 0 && c.cluster:
		return errors.New("-f and --cluster exclude each other: give one of them")
	case count(c.files, manifest.Stdin) > 1:
		return errors.New("standard input (-) can be read only once")
	case c.options.Role != "" && c.options.InstanceProfile != "":
		return errors.New("--role and --instance-profile exclude each other: give one of them")
	case !slices.Contains([]string{"yaml", "json"}, c.output):
		return fmt.Errorf("--output %q: must be yaml or json", c.output)
	}
	return nil
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
	var failures []string
	for _, note := range result.Notes {
		switch {
		case note.Effect == convert.Failed:
			failures = append(failures, fmt.Sprintf("  %s (%s)", note, note.Place))
		case flags.output == "yaml":
			watch.say("note: %s", note)
		}
	}
	if len(failures) > 0 {
		return fmt.Errorf("nothing is printed, since these cannot be converted:\n%s", strings.Join(failures, "\n"))
	}
	if flags.output == "json" {
		return writeJSON(out, result)
	}
	return writeYAML(out, result.Objects)
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
