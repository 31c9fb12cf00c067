package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// facts are the known facts about a pod. Unknown ones are nil or zero.
type facts struct {
	pod *corev1.Pod
	// node is the node that the pod runs on; claim is its NodeClaim, or the one that the pod is meant for.
	node  *corev1.Node
	claim *karpv1.NodeClaim
	// price is the node's hourly price at its launch, in US dollars.
	price  float64
	answer *workflows.PodAnswer
}

// podStory is what `tenon why pod` prints.
type podStory struct {
	Pod string `json:"pod"`
	// State is Bound, Ended, Terminating, Gated, Daemon or Pending.
	State string `json:"state"`
	// Summary is the story in a sentence or two.
	Summary string `json:"summary"`
	// Node and NodeClaim are where the pod runs or is expected to run.
	Node         string  `json:"node,omitempty"`
	NodeClaim    string  `json:"nodeClaim,omitempty"`
	NodePool     string  `json:"nodePool,omitempty"`
	LaunchGroup  string  `json:"launchGroup,omitempty"`
	InstanceType string  `json:"instanceType,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	CapacityType string  `json:"capacityType,omitempty"`
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	// Scheduler is the kube-scheduler's last message.
	Scheduler string `json:"scheduler,omitempty"`
	// Verdict and Reasons come from the planner.
	Verdict workflows.PodVerdict  `json:"verdict,omitempty"`
	Reasons []workflows.PodReason `json:"reasons,omitempty"`
}

// text returns the story for people.
func (s *podStory) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", s.Pod, s.Summary)
	reasons := make([]plan.Reason, len(s.Reasons))
	for i, reason := range s.Reasons {
		reasons[i] = plan.Reason{NodePool: reason.NodePool, Message: reason.Message}
	}
	b.WriteString(reasonLines(reasons))
	if s.Scheduler != "" {
		fmt.Fprintf(&b, "kube-scheduler: %s\n", s.Scheduler)
	}
	return b.String()
}

// waits says that a node may be launched for the pod, so that the worker has to be asked.
func (f *facts) waits() bool { return f.state() == "Pending" }

func (f *facts) state() string {
	pod := f.pod
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return "Ended"
	case pod.Spec.NodeName != "":
		return "Bound"
	case pod.DeletionTimestamp != nil:
		return "Terminating"
	case len(pod.Spec.SchedulingGates) > 0:
		return "Gated"
	case controller != nil && controller.Kind == "DaemonSet":
		return "Daemon"
	}
	return "Pending"
}

// story turns the facts into a story.
func (f *facts) story() *podStory {
	s := &podStory{Pod: f.pod.Namespace + "/" + f.pod.Name, State: f.state(), Node: f.pod.Spec.NodeName}
	if f.claim != nil {
		s.NodeClaim, s.NodePool = f.claim.Name, f.claim.Labels[karpv1.NodePoolLabelKey]
		s.LaunchGroup = f.claim.Annotations[karpv1.LaunchGroupAnnotationKey]
		s.InstanceType, s.Zone = f.claim.Labels[corev1.LabelInstanceTypeStable], f.claim.Labels[corev1.LabelTopologyZone]
		s.CapacityType, s.PricePerHour = f.claim.Labels[karpv1.CapacityTypeLabelKey], f.price
	}
	switch s.State {
	case "Ended":
		s.Summary = fmt.Sprintf("has ended (%s)", f.pod.Status.Phase)
	case "Bound":
		s.Summary = f.bound(s)
	case "Terminating":
		s.Summary = "is being deleted and gets no node"
	case "Gated":
		var gates []string
		for _, gate := range f.pod.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		s.Summary = "is not scheduled before its scheduling gates are removed: " + strings.Join(gates, ", ")
	case "Daemon":
		s.Summary = "belongs to a DaemonSet: no node is launched for it, it runs on existing nodes"
	case "Pending":
		s.Summary = f.pending(s)
	}
	return s
}

// bound returns a sentence about where a pod runs and where that node came from.
func (f *facts) bound(s *podStory) string {
	text := "is bound to node " + s.Node
	if condition := f.scheduled(); condition != nil && condition.Status == corev1.ConditionTrue {
		text = "was bound to node " + s.Node + " at " + condition.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	switch {
	case f.node == nil:
		return text + ", which does not exist (any more)"
	case f.claim == nil:
		return text + "; the node has no NodeClaim, so Tenon did not launch it"
	}
	text += fmt.Sprintf("; the node came from NodeClaim %s", s.NodeClaim)
	if s.NodePool != "" {
		text += " of NodePool " + s.NodePool
	}
	text += ", created " + f.claim.CreationTimestamp.UTC().Format(time.RFC3339)
	if s.LaunchGroup != "" {
		text += " in launch group " + s.LaunchGroup
	}
	if s.InstanceType != "" {
		text += fmt.Sprintf(": %s, %s, %s", s.InstanceType, s.CapacityType, s.Zone)
	}
	if s.PricePerHour > 0 {
		text += ", " + cloud.Money(s.Zone, s.PricePerHour) + " per hour"
	}
	return text
}

// pending returns a sentence about what the planner plans for a pod without a node.
func (f *facts) pending(s *podStory) string {
	text := "has been pending since " + f.pod.CreationTimestamp.UTC().Format(time.RFC3339) + ": "
	if condition := f.scheduled(); condition != nil && condition.Status == corev1.ConditionFalse {
		s.Scheduler = condition.Message
	}
	if f.answer == nil {
		return text + "nobody was asked why"
	}
	if nominated := f.pod.Status.NominatedNodeName; nominated != "" {
		text += fmt.Sprintf("it is nominated to node %s and bound as soon as there is room; ", nominated)
	}
	a := f.answer
	s.Verdict, s.Reasons = a.Verdict, a.Reasons
	if !a.Judged && a.Verdict != workflows.PodUnknown {
		text += "the kube-scheduler has not judged it yet, and Tenon waits for that; as things stand, "
	}
	switch a.Verdict {
	case workflows.PodPromised:
		text += "a plan was made for it: it is meant for " + f.whereTo(a.Node)
	case workflows.PodFits:
		text += "it fits on " + f.whereTo(a.Node)
	case workflows.PodLaunch:
		s.NodePool, s.CapacityType, s.PricePerHour = a.NodePool, a.CapacityType, a.PricePerHour
		text += fmt.Sprintf("the next plan launches a node for it: NodePool %s, %s %s in %s, %s per hour", a.NodePool, a.CapacityType, strings.Join(a.InstanceTypes, " or "), strings.Join(a.Zones, " or "),
			cloud.Money(strings.Join(a.Zones, ""), a.PricePerHour))
	case workflows.PodUnplaced:
		text += "no node can be provisioned for it"
	case workflows.PodUnknown:
		text += "the worker does not plan for it at present"
	}
	return text
}

// whereTo describes the place where a pod is expected to run.
func (f *facts) whereTo(name string) string {
	if f.claim == nil {
		return "node " + name
	}
	state := "is being launched"
	for _, step := range []struct{ condition, state string }{
		{karpv1.ConditionTypeLaunched, "is launched and has not joined the cluster yet"},
		{karpv1.ConditionTypeRegistered, "has joined the cluster and is not ready yet"},
		{karpv1.ConditionTypeInitialized, "is ready"},
	} {
		if f.claim.IsTrue(step.condition) {
			state = step.state
		}
	}
	if f.claim.DeletionTimestamp != nil {
		state = "is going away"
	}
	return fmt.Sprintf("NodeClaim %s of NodePool %s, which %s", name, f.claim.Labels[karpv1.NodePoolLabelKey], state)
}

func (f *facts) scheduled() *corev1.PodCondition {
	for c := range f.pod.Status.Conditions {
		if f.pod.Status.Conditions[c].Type == corev1.PodScheduled {
			return &f.pod.Status.Conditions[c]
		}
	}
	return nil
}
