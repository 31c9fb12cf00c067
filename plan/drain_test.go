package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

var drainNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// drainPod builds a running pod with a grace period of 30 s.
func drainPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: "node", TerminationGracePeriodSeconds: new(int64(30))},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: drainNow.Add(-time.Hour)}},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func ownedByDaemonSet(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: new(true)}}
}

func criticalClass(pod *corev1.Pod) { pod.Spec.PriorityClassName = "system-node-critical" }

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{key: value} }
}

func protected(pod *corev1.Pod) { annotated(karpv1.DoNotDisruptAnnotationKey, "true")(pod) }

func requesting(cpu, memory string, devices ...corev1.ResourceName) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		for _, device := range devices {
			requests[device] = resource.MustParse("1")
		}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}}
	}
}

func withGrace(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// deleted marks the pod as being deleted, to end after the given time.
func deleted(ends time.Duration, grace int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp = &metav1.Time{Time: drainNow.Add(ends)}
		pod.DeletionGracePeriodSeconds = &grace
	}
}

func tolerating(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Tolerations = tolerations }
}

// outcome is a step in comparable form.
type outcome struct {
	Evict, Delete, Blocked, Staying []string
	Left                            int
	Next                            time.Duration
}

func drainOutcome(step plan.DrainStep) outcome {
	o := outcome{Left: step.Left}
	for _, pod := range step.Evict {
		o.Evict = append(o.Evict, pod.Name)
	}
	for _, pod := range step.Delete {
		o.Delete = append(o.Delete, fmt.Sprintf("%s %s", pod.Pod.Name, pod.Grace))
	}
	for _, block := range step.Blocks {
		o.Blocked = append(o.Blocked, fmt.Sprintf("%s %s %s", block.Pod.Name, block.Cause, block.By))
	}
	for _, pod := range step.Staying {
		o.Staying = append(o.Staying, pod.Name)
	}
	if !step.Next.IsZero() {
		o.Next = step.Next.Sub(drainNow).Round(time.Millisecond)
	}
	return o
}

func drainStep(pods []*corev1.Pod, terms plan.DrainTerms) plan.DrainStep {
	in := new(plan.Interner)
	reduced := make([]plan.DrainPod, len(pods))
	for i, pod := range pods {
		reduced[i] = in.DrainPod(pod)
	}
	return plan.Drain(reduced, terms)
}

