package scheduling_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	zoneKey     = corev1.LabelTopologyZone
	hostKey     = corev1.LabelHostname
	typeKey     = corev1.LabelInstanceTypeStable
	capacityKey = karpv1.CapacityTypeLabelKey
	poolKey     = karpv1.NodePoolLabelKey
)

// outcome is the final state of a scenario.
type outcome struct {
	// ctx and ec2 are for expectations that ask EC2, at this URL.
	ctx context.Context
	ec2 string

	pods  map[string][]corev1.Pod // by workload
	nodes []corev1.Node
	node  map[string]*corev1.Node
	// said is what Tenon reported about pods it found no place for.
	said map[string]string
	// claims are the existing claims, gone the former ones.
	claims, gone []string
	// claimed are the claims themselves.
	claimed []karpv1.NodeClaim
	// expected is the node that each pod was nominated to, by pod.
	expected map[string]string
	// plans are the plans that launched nodes, with the number of nodes.
	plans map[string]int
}

// expectation checks the outcome, and returns an error that describes what is wrong.
type expectation func(*outcome) error

// label returns the value of a label of a pod's node.
func (o *outcome) label(pod *corev1.Pod, key string) string {
	if n := o.node[pod.Spec.NodeName]; n != nil {
		return n.Labels[key]
	}
	return ""
}

// count counts the pods of workloads by a label of their nodes.
func (o *outcome) count(key string, workloads ...string) map[string]int {
	count := map[string]int{}
	for _, name := range workloads {
		for i := range o.pods[name] {
			count[o.label(&o.pods[name][i], key)]++
		}
	}
	return count
}

// nodes expects this many nodes.
func nodes(want int) expectation {
	return func(o *outcome) error {
		if len(o.nodes) != want || len(o.claims) != want {
			return fmt.Errorf("there are %d nodes of %d claims, want %d", len(o.nodes), len(o.claims), want)
		}
		return nil
	}
}

// nodesWith expects this many nodes with a label.
func nodesWith(want int, key, value string) expectation {
	return func(o *outcome) error {
		got := 0
		for _, n := range o.nodes {
			if n.Labels[key] == value {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%d nodes have %s=%s, want %d", got, key, value, want)
		}
		return nil
	}
}

// on expects all pods of a workload on nodes that have one of the values of a label.
func on(workload, key string, values ...string) expectation {
	return func(o *outcome) error {
		for value, n := range o.count(key, workload) {
			if !slices.Contains(values, value) {
				return fmt.Errorf("%d pods of %s are on nodes with %s=%q, want one of %q", n, workload, key, value, values)
			}
		}
		return nil
	}
}

// spread expects the pods of a workload to be spread over the values of a label in these numbers.
func spread(workload, key string, want ...int) expectation {
	return func(o *outcome) error {
		got := slices.SortedFunc(maps.Values(o.count(key, workload)), func(a, b int) int { return b - a })
		if !slices.Equal(got, want) {
			return fmt.Errorf("the pods of %s are spread %v over %s, want %v", workload, got, key, want)
		}
		return nil
	}
}

// placed expects this many pods of a workload on nodes with a value of a label.
func placed(workload, key, value string, want int) expectation {
	return func(o *outcome) error {
		if got := o.count(key, workload)[value]; got != want {
			return fmt.Errorf("%d pods of %s are on nodes with %s=%q, want %d", got, workload, key, value, want)
		}
		return nil
	}
}

// together expects that workloads share one value of a label.
func together(key string, workloads ...string) expectation {
	return func(o *outcome) error {
		if count := o.count(key, workloads...); len(count) != 1 {
			return fmt.Errorf("%v are on nodes with %s %v, want one", workloads, key, count)
		}
		return nil
	}
}

// apart expects that two workloads share no value of a label.
func apart(key, a, b string) expectation {
	return func(o *outcome) error {
		others := o.count(key, b)
		for value := range o.count(key, a) {
			if others[value] > 0 {
				return fmt.Errorf("%s and %s are both on nodes with %s=%q", a, b, key, value)
			}
		}
		return nil
	}
}

// claimsRequire expects that every claim leaves at least this many values of a label to choose from.
func claimsRequire(key string, least int) expectation {
	return func(o *outcome) error {
		for _, claim := range o.claimed {
			values := 0
			for _, r := range claim.Spec.Requirements {
				if r.Key == key {
					values = max(values, len(r.Values))
				}
			}
			if values < least {
				return fmt.Errorf("claim %s leaves %d values of %s, want at least %d", claim.Name, values, key, least)
			}
		}
		return nil
	}
}

// expected expects that the kube-scheduler was told where pods are to go, and bound at least one there. It may bind a pod
// elsewhere while the pod's nominated node does not accept it yet.
func expected(workloads ...string) expectation {
	return func(o *outcome) error {
		told, kept := 0, 0
		for _, name := range workloads {
			for _, pod := range o.pods[name] {
				if o.expected[pod.Name] != "" {
					told++
				}
				if o.expected[pod.Name] == pod.Spec.NodeName {
					kept++
				}
			}
		}
		if kept == 0 {
			return fmt.Errorf("of the pods of %v, %d were expected somewhere, and none is there", workloads, told)
		}
		return nil
	}
}

// own returns the sentences of a message about the scenario's own NodePools, or the whole message if there are none.
func own(scene, message string) string {
	var mine []string
	for _, sentence := range strings.Split(message, "; ") {
		if strings.Contains(sentence, `NodePool "`+scene) {
			mine = append(mine, sentence)
		}
	}
	if len(mine) == 0 {
		return message
	}
	return strings.Join(mine, "; ")
}

// table describes the outcome for people who have to find out why a scenario failed.
func (o *outcome) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "plans with how many claims: %v; claims gone: %v\nPODS\n", o.plans, o.gone)
	for _, name := range slices.Sorted(maps.Keys(o.pods)) {
		for _, pod := range o.pods[name] {
			fmt.Fprintf(&text, "  %-24s %-10s on %-34s", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
			if pod.Spec.NodeName == "" {
				text.WriteString(scheduled(&pod))
				if pod.Status.NominatedNodeName != "" {
					text.WriteString(" nominated for " + pod.Status.NominatedNodeName)
				}
				text.WriteString(" | tenon: " + cut(strings.TrimSpace(o.said[pod.Name]), 400))
			}
			text.WriteString("\n")
		}
	}
	text.WriteString("NODES\n")
	for _, n := range o.nodes {
		fmt.Fprintf(&text, "  %-34s %-24s %-12s %s %s taints %v\n", n.Name, n.Labels[poolKey], n.Labels[typeKey], n.Labels[zoneKey], n.Labels[capacityKey], n.Spec.Taints)
	}
	return text.String()
}

// scheduled returns what the kube-scheduler says about a pod.
func scheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return cut(c.Message, 300)
		}
	}
	return "not looked at"
}

func cut(text string, most int) string {
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
