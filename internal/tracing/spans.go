package tracing

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The names of spans. There are few, so that a backend can compare all spans of a name.
const (
	// spanNode is the root: from the first pod that the node was launched for, to the last of them that is bound.
	spanNode = "node"
	// spanPlan is the activity Plan, spanBatch its wait for the end of the burst of pods, spanSolve the planning and the
	// creation of claims.
	spanPlan, spanBatch, spanSolve = "plan", "batch", "solve"
	// spanLaunch is the Launch until the instance is there. Its activities are its children, by their names.
	spanLaunch = "launch"
	// spanRegistration and spanInitialization are until the conditions Registered and Initialized, and spanReady is until the
	// Node's condition Ready.
	spanRegistration, spanInitialization, spanReady = "registration", "initialization", "ready"
	// spanPod is a pod from its creation until it is bound to the node.
	spanPod = "pod"
)

// mostPods is how many pods of a node get a span.
const mostPods = 100

// rootKey is the key of the root.
const rootKey = "node"

// span is a span of a claim's trace.
type span struct {
	// key distinguishes the spans of a trace, and its id is made of it. parent is the key of another span, empty for the root.
	key, parent string
	name        string
	start, end  time.Time
	attributes  []attribute.KeyValue
	// failure is why it ended without success.
	failure string
}

// step is an activity in a history.
type step struct {
	// event is the id of the event that scheduled it.
	event          int64
	activity       string
	asked, ended   time.Time
	attempt        int32
	failure        string
	snapshotTaken  time.Time // of a Plan: when it had waited for the pods; zero if unknown
	workflow, runs string    // where it is recorded
}

// story is what is recorded about a claim until its node served.
type story struct {
	claim *karpv1.NodeClaim
	// node and pods are nil where they are gone.
	node *corev1.Node
	pods []corev1.Pod
	// plan is the plan that the claim comes from; nil if it comes from none, or nothing is recorded.
	plan *step
	// launchBegan is when its Launch began; zero if that is not recorded. launch are its activities until the instance was
	// there.
	launchBegan time.Time
	launch      []step
}

// spans returns the spans of a claim's trace, the root first. Temporal records nanoseconds and Kubernetes whole seconds, so no
// stage begins before the one that it follows, and none ends before it begins.
func (s story) spans() []span {
	waiting := s.waitingPods()
	at := s.claim.CreationTimestamp.Time
	var all []span
	add := func(one span) span {
		if one.end.Before(one.start) {
			one.end = one.start
		}
		all = append(all, one)
		return one
	}
	if s.plan != nil {
		plan := add(planSpan(*s.plan))
		if looked := s.plan.snapshotTaken; looked.After(plan.start) && looked.Before(plan.end) {
			add(span{key: spanBatch, parent: spanPlan, name: spanBatch, start: plan.start, end: looked})
			add(span{key: spanSolve, parent: spanPlan, name: spanSolve, start: looked, end: plan.end})
		}
		at = plan.end
	}
	if !s.launchBegan.IsZero() {
		launch := span{key: spanLaunch, parent: rootKey, name: spanLaunch, start: s.launchBegan, end: s.launchBegan}
		for _, activity := range s.launch {
			if activity.ended.After(launch.end) {
				launch.end = activity.ended
			}
		}
		at = add(launch).end
		for _, activity := range s.launch {
			add(launchStep(activity))
		}
	}
	stage := func(name, parent string, from time.Time, condition *metav1.Condition) time.Time {
		if condition == nil || condition.Status != metav1.ConditionTrue {
			return from
		}
		return add(span{key: name, parent: parent, name: name, start: from, end: condition.LastTransitionTime.Time}).end
	}
	registered := stage(spanRegistration, rootKey, at, s.claim.Condition(karpv1.ConditionTypeRegistered))
	initialized := stage(spanInitialization, rootKey, registered, s.claim.Condition(karpv1.ConditionTypeInitialized))
	if ready := s.readyAt(); ready.After(registered) && !ready.After(initialized) {
		add(span{key: spanReady, parent: spanInitialization, name: spanReady, start: registered, end: ready})
	}
	for _, pod := range waiting {
		add(podSpan(pod))
	}
	return append([]span{s.root(all)}, all...)
}

// root spans all others.
func (s story) root(others []span) span {
	root := span{key: rootKey, name: spanNode, start: s.claim.CreationTimestamp.Time, end: s.claim.CreationTimestamp.Time, attributes: s.attributes()}
	for _, other := range others {
		if other.start.Before(root.start) {
			root.start = other.start
		}
		if other.end.After(root.end) {
			root.end = other.end
		}
	}
	return root
}

func (s story) attributes() []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("tenon.nodeclaim.name", s.claim.Name), attribute.String("tenon.nodeclaim.uid", string(s.claim.UID))}
	for _, one := range []struct{ key, value string }{
		{"k8s.node.name", s.claim.Status.NodeName}, {"tenon.nodepool.name", s.claim.Labels[karpv1.NodePoolLabelKey]},
		{"host.type", s.claim.Labels[corev1.LabelInstanceTypeStable]}, {"cloud.availability_zone", s.claim.Labels[corev1.LabelTopologyZone]},
		{"tenon.capacity_type", s.claim.Labels[karpv1.CapacityTypeLabelKey]}, {"tenon.launch_group", s.claim.Annotations[karpv1.LaunchGroupAnnotationKey]},
		{"cloud.resource_id", s.claim.Status.ProviderID},
	} {
		if one.value != "" {
			all = append(all, attribute.String(one.key, one.value))
		}
	}
	return all
}

func planSpan(plan step) span {
	return span{key: spanPlan, parent: rootKey, name: spanPlan, start: plan.asked, end: plan.ended, attributes: stepAttributes(plan)}
}

func launchStep(activity step) span {
	return span{key: spanLaunch + "/" + activity.activity + "/" + activity.asked.UTC().Format(time.RFC3339Nano), parent: spanLaunch, name: activity.activity,
		start: activity.asked, end: activity.ended, attributes: stepAttributes(activity), failure: activity.failure}
}

func stepAttributes(s step) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("tenon.workflow_id", s.workflow), attribute.String("tenon.run_id", s.runs), attribute.Int("tenon.attempt", int(s.attempt))}
}

func podSpan(pod corev1.Pod) span {
	return span{key: spanPod + "/" + string(pod.UID), parent: rootKey, name: spanPod, start: pod.CreationTimestamp.Time, end: boundAt(&pod),
		attributes: []attribute.KeyValue{attribute.String("k8s.namespace.name", pod.Namespace), attribute.String("k8s.pod.name", pod.Name), attribute.String("k8s.pod.uid", string(pod.UID))}}
}

// waitingPods returns the pods on the node that were there before its claim, the oldest first: it was launched for them.
// DaemonSets' pods and static ones come with every node.
func (s story) waitingPods() []corev1.Pod {
	var waiting []corev1.Pod
	for _, pod := range s.pods {
		owner := metav1.GetControllerOf(&pod)
		comes := owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
		if !comes && !boundAt(&pod).IsZero() && !pod.CreationTimestamp.After(s.claim.CreationTimestamp.Time) {
			waiting = append(waiting, pod)
		}
	}
	slices.SortFunc(waiting, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return waiting[:min(len(waiting), mostPods)]
}

// boundAt is when a pod was bound to its node; zero if it is not.
func boundAt(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// readyAt is when the Node became Ready for the last time; zero if it is not, or gone.
func (s story) readyAt() time.Time {
	if s.node == nil {
		return time.Time{}
	}
	for _, condition := range s.node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
