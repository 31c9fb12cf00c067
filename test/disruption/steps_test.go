package disruption_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// deploy makes workloads and waits until their pods run.
func deploy(all ...workload) step {
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
		p.run()
	}
}

// run waits until the pods of every workload run and are ready.
func (p *play) run() {
	p.T.Helper()
	p.Await("the pods run", p.within(), func() (bool, string) {
		desired := maps.Clone(p.desired)
		for _, name := range p.daemons {
			desired[name] = len(p.nodes())
		}
		for name, want := range desired {
			ready := 0
			pods := p.pods(name)
			for i := range pods {
				if readyPod(&pods[i]) {
					ready++
				}
			}
			if ready != want || len(pods) != want {
				return false, fmt.Sprintf("%d of %d pods of %s are ready, want %d", ready, len(pods), name, want)
			}
		}
		return true, ""
	})
}

func readyPod(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// create makes objects, with SCENE.
func create(manifests string) step {
	return func(p *play) {
		p.T.Helper()
		p.create(manifests)
	}
}

// scale sets the number of a Deployment's pods, and waits until so many run.
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

// serve waits until so many nodes serve, none is on its way in or out, and every pod runs.
func serve(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("%d nodes serve", want), p.within(), func() (bool, string) {
			serving := 0
			for _, l := range p.view.of(p.name) {
				if l.gone {
					continue
				}
				if !l.initialized || l.going || l.tainted {
					return false, ""
				}
				serving++
			}
			return serving == want && len(p.nodes()) == want, ""
		})
		p.run()
	}
}

// mark remembers the claims that are there.
func mark(p *play) {
	p.marked = map[string]bool{}
	for _, l := range p.view.of(p.name) {
		if !l.gone {
			p.marked[l.claim] = true
		}
	}
}

// opened lets the NodePools consolidate after a while.
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

// sell has the scenario's first NodePool sell what another would, from now on.
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

// on does something with each node that a workload is on.
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

// patchPods changes the pods of a workload that are there by merge patch. The Deployment does not learn of it.
func patchPods(workload, patch string) step {
	return func(p *play) {
		p.T.Helper()
		for _, pod := range p.pods(workload) {
			p.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.name}}, pod.Name, patch)
		}
	}
}

// markedNodes are the nodes of the marked claims.
func (p *play) markedNodes() []string {
	var nodes []string
	for _, l := range p.view.of(p.name) {
		if p.marked[l.claim] && l.node != "" {
			nodes = append(nodes, l.node)
		}
	}
	return nodes
}

// everyNode is for keeps: all nodes that were marked.
const everyNode = ""

// keeps waits until tenon why node says of every node that a workload is on that it stays, as far as a reason goes, for a
// cause (or one of several, with | between), in words that hold some text. None of the nodes may have gone meanwhile, or
// be going.
func keeps(workload, reason, cause, text string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("the verdict %s on %s", cause, reason), p.within(), func() (bool, string) {
			p.untouched()
			var hosts []string
			if workload == everyNode {
				hosts = p.markedNodes()
			} else {
				hosts = p.hosts(workload)
			}
			for _, host := range hosts {
				if verdicts := p.why(host); !slices.ContainsFunc(verdicts, func(v workflows.NodeVerdict) bool {
					return v.Reason == reason && slices.Contains(strings.Split(cause, "|"), v.Cause) && strings.Contains(v.Message, text)
				}) {
					return false, fmt.Sprintf("%s: %+v", host, verdicts)
				}
			}
			return len(hosts) > 0, "no nodes"
		})
		p.untouched()
	}
}

// untouched fails the scenario if one of the marked nodes is going.
func (p *play) untouched() {
	p.T.Helper()
	for _, l := range p.view.of(p.name) {
		if p.marked[l.claim] && (l.going || l.tainted) {
			p.T.Fatalf("node %s is taken away (%s) although it is to stay", l.node, l.reason)
		}
	}
}

// told waits until an Event with a reason says some text of the scenario's objects.
func told(reason, text string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("the Event "+reason, p.within(), func() (bool, string) {
			said := p.events(reason)
			return slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, text) }), fmt.Sprintf("%q", said)
		})
	}
}

// replaced waits until no marked node is left and so many others serve.
func replaced(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("the marked nodes gone", p.within(), func() (bool, string) {
			for _, l := range p.view.of(p.name) {
				if p.marked[l.claim] && !l.gone {
					return false, ""
				}
			}
			return true, ""
		})
		serve(want)(p)
	}
}

// stays waits until so many nodes serve, and all pods are on nodes that were marked.
func stays(want int) step {
	return func(p *play) {
		p.T.Helper()
		serve(want)(p)
		for _, l := range p.view.of(p.name) {
			if !p.marked[l.claim] {
				p.T.Errorf("node %s was launched although there was room", l.node)
			}
		}
	}
}

// begun waits until so many nodes are on their way out.
func begun(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("%d nodes on their way out", want), p.within(), func() (bool, string) {
			count := 0
			for _, l := range p.view.of(p.name) {
				if !l.began.IsZero() {
					count++
				}
			}
			return count >= want, ""
		})
	}
}

// undone waits until the taint was taken off a node again and nothing else is on its way.
func undone(p *play) {
	p.T.Helper()
	p.Await("the replacement undone", p.within(), func() (bool, string) {
		undone := 0
		for _, l := range p.view.of(p.name) {
			undone += l.undone
			if p.marked[l.claim] && (l.tainted || l.going) {
				return false, ""
			}
		}
		return undone > 0, ""
	})
}

