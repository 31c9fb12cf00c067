// Package workload makes the pods and clusters that planners are asked about, always the same from the same seed.
package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/cloud"
)

// moment is the creation time of all pods.
var moment = metav1.NewTime(time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC))

// draw is a random source for the sizes and labels of Karpenter's benchmark.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 42))} }

// one picks a value, with equal probability.
func one[T any](d draw, values ...T) T { return values[d.IntN(len(values))] }

func (d draw) label() string { return one(d, "a", "b", "c", "d", "e", "f", "g") }

func (d draw) requests() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(one[int64](d, 100, 250, 500, 1000, 1500), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(one[int64](d, 100, 256, 512, 1024, 2048, 4096)<<20, resource.BinarySI),
	}
}

// pod returns a pod that the kube-scheduler has found no node for.
func pod(namespace, name string, requests corev1.ResourceList, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), Labels: labels, CreationTimestamp: moment},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/app:1", Resources: corev1.ResourceRequirements{Requests: requests}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
	}
}

// Diverse returns the pods of Karpenter's benchmark, a fifth of each kind: without constraints, spread over zones, spread
// over hosts (both by a selector that need not match the pod itself), with affinity to pods of their kind in a zone, and
// with anti-affinity to all others of the kind on a host.
func Diverse(count int) []*corev1.Pod {
	d := newDraw(7)
	pods := make([]*corev1.Pod, 0, count)
	fifth := count / 5
	for len(pods) < count {
		p := pod("default", fmt.Sprintf("pod-%05d", len(pods)), d.requests(), nil)
		kind := 0
		if fifth > 0 {
			kind = len(pods) / fifth
		}
		switch kind {
		case 1:
			d.spread(p, corev1.LabelTopologyZone)
		case 2:
			d.spread(p, corev1.LabelHostname)
		case 3:
			p.Labels = map[string]string{"my-affinity": d.label()}
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(p.Labels, corev1.LabelTopologyZone)}}}
		case 4:
			p.Labels = map[string]string{"app": "nginx"}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(p.Labels, corev1.LabelHostname)}}}
		default:
			p.Labels = map[string]string{"my-label": d.label()}
		}
		pods = append(pods, p)
	}
	return pods
}

func (d draw) spread(p *corev1.Pod, key string) {
	p.Labels = map[string]string{"my-label": d.label()}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"my-label": d.label()}}}}
}

func term(labels map[string]string, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: key}
}

// Preferring returns the pods of Karpenter's benchmark of preferences, all of one size: they prefer one zone, a zone without
// each other (of which there are too few), and a host without each other.
func Preferring(count int, zone string) []*corev1.Pod {
	d := newDraw(11)
	requests := d.requests()
	labels := map[string]string{"app": "nginx"}
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		p := pod("default", fmt.Sprintf("pod-%05d", i), requests, labels)
		p.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 10, PodAffinityTerm: term(labels, corev1.LabelTopologyZone)},
				{Weight: 1, PodAffinityTerm: term(labels, corev1.LabelHostname)},
			}},
		}
		pods[i] = p
	}
	return pods
}

// Unlimited returns the pool of Karpenter's benchmark: it takes everything, up to limits that are never reached.
func Unlimited() *karpv1.NodePool {
	return Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Limits = karpv1.Limits{
			corev1.ResourceCPU: resource.MustParse("10000000"), corev1.ResourceMemory: resource.MustParse("10000000Gi")}
	})
}

// Pool returns a Ready pool; the functions change it.
func Pool(name string, change ...func(*karpv1.NodePool)) *karpv1.NodePool {
	pool := &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("pool-" + name), Generation: 1},
		Spec: karpv1.NodePoolSpec{
			Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
				ExpireAfter:  karpv1.NewNillableDuration(720 * time.Hour),
			}},
			Disruption: karpv1.Disruption{
				ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized,
				ConsolidateAfter:    karpv1.NewNillableDuration(0),
			},
		},
	}
	for _, condition := range []string{karpv1.ConditionTypeReady, karpv1.ConditionTypeNodeClassReady, karpv1.ConditionTypeValidationSucceeded} {
		pool.Status.Conditions = append(pool.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: condition, ObservedGeneration: pool.Generation, LastTransitionTime: moment})
	}
	for _, c := range change {
		c(pool)
	}
	return pool
}

// Requires returns a change that adds a requirement to a pool.
func Requires(key string, operator corev1.NodeSelectorOperator, values ...string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		spec := &pool.Spec.Template.Spec
		spec.Requirements = append(spec.Requirements,
			karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values})
	}
}

// Ask returns a question about pods in an empty cluster with these pools, all of which buy from one catalogue.
func Ask(name string, pods []*corev1.Pod, catalogue []*cloud.InstanceType, pools ...*karpv1.NodePool) *compare.Question {
	q := &compare.Question{Name: name, Pods: pods, Pools: pools, Types: map[string][]*cloud.InstanceType{}}
	for _, pool := range pools {
		q.Types[pool.Name] = catalogue
	}
	return q
}
