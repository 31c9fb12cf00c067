package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/cloud/aws/nodegroups"
	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/nodegroup"
)

// groupFlags are the flags of `tenon convert` about node groups.
type groupFlags struct {
	fromASG         bool
	cluster, region string
	names           []string
}

func (g *groupFlags) validate() error {
	switch {
	case !g.fromASG && (g.cluster != "" || g.region != "" || len(g.names) > 0):
		return errors.New("--cluster-name, --region and --node-group are for --from-asg: give that too, or leave them out")
	case g.fromASG && g.clusterName() == "":
		return errors.New("which cluster? Give --cluster-name or TENON_CLUSTER, the cluster's name in EKS")
	}
	return nil
}

// clusterName returns the name of the cluster in EKS.
func (g *groupFlags) clusterName() string {
	if g.cluster != "" {
		return g.cluster
	}
	return os.Getenv(program.EnvironmentName("cluster"))
}

// runConvertGroups reads node groups, proposes manifests for them, and prints manifests and notes.
func runConvertGroups(ctx context.Context, cfg aws.Config, flags convertFlags, out, progress io.Writer) error {
	watch := newStopwatch(progress)
	defer watch.stop()
	source, err := nodegroups.New(cfg, flags.groups.clusterName()).Read(ctx, flags.groups.names, watch.step)
	watch.stop()
	if err != nil {
		return err
	}
	proposals := nodegroup.Propose(source)
	result := convert.Result{Objects: []map[string]any{}, Notes: []convert.Note{}}
	for _, proposal := range proposals {
		result.Objects = append(result.Objects, proposal.Objects...)
		result.Notes = append(result.Notes, proposal.Notes...)
	}
	if err := flags.tell(result, watch); err != nil {
		return err
	}
	if flags.output == "json" {
		return writeJSON(out, result)
	}
	return writeProposals(out, proposals)
}

// writeProposals writes manifests with the notes about them as comments.
func writeProposals(out io.Writer, proposals []nodegroup.Proposal) error {
	var all bytes.Buffer
	for i, proposal := range proposals {
		if i > 0 {
			all.WriteString("---\n")
		}
		fmt.Fprintf(&all, "# Proposed for %s\n", strings.Join(proposal.Groups, ", "))
		for _, note := range proposal.Notes {
			fmt.Fprintf(&all, "# %s\n", strings.ReplaceAll(note.String(), "\n", "\n# "))
		}
		for j, object := range proposal.Objects {
			data, err := yaml.Marshal(object)
			if err != nil {
				return err
			}
			if j > 0 {
				all.WriteString("---\n")
			}
			all.Write(data)
		}
	}
	_, err := out.Write(all.Bytes())
	return err
}
