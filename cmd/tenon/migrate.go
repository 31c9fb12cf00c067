package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/migrate"
)

func newMigrateCommand() *cobra.Command {
	var check, back bool
	var output string
	cmd := &cobra.Command{
		Use:   "migrate --check",
		Short: "Say what will happen when Tenon takes a cluster over from Karpenter, or gives it back",
		Long: `Reads a cluster in which Karpenter runs and says what Tenon will continue with, what will differ, and what it
refuses, field by field, with what to do about it. With --back it says the same for the way from Tenon to Karpenter.

It needs the API server only, reads and changes nothing: no Temporal, no AWS. Whoever runs it may list Deployments, Nodes,
NodePools, EC2NodeClasses, NodeClaims, CapacityBuffers and NodeOverlays, and get Leases and the ConfigMap tenon-pauses.

  adopted   Tenon continues with it as it is
  refused   nothing is launched for it, or both would act at once: mend it first
  waits     under way: better finished before the cluster changes hands
  differs   works, but not as before
  left      belongs to somebody else

The exit code is 1 if anything is refused.`,
		Example: "  tenon migrate --check\n  tenon migrate --check --back\n  tenon migrate --check -o json | jq '.findings[] | select(.verdict == \"refused\")'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if !check {
				return errors.New("--check is missing: tenon migrate only looks. The move itself is a matter of who runs: see docs/deploying.md")
			}
			if err := jsonOnly(output); err != nil {
				return err
			}
			restConfig, err := config.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
			}
			found, err := readForMigration(cmd.Context(), restConfig)
			if err != nil {
				return err
			}
			judge := migrate.Toward
			if back {
				judge = migrate.Back
			}
			report, err := judge(found)
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeJSON(cmd.OutOrStdout(), report)
			} else {
				err = writeMigration(cmd.OutOrStdout(), report, back)
			}
			if err == nil && report.Worst() == migrate.Refused {
				err = errors.New("some things are refused")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "look, and change nothing; required")
	cmd.Flags().BoolVar(&back, "back", false, "look at the way from Tenon to Karpenter")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

// readForMigration reads what both controllers work with.
func readForMigration(ctx context.Context, restConfig *rest.Config) (*migrate.Cluster, error) {
	direct, err := kube.New(restConfig, kube.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	raw, err := dynamic.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	c := &migrate.Cluster{}
	var deployments appsv1.DeploymentList
	if err := direct.List(ctx, &deployments); err != nil {
		return nil, fmt.Errorf("list Deployments, to find Karpenter: %w", err)
	}
	c.Deployments = deployments.Items
	var nodes corev1.NodeList
	if err := direct.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	c.Nodes = nodes.Items
	if c.Lease, err = leaseOf(ctx, direct, deployments.Items); err != nil {
		return nil, err
	}
	var pauses corev1.ConfigMap
	err = direct.Get(ctx, kube.ObjectKey{Namespace: karpv1.PauseNamespace, Name: karpv1.PauseConfigMapName}, &pauses)
	if kube.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	c.Pauses = karpv1.ReadPauses(pauses.Data[karpv1.PauseConfigMapKey])
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		into     *[]json.RawMessage
	}{
		{karpv1.SchemeGroupVersion.WithResource("nodepools"), &c.NodePools},
		{karpv1.SchemeGroupVersion.WithResource("nodeclaims"), &c.NodeClaims},
		{schema.GroupVersionResource{Group: awsv1.Group, Version: "v1", Resource: "ec2nodeclasses"}, &c.NodeClasses},
	} {
		found, err := listed(ctx, raw, kind.resource, "")
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the cluster has no %s in v1: Karpenter 1 is not installed, or its definitions are older (tenon convert --cluster): %w", kind.resource.GroupResource(), err)
		}
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			*kind.into = append(*kind.into, one.JSON)
		}
	}
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		into     *[]string
	}{
		{schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacitybuffers"}, &c.Buffers},
		{schema.GroupVersionResource{Group: karpv1.Group, Version: "v1alpha1", Resource: "nodeoverlays"}, &c.Overlays},
	} {
		if *kind.into, err = names(ctx, raw, kind.resource); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// leaseOf returns the Lease of Karpenter, which is in its own namespace or in kube-system; nil if there is none.
func leaseOf(ctx context.Context, direct kube.Client, deployments []appsv1.Deployment) (*coordinationv1.Lease, error) {
	namespaces := []string{"kube-system"}
	for _, d := range deployments {
		if strings.Contains(d.Name, "karpenter") {
			namespaces = append([]string{d.Namespace}, namespaces...)
		}
	}
	for _, namespace := range namespaces {
		var lease coordinationv1.Lease
		err := direct.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: migrate.LeaseName}, &lease)
		if err == nil {
			return &lease, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the Lease %s/%s: %w", namespace, migrate.LeaseName, err)
		}
	}
	return nil, nil
}

// names returns the names of the objects of a resource, with their namespace; none where the cluster does not know it.
func names(ctx context.Context, raw dynamic.Interface, resource schema.GroupVersionResource) ([]string, error) {
	found, err := listed(ctx, raw, resource, "")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, one := range found {
		var object struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(one.JSON, &object); err != nil {
			return nil, fmt.Errorf("read an object of %s: %w", resource.GroupResource(), err)
		}
		all = append(all, strings.TrimPrefix(object.Metadata.Namespace+"/"+object.Metadata.Name, "/"))
	}
	return all, nil
}

// writeMigration writes a report for people.
func writeMigration(out io.Writer, r *migrate.Report, back bool) error {
	var text strings.Builder
	switch {
	case r.Karpenter != "":
		fmt.Fprintf(&text, "Karpenter %s is in the cluster", r.Karpenter)
	default:
		text.WriteString("No Deployment runs Karpenter")
	}
	if r.Holder != "" {
		fmt.Fprintf(&text, "; the Lease is held by %s", r.Holder)
	}
	next := "Tenon"
	if back {
		next = "Karpenter"
	}
	fmt.Fprintf(&text, ".\n%s continues with %d NodePools, %d EC2NodeClasses, %d NodeClaims and their %d Nodes.\n", next, r.NodePools, r.NodeClasses, r.NodeClaims, r.Nodes)
	if len(r.Findings) == 0 {
		text.WriteString("Nothing differs.\n")
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		about := f.Object
		if f.Field != "" {
			about += " " + f.Field
		}
		_, _ = fmt.Fprintf(table, "\n%s\t%s\n\t%s\n", f.Verdict, about, f.Message)
		if f.Fix != "" {
			_, _ = fmt.Fprintf(table, "\t→ %s\n", f.Fix)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, text.String())
	return err
}
