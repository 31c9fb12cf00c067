package cluster

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A DaemonSet takes from a node what its newest pod requests; without pods, what its template and the LimitRanges of
// its namespace say.
func TestDaemonSetsTakeWhatTheirPodsDo(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "uid-agent"}}
	set.Spec.Template.Spec = corev1.PodSpec{NodeSelector: map[string]string{"kind": "worker"}, Containers: []corev1.Container{{Name: "main"}}}
	server.put("daemonsets", set)
	m := runMirror(t, server, Options{})
	takes := func(why, want string) {
		t.Helper()
		eventually(t, why+": the DaemonSet takes "+want, func() bool {
			sets := m.Snapshot().DaemonSets
			return len(sets) == 1 && sets[0].Class.Requests.String() == want && sets[0].Class.NodeSelector["kind"] == "worker" && sets[0].Class.NodeAffinity == nil
		})
	}
	daemon := func(name, cpu string, age time.Duration) *corev1.Pod {
		return testPod(name, "n", ownedBy("DaemonSet", "agent"), func(pod *corev1.Pod) {
			pod.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000, 0).Add(-age))
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}}}}}}
		})
	}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}}
	elsewhere := limits.DeepCopy()
	elsewhere.Namespace = "other"

	takes("nothing is said", "pods 1")
	server.put("limitranges", elsewhere)
	server.put("limitranges", limits)
	takes("a LimitRange of its namespace", "cpu 2, pods 1")
	server.put("pods", daemon("old", "3", time.Hour))
	takes("a pod lives", "cpu 3, pods 1")
	server.put("pods", daemon("new", "4", time.Minute))
	takes("a newer one", "cpu 4, pods 1")
	server.put("pods", daemon("oldest", "5", 2*time.Hour))
	other := daemon("of-another", "6", 0)
	other.Namespace, other.UID = "other", types.UID("uid-other")
	server.put("pods", other)
	resized := daemon("new", "7", time.Minute)
	server.put("pods", resized)
	takes("the newest was resized; others do not matter", "cpu 7, pods 1")
	before := m.Snapshot().DaemonSets[0]
	server.put("pods", testPod("web", "n"))
	eventually(t, "the pod is seen", func() bool { return m.Pod("default", "web") != nil })
	if m.Snapshot().DaemonSets[0] != before {
		t.Error("the DaemonSet is another although nothing about it has changed")
	}
	server.remove("pods", resized)
	takes("the newest is gone", "cpu 3, pods 1")
	server.remove("pods", daemon("old", "3", time.Hour))
	takes("the second is gone", "cpu 5, pods 1")
	server.remove("pods", daemon("oldest", "5", 2*time.Hour))
	takes("none is left", "cpu 2, pods 1")
	server.remove("limitranges", limits)
	takes("nor a LimitRange", "pods 1")
}