func TestDrain(t *testing.T) {
	t.Parallel()
	exists := corev1.Toleration{Operator: corev1.TolerationOpExists}
	unschedulable := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		reason   string
		pods     []*corev1.Pod
		deadline time.Duration
		force    bool
		cordon   *corev1.Taint
		// smallWait is how long pods that take little of the node's 4 cores and 8 GiB still have to wait.
		smallWait time.Duration
		want      outcome
	}{
		"Empty":       {reason: "a node without pods is drained"},
		"OneGroup":    {reason: "pods of one group are evicted together, in the order of their names", pods: []*corev1.Pod{drainPod("b"), drainPod("a")}, want: outcome{Evict: []string{"a", "b"}, Left: 2}},
		"DaemonsNext": {reason: "DaemonSet pods serve the others until those are gone", pods: []*corev1.Pod{drainPod("d", ownedByDaemonSet), drainPod("w")}, want: outcome{Evict: []string{"w"}, Left: 2}},
		"CriticalAfterDaemons": {reason: "critical pods outlast ordinary DaemonSet pods",
			pods: []*corev1.Pod{drainPod("c", criticalClass), drainPod("d", ownedByDaemonSet)}, want: outcome{Evict: []string{"d"}, Left: 2}},
		"CriticalDaemonsLast": {reason: "critical DaemonSet pods go last",
			pods: []*corev1.Pod{drainPod("cd", criticalClass, ownedByDaemonSet), drainPod("c", criticalClass)}, want: outcome{Evict: []string{"c"}, Left: 2}},
		"GoneNotEvicted": {reason: "a pod that is only terminating still holds the next group back",
			pods: []*corev1.Pod{drainPod("a", deleted(20*time.Second, 30)), drainPod("d", ownedByDaemonSet)}, want: outcome{Left: 2, Next: 30 * time.Second}},
		"Protected": {reason: "do-not-disrupt is not evicted and holds later groups back; its own group goes on",
			pods: []*corev1.Pod{drainPod("a", protected), drainPod("b"), drainPod("d", ownedByDaemonSet)},
			want: outcome{Evict: []string{"b"}, Blocked: []string{"a DoNotDisrupt karpenter.sh/do-not-disrupt"}, Left: 3}},
		"ProtectedForAWhile": {reason: "a duration counts from the pod's start",
			pods: []*corev1.Pod{drainPod("a", annotated(karpv1.DoNotDisruptAnnotationKey, "90m"))},
			want: outcome{Blocked: []string{"a DoNotDisrupt karpenter.sh/do-not-disrupt"}, Left: 1, Next: 30 * time.Minute}},
		"NoLongerProtected": {reason: "a duration that has passed protects nothing", pods: []*corev1.Pod{drainPod("a", annotated(karpv1.DoNotDisruptAnnotationKey, "30m"))}, want: outcome{Evict: []string{"a"}, Left: 1}},
		"WrongAnnotation":   {reason: "a value that is neither true nor a duration is ignored", pods: []*corev1.Pod{drainPod("a", annotated(karpv1.DoNotDisruptAnnotationKey, "yes"))}, want: outcome{Evict: []string{"a"}, Left: 1}},
		"OldAnnotation": {reason: "do-not-evict is still honoured", pods: []*corev1.Pod{drainPod("a", annotated(karpv1.DoNotEvictAnnotationKey, "true"))},
			want: outcome{Blocked: []string{"a DoNotDisrupt karpenter.sh/do-not-evict"}, Left: 1}},
		"TerminalIsNothing": {reason: "a pod that has ended is not moved, protected or not",
			pods: []*corev1.Pod{drainPod("a", protected, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}},
		"ToleratesCordon":       {reason: "a pod that tolerates the taint would come back", pods: []*corev1.Pod{drainPod("a", tolerating(exists))}, want: outcome{Staying: []string{"a"}}},
		"ToleratesNoExecute":    {reason: "tolerating another effect is not tolerating the cordon", pods: []*corev1.Pod{drainPod("a", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}))}, want: outcome{Evict: []string{"a"}, Left: 1}},
		"ForeignDaemon":         {reason: "on an ordinary cordon DaemonSet pods stay", cordon: &unschedulable, pods: []*corev1.Pod{drainPod("a", ownedByDaemonSet, tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}))}, want: outcome{Staying: []string{"a"}}},
		"Mirror":                {reason: "static pods belong to the kubelet", pods: []*corev1.Pod{drainPod("a", annotated(corev1.MirrorPodAnnotationKey, "x"))}, want: outcome{Staying: []string{"a"}}},
		"OwnedByNode":           {reason: "static pods belong to the kubelet", pods: []*corev1.Pod{drainPod("a", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "node"}} })}, want: outcome{Staying: []string{"a"}}},
		"Stuck":                 {reason: "a minute after its end a pod no longer counts", pods: []*corev1.Pod{drainPod("a", deleted(-61*time.Second, 30)), drainPod("d", ownedByDaemonSet)}, want: outcome{Evict: []string{"d"}, Staying: []string{"a"}, Left: 1}},
		"Overdue":               {reason: "a pod past its end is named before it no longer counts", pods: []*corev1.Pod{drainPod("a", deleted(-15*time.Second, 30))}, want: outcome{Blocked: []string{"a Terminating kubelet"}, Left: 1, Next: 45 * time.Second}},
		"OverdueFinalizer":      {reason: "the finalizer is named", pods: []*corev1.Pod{drainPod("a", deleted(-15*time.Second, 30), func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} })}, want: outcome{Blocked: []string{"a Terminating example.com/hold"}, Left: 1, Next: 45 * time.Second}},
		"LongGrace":             {reason: "a long grace period is worth a word", pods: []*corev1.Pod{drainPod("a", deleted(10*time.Minute, 600))}, want: outcome{Blocked: []string{"a Terminating terminationGracePeriodSeconds"}, Left: 1, Next: 10*time.Minute + 10*time.Second}},
		"DeadlineFar":           {reason: "a deadline that is far changes nothing, but when", pods: []*corev1.Pod{drainPod("a")}, deadline: time.Hour, want: outcome{Evict: []string{"a"}, Left: 1, Next: time.Hour - 30*time.Second}},
		"DeadlineNear":          {reason: "a pod that would outlive the deadline is deleted with what is left", pods: []*corev1.Pod{drainPod("a")}, deadline: 20 * time.Second, want: outcome{Delete: []string{"a 20s"}, Left: 1}},
		"DeadlineEqual":         {reason: "a pod that just fits is still evicted", pods: []*corev1.Pod{drainPod("a")}, deadline: 30 * time.Second, want: outcome{Evict: []string{"a"}, Left: 1}},
		"DeadlinePerPod":        {reason: "each pod has its own last moment", pods: []*corev1.Pod{drainPod("a", withGrace(600)), drainPod("b")}, deadline: 5 * time.Minute, want: outcome{Evict: []string{"b"}, Delete: []string{"a 5m0s"}, Left: 2, Next: 4*time.Minute + 30*time.Second}},
		"DeadlineBeatsAll":      {reason: "the deadline overrides protection and the order of groups", pods: []*corev1.Pod{drainPod("a", protected), drainPod("c", criticalClass)}, deadline: 10 * time.Second, want: outcome{Delete: []string{"a 10s", "c 10s"}, Left: 2}},
		"DeadlinePast":          {reason: "never less than a second of grace", pods: []*corev1.Pod{drainPod("a", withGrace(0))}, deadline: -time.Minute, want: outcome{Delete: []string{"a 1s"}, Left: 1}},
		"DeadlineFraction":      {reason: "grace is in whole seconds and ends before the deadline", pods: []*corev1.Pod{drainPod("a")}, deadline: 2500 * time.Millisecond, want: outcome{Delete: []string{"a 2s"}, Left: 1}},
		"TerminatingTooLong":    {reason: "a deletion that would end after the deadline is shortened", pods: []*corev1.Pod{drainPod("a", deleted(10*time.Minute, 600))}, deadline: time.Minute, want: outcome{Delete: []string{"a 1m0s"}, Left: 1}},
		"TerminatingInTime":     {reason: "a deletion that ends in time is left alone", pods: []*corev1.Pod{drainPod("a", deleted(30*time.Second, 30))}, deadline: time.Minute, want: outcome{Left: 1, Next: 40 * time.Second}},
		"TerminatingAtDeadline": {reason: "what was deleted with the least grace is not deleted again", pods: []*corev1.Pod{drainPod("a", deleted(time.Second, 1))}, deadline: -time.Second, want: outcome{Left: 1, Next: 11 * time.Second}},
		"ToleratesAtDeadline":   {reason: "pods that stay are left alone by the deadline too", pods: []*corev1.Pod{drainPod("a", tolerating(exists))}, deadline: -time.Minute, want: outcome{Staying: []string{"a"}}},
		"LargeFirst": {reason: "what takes a fourth of the cores or of the memory is placed before the others", smallWait: 6 * time.Second,
			pods: []*corev1.Pod{drainPod("a", requesting("100m", "1Gi")), drainPod("b", requesting("1", "1Gi")), drainPod("c", requesting("100m", "2Gi")), drainPod("d", requesting("999m", "2047Mi"))},
			want: outcome{Evict: []string{"b", "c"}, Left: 4, Next: 6 * time.Second}},
		"RareFirst": {reason: "what needs a device is hard to place", smallWait: 6 * time.Second, pods: []*corev1.Pod{drainPod("a", requesting("100m", "1Gi", "nvidia.com/gpu"))}, want: outcome{Evict: []string{"a"}, Left: 1}},
		"SmallLater": {reason: "the others follow when they have waited", smallWait: -time.Nanosecond,
			pods: []*corev1.Pod{drainPod("a", requesting("100m", "1Gi"))}, want: outcome{Evict: []string{"a"}, Left: 1}},
		"SmallAtDeadline": {reason: "nobody waits beyond the deadline", smallWait: 6 * time.Second, deadline: 20 * time.Second,
			pods: []*corev1.Pod{drainPod("a", requesting("100m", "1Gi"))}, want: outcome{Delete: []string{"a 20s"}, Left: 1}},
		"Forced": {reason: "force is the deadline, now", pods: []*corev1.Pod{drainPod("a", protected), drainPod("d", ownedByDaemonSet), drainPod("e", deleted(25*time.Second, 30))}, force: true, deadline: 2 * time.Minute, want: outcome{Delete: []string{"a 1s", "e 1s", "d 1s"}, Left: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terms := plan.DrainTerms{Now: drainNow, Force: test.force, Cordon: karpv1.DisruptedNoScheduleTaint(),
				Allocatable: plan.Resources{CPU: 4000, Memory: 8 << 30}}
			if test.smallWait != 0 {
				terms.SmallFrom = drainNow.Add(test.smallWait)
			}
			if test.deadline != 0 {
				terms.Deadline = drainNow.Add(test.deadline)
			}
			if test.cordon != nil {
				terms.Cordon = *test.cordon
			}
			if diff := cmp.Diff(test.want, drainOutcome(drainStep(test.pods, terms))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// anyDrainPod draws a pod in any state a drain can meet.
func anyDrainPod(t *rapid.T, i int) *corev1.Pod {
	pod := drainPod(fmt.Sprintf("p%02d", i), withGrace(rapid.Int64Range(0, 900).Draw(t, "grace")))
	for label, edit := range map[string]func(*corev1.Pod){"critical": criticalClass, "daemon": ownedByDaemonSet, "protected": protected,
		"tolerates": tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}),
		"terminal":  func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }} {
		if rapid.IntRange(0, 3).Draw(t, label) == 0 {
			edit(pod)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
		deleted(time.Duration(rapid.Int64Range(-90, 900).Draw(t, "ends"))*time.Second, rapid.Int64Range(0, 900).Draw(t, "deletionGrace"))(pod)
	}
	return pod
}

func TestDrainProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pods []*corev1.Pod
		for i := range rapid.IntRange(0, 12).Draw(t, "pods") {
			pods = append(pods, anyDrainPod(t, i))
		}
		terms := plan.DrainTerms{Now: drainNow, Cordon: karpv1.DisruptedNoScheduleTaint(), Force: rapid.IntRange(0, 5).Draw(t, "force") == 0}
		if rapid.Bool().Draw(t, "hasDeadline") {
			terms.Deadline = drainNow.Add(time.Duration(rapid.Int64Range(-60, 1200).Draw(t, "deadline")) * time.Second)
		}
		step := drainStep(pods, terms)

		rank := func(p plan.DrainPod) int {
			return map[bool]int{true: 1}[p.Daemon] + 2*map[bool]int{true: 1}[p.Critical]
		}
		for _, pod := range step.Evict {
			if pod.Undisruptable(terms.Now) || pod.Terminal || pod.Terminating() {
				t.Fatalf("evicts %s, which must not be asked for", pod.Name)
			}
			if rank(pod) != rank(step.Evict[0]) {
				t.Fatalf("evicts pods of two groups")
			}
		}
		for _, pod := range step.Delete {
			if terms.Deadline.IsZero() && !terms.Force {
				t.Fatalf("deletes %s without a deadline", pod.Pod.Name)
			}
			if pod.Grace < time.Second || pod.Grace%time.Second != 0 {
				t.Fatalf("deletes %s with grace %s", pod.Pod.Name, pod.Grace)
			}
			inTime := terms.Now.Add(pod.Pod.GracePeriod)
			if pod.Pod.Terminating() {
				inTime = pod.Pod.Deletion
			}
			if !terms.Force && !inTime.After(terms.Deadline) && terms.Now.Before(terms.Deadline) {
				t.Fatalf("deletes %s, which would end in time", pod.Pod.Name)
			}
		}
		if !step.Next.IsZero() && !step.Next.After(terms.Now) {
			t.Fatalf("wakes at %s, which is past", step.Next)
		}
		if step.Left == 0 && len(step.Evict)+len(step.Delete)+len(step.Blocks) > 0 {
			t.Fatalf("nothing is left, but %+v", step)
		}
		shuffled := rapid.Permutation(pods).Draw(t, "shuffled")
		again := drainOutcome(drainStep(shuffled, terms))
		want := drainOutcome(step)
		slices.Sort(again.Staying)
		slices.Sort(want.Staying)
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("the order of the pods matters (-sorted +shuffled):\n%s", diff)
		}
	})
}

// TestDrainEnds simulates a drain whose pods end when told to: it must finish, in the order of the groups.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pods := map[types.UID]*corev1.Pod{}
		for i := range rapid.IntRange(1, 10).Draw(t, "pods") {
			pod := anyDrainPod(t, i)
			pods[pod.UID] = pod
		}
		terms := plan.DrainTerms{Now: drainNow, Deadline: drainNow.Add(20 * time.Minute), Cordon: karpv1.DisruptedNoScheduleTaint()}
		for range 200 {
			var now []*corev1.Pod
			for _, pod := range pods {
				now = append(now, pod)
			}
			step := drainStep(now, terms)
			if step.Left == 0 {
				return
			}
			for _, pod := range step.Evict {
				delete(pods, pod.UID)
			}
			for _, pod := range step.Delete {
				delete(pods, pod.Pod.UID)
			}
			if len(step.Evict)+len(step.Delete) > 0 {
				continue
			}
			if step.Next.IsZero() {
				t.Fatalf("%d pods are left and nothing will ever change: %+v", step.Left, drainOutcome(step))
			}
			terms.Now = step.Next
		}
		t.Fatal("the drain does not end")
	})
}
