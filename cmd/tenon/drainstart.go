package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// errLeaving means that a node is being removed already.
var errLeaving = errors.New("the node is being removed")

// start starts the drain of a node, and with --wait waits until it ends. If the node is being drained already, or its
// NodeClaim deleted, start attaches to the running drain.
func (d *drains) start(ctx context.Context, node string, flags drainFlags) error {
	in, err := d.describe(ctx, node, flags)
	if errors.Is(err, errLeaving) {
		return d.attach(ctx, in, flags)
	}
	if err != nil {
		return err
	}
	in.By = d.by(ctx)
	options := workflows.DrainOptions(in).Client()
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	options.StaticDetails = flags.note
	run, err := d.temporal.ExecuteWorkflow(ctx, options, workflows.DrainType, in)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &running):
		return d.attach(ctx, in, flags)
	case err != nil:
		return fmt.Errorf("start the drain of %s: %w", node, err)
	}
	d.warnWithoutWorker(ctx)
	d.noteStop(ctx, in.NodePool)
	if flags.wait {
		return d.await(ctx, run, in)
	}
	if d.json {
		return d.print(workflows.DrainStatus{Node: in.Node, Claim: in.Claim, NodePool: in.NodePool, Phase: workflows.PhaseDraining, Reason: in.Reason,
			Note: in.Note, By: in.By, Delete: in.Delete, Started: time.Now().UTC().Truncate(time.Second), Deadline: in.Deadline})
	}
	then := "stays, cordoned"
	if in.Delete {
		then = "is terminated, with NodeClaim " + in.Claim
	}
	_, err = fmt.Fprintf(d.out, "node %s is being drained; afterwards it %s\nworkflow %s; tenon drain status %s shows how far it is\n", node, then, run.GetID(), node)
	return err
}

// noteStop says that disruption is paused, if it is: a drain that a person asks for goes on all the same.
func (d *drains) noteStop(ctx context.Context, pool string) {
	p := pauseCommand{kube: d.kube, now: time.Now}
	if stop, err := p.disruptionStop(ctx, pool); err == nil && stop != nil {
		_, _ = fmt.Fprintf(d.progress, "note: %s. The drain you asked for goes on\n", stop)
	}
}

// describe builds the input of a node's drain. It returns errLeaving if the node's NodeClaim is being deleted.
func (d *drains) describe(ctx context.Context, name string, flags drainFlags) (workflows.DrainInput, error) {
	in := workflows.DrainInput{Cluster: d.cluster, Node: name, Reason: workflows.ReasonManualDrain, Note: flags.note}
	if flags.deadline != "" {
		deadline, err := parseDeadline(flags.deadline, time.Now())
		if err != nil {
			return in, err
		}
		in.Deadline = deadline
	}
	var node corev1.Node
	err := d.kube.Get(ctx, kube.ObjectKey{Name: name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return in, fmt.Errorf("there is no node %s in this Kubernetes cluster", name)
	case err != nil:
		return in, fmt.Errorf("read node %s: %w", name, err)
	}
	in.NodeUID, in.NodePool = string(node.UID), node.Labels[karpv1.NodePoolLabelKey]
	claim, err := claimOf(ctx, d.kube, &node)
	if err != nil || claim == nil {
		return in, err
	}
	in.Claim, in.ClaimUID, in.Delete = claim.Name, string(claim.UID), !flags.keep
	if claim.DeletionTimestamp != nil {
		if flags.keep {
			return in, fmt.Errorf("--keep: NodeClaim %s is being deleted, so node %s is removed whatever becomes of its drain", claim.Name, name)
		}
		return in, errLeaving
	}
	return in, nil
}

// claimOf returns the NodeClaim of a node; nil when the node is not Tenon's.
func claimOf(ctx context.Context, direct kube.Client, node *corev1.Node) (*karpv1.NodeClaim, error) {
	var claims karpv1.NodeClaimList
	err := direct.List(ctx, &claims)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		// Tenon's resources are not installed, so no node is Tenon's.
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.NodeName == node.Name || (node.Spec.ProviderID != "" && claim.Status.ProviderID == node.Spec.ProviderID) {
			return claim, nil
		}
	}
	return nil, nil
}

// attach attaches to the running drain of a node: it sends it a deadline, and with --wait waits until it ends.
func (d *drains) attach(ctx context.Context, in workflows.DrainInput, flags drainFlags) error {
	status, err := d.status(ctx, in.Node)
	switch {
	case err != nil && in.Delete && flags.wait:
		d.say("NodeClaim %s is being deleted; waiting until node %s is gone", in.Claim, in.Node)
		return d.awaitGone(ctx, in)
	case err != nil:
		return fmt.Errorf("NodeClaim %s of node %s is being deleted, and its drain does not answer: %w", in.Claim, in.Node, err)
	case status.Outcome != "":
		d.say("the drain of node %s has ended (%s), and the node is being removed", in.Node, status.Outcome)
		if flags.wait {
			return d.awaitGone(ctx, in)
		}
		return d.print(status)
	}
	d.say("node %s is being drained already, since %s, because of %s; attached to that", in.Node, status.Started.Local().Format(time.TimeOnly), status.Reason)
	if !in.Deadline.IsZero() {
		order := workflows.DrainOrder{Deadline: in.Deadline, Note: flags.note, By: d.by(ctx)}
		if status, err = d.ordered(ctx, in.Node, workflows.UpdateDeadline, order); err != nil {
			return err
		}
	}
	if flags.wait {
		return d.follow(ctx, in.Node)
	}
	return d.print(status)
}

// by returns the user name under which the API server knows this person; empty, with a warning, if it does not say.
func (d *drains) by(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := d.kube.Create(ctx, review); err != nil {
		_, _ = fmt.Fprintf(d.progress, "warning: the order is recorded without its author: the API server does not say who you are: %v\n", err)
		return ""
	}
	return review.Status.UserInfo.Username
}

// warnWithoutWorker prints a warning if no worker is running.
func (d *drains) warnWithoutWorker(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	queue, err := d.temporal.DescribeTaskQueue(ctx, d.cluster.TaskQueue(), enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err == nil && len(queue.GetPollers()) == 0 {
		_, _ = fmt.Fprintf(d.progress, "warning: no worker of cluster %s is running; the drain begins when one does\n", d.cluster)
	}
}
