package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/ask"
)

func newWhyPodCommand(flags *whyFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "pod NAMESPACE/NAME",
		Short: "Say why a pod has no node, or how it got the one it has",
		Long: `Says why a pod has no node: what the planner makes of it at this moment, for each NodePool, or which node it is promised
to, or what has to happen before a node is looked for. The worker is asked, since it has the whole cluster, prices and
capacity in view; asking changes nothing.

For a pod that has a node it says which one, and how that node came about.`,
		Example: "  tenon why pod shop/web-0\n  tenon why pod shop/web-0 -o json",
		Args:    onePod,
		RunE: withInquiry(flags, func(ctx context.Context, i *inquiry, pod string) error {
			namespace, name, _ := strings.Cut(pod, "/")
			return i.pod(ctx, namespace, name)
		}),
	}
}

func onePod(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: name one pod as NAMESPACE/NAME, got %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
	}
	_, _, err := splitPod(args[0])
	return err
}

func splitPod(pod string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q: name the pod as NAMESPACE/NAME, such as default/web-0", pod)
	}
	return namespace, name, nil
}

// pod tells the story of a pod.
func (i *inquiry) pod(ctx context.Context, namespace, name string) error {
	var pod corev1.Pod
	err := i.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: name}, &pod)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no pod %s/%s in this Kubernetes cluster", namespace, name)
	case err != nil:
		return fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	}
	f := facts{pod: &pod}
	if pod.Spec.NodeName != "" {
		if err := i.origin(ctx, pod.Spec.NodeName, &f); err != nil {
			return err
		}
	} else if f.waits() {
		answer, err := (ask.Asker{Temporal: i.temporal, Cluster: i.cluster}).Pod(ctx, namespace, name)
		if err != nil {
			return err
		}
		f.answer = &answer
		if answer.Node != "" {
			if err := i.expected(ctx, answer.Node, &f); err != nil {
				return err
			}
		}
	}
	return i.tell(f.story())
}

// origin looks up a node, its claim and its price.
func (i *inquiry) origin(ctx context.Context, name string, f *facts) error {
	var node corev1.Node
	err := i.kube.Get(ctx, kube.ObjectKey{Name: name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read node %s: %w", name, err)
	}
	f.node = &node
	if f.claim, err = claimOf(ctx, i.kube, &node); err != nil || f.claim == nil {
		return err
	}
	f.price = i.price(ctx, f.claim.Name)
	return nil
}

// expected looks up the claim that a pod is meant for. It finds none if the pod is meant for a node without one, or if
// the claim is gone.
func (i *inquiry) expected(ctx context.Context, name string, f *facts) error {
	var claim karpv1.NodeClaim
	err := i.kube.Get(ctx, kube.ObjectKey{Name: name}, &claim)
	switch {
	case err == nil:
		f.claim = &claim
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read NodeClaim %s: %w", name, err)
	}
	return nil
}
