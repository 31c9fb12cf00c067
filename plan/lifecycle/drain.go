package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

const (
	// stuckAfter is how long past its deletionTimestamp a pod may still hold up a drain. If something keeps it longer (a
	// dead kubelet, a finalizer), waiting does not help.
	stuckAfter = time.Minute
	// overdueAfter is how long past its deletionTimestamp a pod is shown as holding up the drain: a kubelet needs some
	// seconds to report the end of a pod.
	overdueAfter = 10 * time.Second
	// patience is the longest grace period that is not worth mentioning while a pod uses it.
	patience = time.Minute
	// minGrace is the shortest grace period of a direct deletion; zero would delete the object while the containers
	// still run.
	minGrace = time.Second
)

// DrainTerms apply to all pods of a drain.
type DrainTerms struct {
	Now time.Time
	// Deadline is when the drain ends whatever is left; zero means never.
	Deadline time.Time
	// Force treats the deadline as passed.
	Force bool
	// Cordon is the taint that keeps pods off the node. A pod that tolerates it would come straight back, so it is
	// left where it is.
	Cordon corev1.Taint
	// Allocatable is what the node has for pods. Until SmallFrom, only pods that take a good part of it are evicted; if
	// SmallFrom is zero, all are evicted at once.
	Allocatable model.Resources
	SmallFrom   time.Time
}

// DrainHold is the kind of reason for which a pod cannot leave now.
type DrainHold string

const (
	// HoldDoNotDisrupt is an annotation that protects the pod.
	HoldDoNotDisrupt DrainHold = "DoNotDisrupt"
	// HoldTerminating is a pod that takes long to end, or does not end.
	HoldTerminating DrainHold = "Terminating"
)

// DrainBlock is a pod that cannot leave now, and why.
type DrainBlock struct {
	Pod   model.DrainPod
	Cause DrainHold
	// By names the annotation or finalizer.
	By string
	// Message is the sentence a person reads.
	Message string
}

// DrainDelete is a pod to be deleted whatever its PodDisruptionBudgets allow.
type DrainDelete struct {
	Pod model.DrainPod
	// Grace is the grace period to delete with, whole seconds and at least one.
	Grace time.Duration
}

// DrainStep is what a drain does next.
type DrainStep struct {
	// Evict are the pods to evict now, in order.
	Evict []model.DrainPod
	// Delete are the pods that would outlive the deadline.
	Delete []DrainDelete
	// Blocks are the pods that cannot leave now, in order. Later groups wait for them.
	Blocks []DrainBlock
	// Left counts the pods that still have to leave; the node is drained when it is zero.
	Left int
	// Staying are pods on the node that the drain leaves alone and that still run.
	Staying []model.DrainPod
	// Next is when time alone changes this answer; zero means never.
	Next time.Time
}

// Drain decides what a drain does next with the pods of one node. It follows the order of Karpenter's termination: pods
// that are neither critical nor of a DaemonSet first, then those of DaemonSets, then critical ones, then critical ones of
// DaemonSets, each group only when the one before is gone. Pods that would outlive the deadline are deleted in all groups,
// with the grace period that is left, whatever protects them. Until SmallFrom, the large pods of a group are evicted ahead
// of the small ones: the kube-scheduler spreads pods, and puts a small one where a large one from another node would just
// have fitted.
func Drain(pods []model.DrainPod, terms DrainTerms) DrainStep {
	var step DrainStep
	var groups [4][]model.DrainPod
	for _, pod := range pods {
		switch {
		case pod.Terminal:
		case Stays(pod, terms.Cordon), pod.Terminating() && terms.Now.After(pod.Deletion.Add(stuckAfter)):
			step.Staying = append(step.Staying, pod)
		default:
			turn := model.Flag(pod.Daemon) + 2*model.Flag(pod.Critical)
			groups[turn] = append(groups[turn], pod)
			step.Left++
		}
	}
	first := true
	for _, group := range groups {
		slices.SortFunc(group, func(a, b model.DrainPod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
		})
		for _, pod := range group {
			step.add(pod, terms, first)
		}
		first = first && len(group) == 0
	}
	return step
}

