package disruption_test

import (
	"fmt"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// recorded keeps the history of the scenario's last Replacement for the replay tests, if world.RecordEnv is set.
func recorded(what string) step { return recordedOf(workflows.ReplacementType, what) }

// recordedOf keeps the history of the last workflow of a type that began or, if its type shows one, is for the scenario's
// first NodePool.
func recordedOf(workflowType, what string) step {
	return func(p *play) {
		p.T.Helper()
		if os.Getenv(world.RecordEnv) == "" {
			return
		}
		var runs []world.Run
		p.Await("the list of workflows to know that the workflow has ended", p.within(), func() (bool, string) {
			query := fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Completed'", workflowType)
			if workflowType != workflows.ReplacementOrderType {
				query += fmt.Sprintf(" AND NodePool = %q", p.pools[0].name(p.name))
			}
			runs = p.Runs(query)
			return len(runs) > 0, "none has"
		})
		p.Record(runs[0], what)
	}
}

// deploy creates workloads and waits until their pods run.
func deploy(all ...workload) step {
	return func(p *play) {
		p.T.Helper()
		launch(all...)(p)
		p.run()
	}
}

// launch creates workloads without waiting for their pods.
func launch(all ...workload) step {
	return func(p *play) {
		p.T.Helper()
		for _, next := range all {
			p.create(next.manifest(p.name))
			if next.daemon {
				p.daemons = append(p.daemons, next.name)
			} else {
				p.desired[next.name] = next.count
			}
		}
	}
}

// scale sets the number of a Deployment's pods, and waits until that many run.
func scale(name string, replicas int) step {
	return func(p *play) {
		p.T.Helper()
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.name}}
		p.patch(deployment, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		p.desired[name] = replicas
		p.at = time.Now()
		p.run()
	}
}

// halfEmpty sets up nodes that could each hold twice what is on them: one pod of web. The NodePool stays closed.
func halfEmpty(nodes int, web workload) []step {
	web.name, web.count = "web", nodes
	return []step{
		deploy(workload{name: "ballast", count: nodes, requests: ballast}), deploy(web), scale("ballast", 0), serve(nodes),
	}
}

// create applies manifests, in which SCENE stands for the scenario's name.
func create(manifests string) step {
	return func(p *play) {
		p.T.Helper()
		p.create(manifests)
	}
}

// mark marks the existing claims.
func mark(p *play) {
	p.marked = map[string]bool{}
	for _, l := range p.view.of(p.name) {
		if !l.gone {
			p.marked[l.claim] = true
		}
	}
}

// opened marks the existing claims and sets the consolidateAfter of all NodePools.
func opened(after string) step {
	return func(p *play) {
		p.T.Helper()
		mark(p)
		p.at = time.Now()
		changePools(`{"spec":{"disruption":{"consolidateAfter":"` + after + `"}}}`)(p)
	}
}

// changePools changes all NodePools of the scenario by merge patch.
func changePools(patch string) step {
	return func(p *play) {
		p.T.Helper()
		for _, next := range p.pools {
			p.patch(&karpv1.NodePool{}, next.name(p.name), patch)
		}
	}
}

// sell changes the requirements of the scenario's first NodePool to those of another.
func sell(other pool) step {
	return func(p *play) {
		p.T.Helper()
		requirements, err := yaml.ToJSON([]byte(other.required()))
		if err != nil {
			p.T.Fatal(err)
		}
		p.patch(&karpv1.NodePool{}, p.pools[0].name(p.name), `{"spec":{"template":{"spec":{"requirements":`+string(requirements)+`}}}}`)
	}
}

// remove deletes an object of the scenario's namespace or a cluster-wide one.
func remove(object client.Object, name string) step {
	return func(p *play) {
		p.T.Helper()
		doomed := object.DeepCopyObject().(client.Object)
		doomed.SetName(p.fill(name))
		switch doomed.(type) {
		case *karpv1.NodePool, *karpv1.NodeClaim, *corev1.Node:
		default:
			doomed.SetNamespace(p.name)
		}
		if err := p.Delete(p.Context(), doomed); err != nil {
			p.T.Fatal(err)
		}
	}
}

// relax deletes a PodDisruptionBudget.
func relax(name string) step { return remove(&policyv1.PodDisruptionBudget{}, name) }

// on does something with each node that runs pods of a workload.
func on(workload string, act func(p *play, node string)) step {
	return func(p *play) {
		p.T.Helper()
		hosts := p.hosts(workload)
		if len(hosts) == 0 {
			p.T.Fatalf("no node has pods of %s", workload)
		}
		for _, host := range hosts {
			act(p, host)
		}
	}
}

// patchNode changes a node by merge patch.
func patchNode(patch string) func(*play, string) {
	return func(p *play, node string) {
		p.T.Helper()
		p.patch(&corev1.Node{}, node, patch)
	}
}

// patchPods changes the existing pods of a workload by merge patch. The Deployment stays unchanged.
func patchPods(workload, patch string) step {
	return func(p *play) {
		p.T.Helper()
		for _, pod := range p.pods(workload) {
			p.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.name}}, pod.Name, patch)
		}
	}
}

// release waits until this many nodes have registered, and removes the taint starting from them, as the agent that sets it
// would.
func release(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("%d nodes registered", want), p.within(), func() (bool, string) {
			registered := 0
			for _, n := range p.nodes() {
				if n.Labels[karpv1.NodeRegisteredLabelKey] == "true" {
					registered++
				}
			}
			return registered == want, fmt.Sprintf("%d of %d", registered, want)
		})
		p.unhold()
	}
}

// unhold removes the taint starting from all nodes.
func (p *play) unhold() {
	p.T.Helper()
	for _, n := range p.nodes() {
		p.Await("the taint off", p.within(), func() (bool, string) {
			fresh := &corev1.Node{}
			if err := p.Get(p.Context(), client.ObjectKey{Name: n.Name}, fresh); err != nil {
				return apierrors.IsNotFound(err), err.Error()
			}
			before := fresh.DeepCopy()
			fresh.Spec.Taints = slices.DeleteFunc(fresh.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "starting" })
			err := p.Patch(p.Context(), fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			return err == nil, fmt.Sprint(err)
		})
	}
}
