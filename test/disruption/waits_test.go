package disruption_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/workflows"
)

// run waits until the pods of every workload are ready.
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

// running waits until all pods run.
func running(p *play) {
	p.T.Helper()
	p.run()
}

func readyPod(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// serve waits until this many nodes serve, none is starting or leaving, and every pod runs.
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

// replaced waits until no marked node is left and this many others serve.
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

// begun waits until this many nodes are being removed.
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

// undone waits until the taint was removed from a node again and no marked node is being removed.
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

// claims waits until this many claims have been made.
func claims(want int) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("%d claims", want), p.within(), func() (bool, string) {
			return len(p.view.of(p.name)) >= want, ""
		})
	}
}

// gone waits until this many claims no longer exist.
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

// aged waits until every node has served for this long.
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

// everyNode as a workload of keeps means all marked nodes.
const everyNode = ""

// keeps waits until tenon why node says of every node that runs a workload that, for a reason, a cause (or one of several,
// separated by |) keeps it, in a message that contains a text. It fails if a marked node has gone meanwhile or is being
// removed.
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

// markedNodes returns the nodes of the marked claims.
func (p *play) markedNodes() []string {
	var nodes []string
	for _, l := range p.view.of(p.name) {
		if p.marked[l.claim] && l.node != "" {
			nodes = append(nodes, l.node)
		}
	}
	return nodes
}

// ended waits until no pod of a workload exists: a terminating pod still takes up its room.
func ended(workload string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("the end of "+workload, p.within(), func() (bool, string) {
			var list corev1.PodList
			if err := p.view.List(p.Context(), &list, client.InNamespace(p.name), client.MatchingLabels{"app": workload}); err != nil {
				return false, err.Error()
			}
			return len(list.Items) == 0, fmt.Sprintf("%d pods", len(list.Items))
		})
	}
}

// fits waits until a CapacityBuffer has all its room.
func fits(buffer string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("room for "+buffer, p.within(), func() (bool, string) {
			var found bufferv1.CapacityBuffer
			if err := p.Get(p.Context(), client.ObjectKey{Namespace: p.name, Name: buffer}, &found); err != nil {
				return false, err.Error()
			}
			fits := slices.ContainsFunc(found.Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == bufferv1.ConditionProvisioning && c.Reason == bufferv1.ReasonFitsExistingCapacity
			})
			return fits, fmt.Sprint(found.Status.Conditions)
		})
	}
}

// keepsOne is like keeps, for at least one of the marked nodes.
func keepsOne(reason, cause, text string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await(fmt.Sprintf("the verdict %s on %s of some node", cause, reason), p.within(), func() (bool, string) {
			p.untouched()
			for _, node := range p.markedNodes() {
				for _, v := range p.why(node) {
					if v.Reason == reason && slices.Contains(strings.Split(cause, "|"), v.Cause) && strings.Contains(v.Message, text) {
						return true, ""
					}
				}
			}
			return false, fmt.Sprint(p.answers)
		})
	}
}

// told waits until an Event with a reason about one of the scenario's objects contains a text.
func told(reason, text string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("the Event "+reason, p.within(), func() (bool, string) {
			said := p.events(reason)
			return slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, text) }), fmt.Sprintf("%q", said)
		})
	}
}
