package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// lookEvery is the interval at which a waiting command checks the drain.
const lookEvery = time.Second

// follow waits for the drain of a node, which may have ended already.
func (d *drains) follow(ctx context.Context, node string) error {
	status, err := d.status(ctx, node)
	if err != nil {
		return err
	}
	in := workflows.DrainInput{Cluster: d.cluster, Node: node, Claim: status.Claim, Delete: status.Delete}
	return d.await(ctx, d.temporal.GetWorkflow(ctx, d.cluster.DrainID(node), ""), in)
}

// await shows the progress of a drain until it has ended and then, if the node is to be terminated, until it is gone.
func (d *drains) await(ctx context.Context, run client.WorkflowRun, in workflows.DrainInput) error {
	result, err := d.awaitResult(ctx, run, in)
	if err != nil {
		return err
	}
	if err := d.conclude(result, in.Node); err != nil {
		return err
	}
	if in.Delete {
		d.say("node %s is drained; waiting until it is terminated", in.Node)
		if err := d.awaitGone(ctx, in); err != nil {
			return err
		}
		d.say("node %s and NodeClaim %s are gone", in.Node, in.Claim)
	}
	if !d.json {
		return nil
	}
	status, err := d.status(ctx, in.Node)
	if err != nil {
		return err
	}
	return writeJSON(d.out, status)
}

// conclude reports an outcome; every outcome but Drained is an error.
func (d *drains) conclude(result workflows.DrainResult, node string) error {
	switch result.Outcome {
	case workflows.Drained:
		d.say("node %s is drained: %d pods evicted", node, result.Evicted)
		return nil
	case workflows.DeadlineReached:
		left := make([]string, len(result.Blockers))
		for i, blocker := range result.Blockers {
			left[i] = blockerInWords(blocker)
		}
		return fmt.Errorf("the deadline came before node %s was drained; %s", node, strings.Join(left, "; "))
	case workflows.NodeGone:
		return fmt.Errorf("node %s no longer exists", node)
	}
	return fmt.Errorf("the drain of node %s was canceled", node)
}

// awaitResult prints a line whenever something has changed, until the workflow returns.
func (d *drains) awaitResult(ctx context.Context, run client.WorkflowRun, in workflows.DrainInput) (workflows.DrainResult, error) {
	type ending struct {
		result workflows.DrainResult
		err    error
	}
	ended := make(chan ending, 1)
	go func() {
		var e ending
		e.err = run.Get(ctx, &e.result)
		ended <- e
	}()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case e := <-ended:
			if ctx.Err() != nil {
				return e.result, fmt.Errorf("no longer waiting; the drain of %s goes on, tenon drain status %[1]s shows how far it is", in.Node)
			}
			if e.err != nil {
				return e.result, fmt.Errorf("wait for the drain of %s: %w", in.Node, e.err)
			}
			return e.result, nil
		case <-ticker.C:
			status, err := d.status(ctx, in.Node)
			if err != nil || status.Outcome != "" {
				continue
			}
			if line := d.progressOf(ctx, status); line != last {
				d.say("%s", line)
				last = line
			}
		}
	}
}

// progressOf describes a running drain. It counts the pods in the API server, since the workflow learns of them only
// when its blockers change.
func (d *drains) progressOf(ctx context.Context, status workflows.DrainStatus) string {
	line := status.Phase
	var pods corev1.PodList
	if err := d.kube.List(ctx, &pods, kube.MatchingFields{"spec.nodeName": status.Node}); err == nil {
		line += fmt.Sprintf(": %d pods on the node", len(pods.Items))
	}
	for _, blocker := range status.Blockers {
		line += "\n  " + blockerInWords(blocker)
	}
	return line
}

// awaitGone waits until the Node and its NodeClaim no longer exist.
func (d *drains) awaitGone(ctx context.Context, in workflows.DrainInput) error {
	err := wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		for _, object := range []kube.Object{&corev1.Node{}, &karpv1.NodeClaim{}} {
			name := in.Node
			if _, isClaim := object.(*karpv1.NodeClaim); isClaim {
				name = in.Claim
			}
			err := d.kube.Get(ctx, kube.ObjectKey{Name: name}, object)
			if err == nil || !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until node %s and NodeClaim %s are gone: %w", in.Node, in.Claim, err)
	}
	return nil
}

func (d *drains) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.progress, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