// add puts one pod that has to leave into the step; turn says that its group is the one being evicted.
func (s *DrainStep) add(pod model.DrainPod, terms DrainTerms, turn bool) {
	now := terms.Now
	if grace, late := expires(pod, terms); late {
		s.Delete = append(s.Delete, DrainDelete{Pod: pod, Grace: grace})
		return
	}
	if !terms.Deadline.IsZero() && !pod.Terminating() {
		s.wake(now, terms.Deadline.Add(-pod.GracePeriod+time.Nanosecond))
	}
	switch {
	case pod.Terminating():
		s.wake(now, pod.Deletion.Add(overdueAfter))
		s.wake(now, pod.Deletion.Add(stuckAfter+time.Nanosecond))
		if by, message := slow(pod, now); by != "" {
			s.Blocks = append(s.Blocks, DrainBlock{Pod: pod, Cause: HoldTerminating, By: by, Message: message})
		}
	case pod.Undisruptable(now):
		s.wake(now, pod.DisruptableAt())
		s.Blocks = append(s.Blocks, DrainBlock{Pod: pod, Cause: HoldDoNotDisrupt, By: pod.Protection, Message: protected(pod)})
	case turn && now.Before(terms.SmallFrom) && !Large(pod.Pod, terms.Allocatable):
		s.wake(now, terms.SmallFrom)
	case turn:
		s.Evict = append(s.Evict, pod)
	}
}

func (s *DrainStep) wake(now, at time.Time) {
	if at.After(now) && (s.Next.IsZero() || at.Before(s.Next)) {
		s.Next = at
	}
}

// Stays reports whether a drain leaves the pod alone, because nothing could keep it from running on this node.
func Stays(p model.DrainPod, cordon corev1.Taint) bool {
	return p.Static || model.Tolerates(p.Class.Tolerations, &cordon)
}

// largeShare is the inverse of the share of a node's cores or memory from which a pod is hard to place: a pod that takes
// less finds room on most nodes.
const largeShare = 4

// Large reports whether a pod takes a good part of a node, or something that few nodes have.
func Large(p *model.Pod, allocatable model.Resources) bool {
	needs := &p.Class.Requests
	return largeShare*needs.CPU >= allocatable.CPU || largeShare*needs.Memory >= allocatable.Memory || len(needs.Extended) > 0
}

// expires returns the grace period to delete the pod with, and whether the pod would outlive the deadline. A pod that is
// already being deleted with a grace period no longer than that is left to end.
func expires(p model.DrainPod, terms DrainTerms) (time.Duration, bool) {
	if terms.Deadline.IsZero() && !terms.Force {
		return 0, false
	}
	grace := minGrace
	if !terms.Force {
		grace = max(terms.Deadline.Sub(terms.Now).Truncate(time.Second), minGrace)
	}
	passed := terms.Force || !terms.Now.Before(terms.Deadline)
	if p.Terminating() {
		return grace, (passed || p.Deletion.After(terms.Deadline)) && p.DeletionGrace > grace
	}
	return grace, passed || terms.Deadline.Add(-p.GracePeriod).Before(terms.Now)
}

// slow returns what delays a terminating pod, and a message; both are empty if that is not worth mentioning.
func slow(p model.DrainPod, now time.Time) (by, message string) {
	switch overdue := !now.Before(p.Deletion.Add(overdueAfter)); {
	case overdue && len(p.Finalizers) > 0:
		return p.Finalizers[0], fmt.Sprintf("should have ended at %s, but finalizer %s keeps it", Clock(p.Deletion), p.Finalizers[0])
	case overdue:
		return "kubelet", fmt.Sprintf("should have ended at %s, but its kubelet has not reported its end", Clock(p.Deletion))
	case p.DeletionGrace > patience && now.Before(p.Deletion):
		return "terminationGracePeriodSeconds", fmt.Sprintf("is terminating and may take until %s", Clock(p.Deletion))
	}
	return "", ""
}

func protected(p model.DrainPod) string {
	switch {
	case p.DoNotDisruptFor == 0:
		return "carries " + p.Protection
	case p.Started.IsZero():
		return fmt.Sprintf("carries %s=%s and has not started", p.Protection, p.DoNotDisruptFor)
	}
	return fmt.Sprintf("carries %s=%s, which holds until %s", p.Protection, p.DoNotDisruptFor, Clock(p.DisruptableAt()))
}

// Clock writes a time for people.
func Clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
