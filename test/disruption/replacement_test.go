package disruption_test

import (
	"cmp"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// The simulated cloud has no capacity of the first of these types, and machines of the second never become ready. No other
// scenario may buy them.
const refusedType, lameType = "m5ad.large", "m5n.large"

func faults() ec2sim.Faults {
	return ec2sim.Faults{
		Capacity:   []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: refusedType}}},
		NeverReady: []ec2sim.BootFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: lameType}}, lameImage()},
	}
}

// starting keeps a new node from serving until release or releaseOthers.
var starting = []string{"startupTaints: [{key: starting, effect: NoSchedule}]"}

// relabelled makes all nodes of the NodePools drift.
const relabelled = `{"spec":{"template":{"metadata":{"labels":{"version":"two"}}}}}`

// never closes the NodePools again.
const never = `{"spec":{"disruption":{"consolidateAfter":"Never"}}}`

// replacementScenarios are about failures while a node is replaced.
func replacementScenarios() []scenario {
	web := workload{name: "web", count: 1}
	held := []pool{{template: starting}}
	// begin lets a scenario's only node drift, and stops when its replacement is being launched.
	begin := func(further ...step) []step {
		return then([]step{launch(web), release(1), serve(1), mark, changePools(relabelled), begun(1), claims(2)}, further...)
	}
	return []scenario{{
		name: "refused", rule: "a replacement for which the cloud has no capacity is undone, and something else is tried later", pools: []pool{{types: []string{"m5.xlarge"}}},
		steps: []step{deploy(web), sell(pool{types: []string{"m5.xlarge", refusedType}}), opened("0s"), undone, told("DisruptionAborted", ""), untouched,
			sell(pool{types: []string{"m5.xlarge", "m5a.large"}}), replaced(1), have(typeKey, "m5a.large"), preSpun},
		takes: takes{"Underutilized": 1},
	}, {
		name: "never-serves", rule: "a replacement that never serves is undone, and goes again itself", pools: []pool{{types: []string{"m5.xlarge"}}},
		steps: []step{deploy(web), sell(pool{types: []string{"m5.xlarge", lameType}}), opened("0s"), undone, changePools(never), told("DisruptionAborted", ""), untouched, gone(1), serve(1)},
	}, {
		name: "vanishes", rule: "a replacement that somebody deletes is undone", pools: held,
		steps: begin(changePools(`{"spec":{"disruption":{"budgets":[{"nodes":"0"}]}}}`), func(p *play) {
			p.T.Helper()
			for _, l := range p.view.of(p.name) {
				if !p.marked[l.claim] {
					remove(&karpv1.NodeClaim{}, l.claim)(p)
				}
			}
		}, undone, told("DisruptionAborted", ""), gone(1), serve(1)),
	}, {
		name: "protected-meanwhile", rule: "a replacement is undone when a pod is no longer to be disrupted", pools: held,
		steps: begin(patchPods("web", `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`), releaseOthers, undone, told("DisruptionAborted", ""), opened("0s"), serve(1)),
		takes: takes{"Empty": 1},
	}, {
		name: "guarded-meanwhile", rule: "a replacement waits for a PodDisruptionBudget that came meanwhile", pools: held,
		steps: begin(create(pdb("none", "web", "maxUnavailable: 0")), releaseOthers, served(2), func(p *play) {
			p.T.Helper()
			p.patch(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.name}}, "none", `{"spec":{"maxUnavailable":1}}`)
		}, replaced(1), made(2)),
		takes: takes{"Drifted": 1},
	}, {
		name: "candidate-deleted", rule: "a node that somebody deletes while it is being replaced is replaced once", pools: held,
		steps: begin(func(p *play) {
			p.T.Helper()
			for claim := range p.marked {
				remove(&karpv1.NodeClaim{}, claim)(p)
			}
		}, releaseOthers, replaced(1), made(2)),
		takes: takes{"ClaimDeleted": 1},
	}, {
		name: "pool-deleted", rule: "when a NodePool is deleted while a node is being replaced, everything goes", pools: held,
		steps: begin(remove(&karpv1.NodePool{}, "SCENE"), gone(2)),
		takes: takes{"ClaimDeleted": 1},
	}, {
		name: "wait-for-ready", rule: "where moved pods are to be Ready first, nodes of a NodePool go one after the other", pools: []pool{{annotations: `tenon.sh/wait-for-ready: "true"`}},
		steps: []step{deploy(workload{name: "web", count: 2, requests: whole}), mark, changePools(relabelled), replaced(2), preSpun, oneByOne},
		takes: takes{"Drifted": 2},
	}}
}

// releaseOthers lets the unmarked nodes serve, once there is one.
func releaseOthers(p *play) {
	p.T.Helper()
	p.Await("another node registered", p.within(), func() (bool, string) {
		for _, l := range p.view.of(p.name) {
			if p.marked[l.claim] || l.gone {
				continue
			}
			for _, n := range p.nodes() {
				if n.Name == l.node && n.Labels[karpv1.NodeRegisteredLabelKey] == "true" {
					return true, ""
				}
			}
		}
		return false, ""
	})
	p.unhold()
}

// served waits until this many claims have served.
func served(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("claims served", p.within(), func() (bool, string) {
			count := 0
			for _, l := range p.view.of(p.name) {
				if !l.served.IsZero() {
					count++
				}
			}
			return count >= want, ""
		})
	}
}

// made checks how many claims there ever were.
func made(want int) step {
	return func(p *play) {
		p.T.Helper()
		if got := len(p.view.of(p.name)); got != want {
			p.T.Errorf("%d claims were made, want %d", got, want)
		}
	}
}

// oneByOne checks that after each node left and before the next one began to go, a pod that had to move was bound.
func oneByOne(p *play) {
	p.T.Helper()
	var gone []life
	for _, l := range p.view.of(p.name) {
		if p.marked[l.claim] {
			gone = append(gone, l)
		}
	}
	slices.SortFunc(gone, func(a, b life) int { return cmp.Compare(a.beganAt, b.beganAt) })
	for i, l := range gone[1:] {
		if !slices.ContainsFunc(p.view.waited(p.name), func(w wait) bool { return w.boundAt > gone[i].leftAt && w.boundAt < l.beganAt }) {
			p.T.Errorf("%s began to go at %s, before a pod of %s, which left at %s, was bound elsewhere", l.claim, l.began, gone[i].claim, gone[i].left)
		}
	}
}
