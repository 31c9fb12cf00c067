package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/bench/workload"
)

// comparison is what both planners make of one question.
type comparison struct {
	question     *duel.Question
	ours, theirs duel.Answer
	differences  []difference
}

// The names of the exceptions, as in DIFFERENCES.md.
const (
	pessimisticAntiAffinity = "the peer keeps pods out of zones that others only might be in"
	brokenAffinity          = "the peer starts on a node that is too small for the pods to come"
	countsUnusedDomains     = "the peer counts domains that no node is in"
	firstPodsFirst          = "the peer takes pods by size and leaves those that would have kept the skew"
	settlesLabels           = "the peer takes a label for settled that an existing node does not have"
	sharedLimit             = "which pods get the last of a limit"
	sharedRoom              = "which pods get the last room near others, or apart from them"
	keepsWishes             = "Tenon keeps wishes that the peer gives up"
	devicesApart            = "Tenon keeps pods that ask for no device off machines with devices"
	evenly                  = "Tenon spreads evenly where the skew allows less"
	rounding                = "Tenon's cheapest plan is dearer by less than one machine"
	unexplained             = "unexplained"
)

// excuse names the known reason for a difference, or is empty.
func (c *comparison) excuse(d difference) string {
	switch {
	case c.limited() && c.ours.Placed() >= c.theirs.Placed():
		// Limits let some pods in and keep others out. They are not worse used than by the peer.
		return sharedLimit
	case d.ours > d.theirs && (strings.Contains(d.theirReason, "pod anti-affinity") || c.choosesApart(d.app)):
		// Of several alternatives of node affinity, the peer names only what keeps the pod from the last.
		return pessimisticAntiAffinity
	case d.ours > d.theirs && (strings.Contains(d.theirReason, "pod affinity") || c.gathers(d.app) && strings.Contains(d.theirReason, "enough resources")):
		return brokenAffinity
	case d.ours > d.theirs && strings.Contains(d.theirReason, "topology spread, key=example.com/tier"):
		return countsUnusedDomains
	case d.ours > d.theirs && strings.Contains(d.theirReason, "topology spread"):
		return firstPodsFirst
	case d.ours < d.theirs && len(c.question.Nodes) > 0 && strings.Contains(d.ourReason, "the pool does not define the label"):
		return settlesLabels
	case d.ours < d.theirs && strings.Contains(d.ourReason, "affinity") && c.ours.Placed() >= c.theirs.Placed():
		return sharedRoom
	}
	return ""
}

// gathers says that the pods of an application have to be near others.
func (c *comparison) gathers(app string) bool {
	return slices.ContainsFunc(c.question.Pods, func(p *corev1.Pod) bool {
		a := p.Spec.Affinity
		return p.Namespace+"/"+p.Labels[workload.AppLabel] == app && a != nil && a.PodAffinity != nil &&
			len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
	})
}

// choosesApart says that the pods of an application keep apart from others, and have alternatives for their nodes.
func (c *comparison) choosesApart(app string) bool {
	return slices.ContainsFunc(c.question.Pods, func(p *corev1.Pod) bool {
		a := p.Spec.Affinity
		return p.Namespace+"/"+p.Labels[workload.AppLabel] == app && a != nil && a.PodAntiAffinity != nil &&
			len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && a.NodeAffinity != nil &&
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil &&
			len(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) > 1
	})
}

// limited says that limits kept pods from both planners.
func (c *comparison) limited() bool {
	limit := func(a duel.Answer) bool {
		for _, reason := range a.Unplaced {
			if strings.Contains(reason, "limit ") || strings.Contains(reason, "exceed limits") {
				return true
			}
		}
		return false
	}
	return limit(c.ours) || limit(c.theirs)
}

// mostOfOneMachine is how much of the price of the dearest machine a plan may be dearer by for rounding.
const mostOfOneMachine = 0.8

// dearer names the known reason for a plan that costs more than the peer's, is unexplained where there is none, and empty
// where the plan does not cost more.
func (c *comparison) dearer() string {
	excess := c.ours.Cost() - c.theirs.Cost()
	if excess <= c.theirs.Cost()*1e-9 {
		return ""
	}
	switch {
	case c.someAskForDevices():
		return devicesApart
	case slices.ContainsFunc(c.question.Pods, spreads):
		return evenly
	case slices.ContainsFunc(c.question.Pods, wishes):
		return keepsWishes
	}
	dearest := 0.0
	for _, m := range slices.Concat(c.ours.Machines, c.theirs.Machines) {
		dearest = max(dearest, m.Price)
	}
	if excess <= mostOfOneMachine*dearest {
		return rounding
	}
	return unexplained
}

// someAskForDevices says that some pods do, and others do not.
func (c *comparison) someAskForDevices() bool {
	return slices.ContainsFunc(c.question.Pods, workload.AsksForDevices) &&
		slices.ContainsFunc(c.question.Pods, func(p *corev1.Pod) bool { return !workload.AsksForDevices(p) })
}

func spreads(p *corev1.Pod) bool { return len(p.Spec.TopologySpreadConstraints) > 0 }

func wishes(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}
