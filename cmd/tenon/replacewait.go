package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/ask"
	"github.com/tenon-sh/tenon/workflows"
)

// orderRuns are the workflows of orders and Replacements in Temporal.
type orderRuns struct {
	temporal client.Client
	cluster  workflows.Cluster
}

// Order implements replacementRuns. It gives up when no worker answers in time, and terminates the order then, so that
// nothing begins when nobody expects it any more.
func (o orderRuns) Order(ctx context.Context, in workflows.ReplacementOrderInput) (result workflows.ReplacementOrderResult, err error) {
	run, err := o.temporal.ExecuteWorkflow(ctx, workflows.ReplacementOrderOptions(in, orderName()).Client(), workflows.ReplacementOrderType, in)
	if err != nil {
		return result, fmt.Errorf("start the order: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, ask.Timeout)
	defer cancel()
	err = run.Get(within, &result)
	switch {
	case err == nil:
		return result, nil
	case within.Err() == nil:
		return result, fmt.Errorf("replace nodes: %w", err)
	}
	rest, stop := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer stop()
	if err := o.temporal.TerminateWorkflow(rest, run.GetID(), run.GetRunID(), "nobody waits for it any more"); err != nil {
		return result, fmt.Errorf("no worker of cluster %s carried out the order within %s, and it cannot be taken back: %w", o.cluster, ask.Timeout, err)
	}
	return result, fmt.Errorf("no worker of cluster %s carried out the order within %s, and it is ended; a replacement that has begun by now goes on. Is a worker running, and does it know tenon replace?", o.cluster, ask.Timeout)
}

// Await implements replacementRuns.
func (o orderRuns) Await(ctx context.Context, id string) (result workflows.ReplacementResult, err error) {
	err = o.temporal.GetWorkflow(ctx, o.cluster.ReplacementID(id), "").Get(ctx, &result)
	return result, err
}

// await shows the progress of replacements, one after the other, until their nodes are gone. They run at the same time, so
// the later ones may be over when their turn comes.
func (c *replaceCommand) await(ctx context.Context, begun []workflows.OrderedReplacement) (map[string]workflows.ReplacementResult, error) {
	ended := map[string]workflows.ReplacementResult{}
	var failed []error
	for _, replacement := range begun {
		result, err := c.awaitResult(ctx, replacement)
		if ctx.Err() != nil {
			return ended, errors.New("no longer waiting; the replacements go on, and the nodes' Events and the Temporal UI show how far they are")
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("replacement %s of %s: %w", replacement.ID, nodesOf(replacement), err))
			continue
		}
		ended[replacement.ID] = result
		if result.Undone != "" {
			failed = append(failed, fmt.Errorf("replacement %s was taken back, and %s stays: %s", replacement.ID, nodesOf(replacement), result.Undone))
			continue
		}
		for _, node := range replacement.Nodes {
			if err := c.awaitGone(ctx, node); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return ended, errors.Join(failed...)
}

// awaitResult shows the progress of one replacement until its workflow ends.
func (c *replaceCommand) awaitResult(ctx context.Context, replacement workflows.OrderedReplacement) (result workflows.ReplacementResult, err error) {
	ended := make(chan error, 1)
	go func() {
		var awaited error
		result, awaited = c.runs.Await(ctx, replacement.ID)
		ended <- awaited
	}()
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case err := <-ended:
			return result, err
		case <-ticker.C:
			if line := c.progressOf(ctx, replacement); line != "" && line != last {
				c.say("%s: %s", nodesOf(replacement), line)
				last = line
			}
		}
	}
}

// progressOf says how far what was launched for a replacement is; empty if that cannot be read at the moment.
func (c *replaceCommand) progressOf(ctx context.Context, replacement workflows.OrderedReplacement) string {
	var claims karpv1.NodeClaimList
	if err := c.kube.List(ctx, &claims); err != nil {
		return ""
	}
	var parts []string
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.Annotations[karpv1.ReplacementAnnotationKey] == replacement.ID {
			parts = append(parts, claim.Name+" "+stageOf(claim))
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case len(replacement.Launches) > 0:
		return "launching " + strings.Join(replacement.Launches, ", ")
	}
	return "checking once more whether its pods fit on other nodes"
}

// stageOf says how far a claim is on its way to serve.
func stageOf(claim *karpv1.NodeClaim) string {
	switch {
	case claim.IsTrue(karpv1.ConditionTypeInitialized):
		return "serves"
	case claim.IsTrue(karpv1.ConditionTypeRegistered):
		return "has joined, and is not initialized yet"
	case claim.IsTrue(karpv1.ConditionTypeLaunched):
		return "is launched, and has not joined yet"
	}
	return "is being launched"
}

// awaitGone shows the progress of an old node's drain until the Node and its NodeClaim are gone.
func (c *replaceCommand) awaitGone(ctx context.Context, node workflows.RemovedNode) error {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for last := ""; ; {
		claim, err := c.exists(ctx, &karpv1.NodeClaim{}, node.Claim.Name)
		if err != nil {
			return err
		}
		there, err := c.exists(ctx, &corev1.Node{}, node.Node)
		if err != nil {
			return err
		}
		if !claim && !there {
			c.say("node %s and NodeClaim %s are gone", node.Node, node.Claim.Name)
			return nil
		}
		if status, err := c.drain(ctx, node.Node); err == nil {
			line := "is being drained"
			for _, blocker := range status.Blockers {
				line += "\n  " + blockerInWords(blocker)
			}
			if status.Outcome != "" {
				line = "is drained, and being terminated"
			}
			if line != last {
				c.say("node %s %s", node.Node, line)
				last = line
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no longer waiting; node %s is being removed", node.Node)
		case <-ticker.C:
		}
	}
}

func (c *replaceCommand) exists(ctx context.Context, object kube.Object, name string) (bool, error) {
	switch err := c.kube.Get(ctx, kube.ObjectKey{Name: name}, object); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look whether %s is gone: %w", name, err)
	}
	return true, nil
}

// nodesOf names the nodes of a replacement.
func nodesOf(replacement workflows.OrderedReplacement) string {
	names := make([]string, 0, len(replacement.Nodes))
	for _, node := range replacement.Nodes {
		names = append(names, node.Node)
	}
	return strings.Join(names, ", ")
}