// notBefore holds that no node began to go earlier than so long after the last step that set the time.
func notBefore(after time.Duration) step {
	return func(p *play) {
		p.T.Helper()
		for _, l := range p.view.of(p.name) {
			if !l.began.IsZero() && l.began.Sub(p.at) < after {
				p.T.Errorf("node %s went %s after, want at least %s", l.node, l.began.Sub(p.at), after)
			}
		}
	}
}

// preSpun holds that every marked node left only after all that replaces it served.
func preSpun(p *play) {
	p.T.Helper()
	lives := p.view.of(p.name)
	for _, old := range lives {
		if !p.marked[old.claim] || !old.gone {
			continue
		}
		replacements := 0
		for _, l := range lives {
			if l.replaces == "" || l.replaces != old.replacedBy {
				continue
			}
			if replacements++; l.served.IsZero() || l.served.After(old.left) {
				p.T.Errorf("claim %s left before %s served, which replaces it", old.claim, l.claim)
			}
		}
		if replacements == 0 {
			p.T.Errorf("nothing was launched to replace %s before it left", old.claim)
		}
	}
}

// have holds that every node has one of the values of a label.
func have(key string, values ...string) step {
	return func(p *play) {
		p.T.Helper()
		for _, n := range p.nodes() {
			if !slices.Contains(values, n.Labels[key]) {
				p.T.Errorf("node %s has %s=%s, want one of %v", n.Name, key, n.Labels[key], values)
			}
		}
	}
}

// spread holds that the pods of a workload are spread over the values of a label of their nodes, so many on each.
func spread(workload, key string, want ...int) step {
	return func(p *play) {
		p.T.Helper()
		labels, count := map[string]string{}, map[string]int{}
		for _, n := range p.nodes() {
			labels[n.Name] = n.Labels[key]
		}
		for _, pod := range p.pods(workload) {
			count[labels[pod.Spec.NodeName]]++
		}
		if got := slices.SortedFunc(maps.Values(count), func(a, b int) int { return b - a }); !slices.Equal(got, want) {
			p.T.Errorf("the pods of %s are spread %v over %s, want %v", workload, count, key, want)
		}
	}
}

// launch makes workloads without waiting for their pods.
func launch(all ...workload) step {
	return func(p *play) {
		p.T.Helper()
		for _, next := range all {
			p.create(next.manifest(p.name))
			p.desired[next.name] = next.count
		}
	}
}

// running waits until all pods run.
func running(p *play) {
	p.T.Helper()
	p.run()
}

// claims waits until so many claims have been made.
func claims(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("%d claims", want), p.within(), func() (bool, string) {
			return len(p.view.of(p.name)) >= want, ""
		})
	}
}

// gone waits until so many claims are no more.
func gone(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("%d claims gone", want), p.within(), func() (bool, string) {
			count := 0
			for _, l := range p.view.of(p.name) {
				if l.gone {
					count++
				}
			}
			return count >= want, ""
		})
	}
}

// aged waits until every node has served for so long.
func aged(age time.Duration) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("the nodes are %s old", age), p.within(), func() (bool, string) {
			for _, l := range p.view.of(p.name) {
				if l.served.IsZero() || time.Since(l.served) < age {
					return false, ""
				}
			}
			return true, ""
		})
	}
}

// peak holds how many nodes of the scenario's first NodePool were disrupted at once, at most.
func peak(want int) step {
	return func(p *play) {
		p.T.Helper()
		if got := p.ledger.peak(p.pools[0].name(p.name)); got != want {
			p.T.Errorf("at most %d nodes were disrupted at once, want %d", got, want)
		}
	}
}

// release waits until so many nodes have registered, and takes the taint starting off them as the agent it waits for
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

// unhold takes the taint starting off all nodes.
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

// drifted waits until every marked node's claim is Drifted for a reason.
func drifted(reason string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("drift: "+reason, p.within(), func() (bool, string) {
			for _, l := range p.view.of(p.name) {
				if p.marked[l.claim] && l.drift != reason {
					return false, fmt.Sprintf("claim %s: %q", l.claim, l.drift)
				}
			}
			return true, ""
		})
	}
}

// zoned holds that the pods of a workload are in a zone.
func zoned(workload, zone string) step {
	return on(workload, func(p *play, node string) {
		p.T.Helper()
		for _, n := range p.nodes() {
			if n.Name == node && n.Labels[zoneKey] != zone {
				p.T.Errorf("%s is in %s, want %s", workload, n.Labels[zoneKey], zone)
			}
		}
	})
}

// halfEmpty sets up so many nodes that could each hold twice what is on them: one pod of web. The NodePool stays closed.
func halfEmpty(nodes int, web workload) []step {
	web.name, web.count = "web", nodes
	return []step{
		deploy(workload{name: "ballast", count: nodes, requests: ballast}), deploy(web), scale("ballast", 0), serve(nodes),
	}
}

// old holds that no marked claim's node began to go before the claim had reached an age.
func old(age time.Duration) step {
	return func(p *play) {
		p.T.Helper()
		for _, l := range p.view.of(p.name) {
			if p.marked[l.claim] && l.began.Sub(l.created) < age {
				p.T.Errorf("node %s went %s after its claim was made, want at least %s", l.node, l.began.Sub(l.created), age)
			}
		}
	}
}
