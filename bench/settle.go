package main

import (
	"math"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/cloud"
)

// plain reports whether only size matters for every pod, so that it may go wherever there is room.
func plain(q *compare.Question) bool {
	return len(q.Nodes) == 0 && !slices.ContainsFunc(q.Pods, func(p *corev1.Pod) bool {
		return p.Spec.Affinity != nil || len(p.Spec.NodeSelector)+len(p.Spec.TopologySpreadConstraints)+len(p.Spec.Volumes)+len(p.Spec.Tolerations) > 0 ||
			len(p.Spec.Containers[0].Resources.Requests) > 2
	})
}

// settledPrice returns the final price of a question, planned without a strategy, when the kube-scheduler is not told where
// pods are to go: it binds them freely to the nodes that were bought, and more are bought for those that find no room.
func settledPrice(q *compare.Question, without string) spent {
	untold := *q
	untold.NotNominated = true
	var result spent
	for len(untold.Pods) > 0 {
		a, took := tenon.PlanWithout(&untold, without)
		result.cost += a.Cost()
		result.took += took
		if result.unplaced = len(a.Unplaced); len(a.Machines) == 0 {
			break
		}
		untold.Pods = bind(&untold, a.Machines)
	}
	return result
}

// host is a node and its number of pods of each app.
type host struct {
	size, free [3]float64
	apps       map[string]int
}

// bind places the pods as the kube-scheduler would, in random order, and returns those that find no room. Of the nodes with
// room it takes the one with the best sum of scores: how much is left (NodeResourcesFit), how equal the shares in use are
// (NodeResourcesBalancedAllocation), and, twice, how few pods of the same app there are (PodTopologySpread by default).
func bind(q *compare.Question, machines []compare.Machine) []*corev1.Pod {
	hosts := make([]host, len(machines))
	for i, m := range machines {
		at := slices.IndexFunc(q.Types[m.Pool], func(t *cloud.InstanceType) bool { return t.Name == m.Types[0] })
		hosts[i] = host{size: amounts(q.Types[m.Pool][at].Allocatable), apps: map[string]int{}}
		hosts[i].free = hosts[i].size
		for _, set := range q.DaemonSets {
			hosts[i].take(requests(&set.Spec.Template.Spec))
		}
	}
	var left []*corev1.Pod
	random := rand.New(rand.NewPCG(1, uint64(len(q.Pods))))
	for _, at := range random.Perm(len(q.Pods)) {
		pod := q.Pods[at]
		asks, app := requests(&pod.Spec), owner(pod)
		crowd := 1.0
		for i := range hosts {
			crowd = max(crowd, float64(hosts[i].apps[app]))
		}
		best, highest := -1, math.Inf(-1)
		for i := range hosts {
			score := hosts[i].score(asks) + 2*(1-float64(hosts[i].apps[app])/crowd)
			if score > highest {
				best, highest = i, score
			}
		}
		if best < 0 {
			left = append(left, pod)
			continue
		}
		hosts[best].take(asks)
		hosts[best].apps[app]++
	}
	return left
}

func (h *host) take(asks [3]float64) {
	for d := range asks {
		h.free[d] -= asks[d]
	}
}

// score returns the score of the node's resources; minus infinity if there is no room.
func (h *host) score(asks [3]float64) float64 {
	for d := range asks {
		if asks[d] > h.free[d] {
			return math.Inf(-1)
		}
	}
	cpu, memory := (h.free[0]-asks[0])/h.size[0], (h.free[1]-asks[1])/h.size[1]
	return (cpu+memory)/2 + 1 - math.Abs(cpu-memory)/2
}

func owner(p *corev1.Pod) string {
	if len(p.OwnerReferences) == 0 {
		return p.Name
	}
	return p.OwnerReferences[0].Name
}

// requests returns the cores, the bytes of memory, and one for the pod itself.
func requests(spec *corev1.PodSpec) [3]float64 {
	asks := amounts(spec.Containers[0].Resources.Requests)
	asks[2] = 1
	return asks
}

func amounts(list corev1.ResourceList) [3]float64 {
	return [3]float64{list.Cpu().AsApproximateFloat64(), list.Memory().AsApproximateFloat64(), list.Pods().AsApproximateFloat64()}
}
