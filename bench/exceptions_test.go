package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/workload"
)

// comparison holds both planners' answers to one question.
type comparison struct {
	question     *compare.Question
	ours, theirs compare.Answer
	differences  []difference
}

// The names of the exceptions, as in DIFFERENCES.md.
const (
	pessimisticAntiAffinity = "Karpenter keeps pods out of zones that others only might be in"
	brokenAffinity          = "Karpenter starts on a node that is too small for the pods to come"
	countsUnusedDomains     = "Karpenter counts domains that no node is in"
	firstPodsFirst          = "Karpenter takes pods by size and leaves those that would have kept the skew"
	settlesLabels           = "Karpenter takes a label for settled that an existing node does not have"
	excludedIsDefined       = "Karpenter takes a label for defined of which a pod excludes a value"
	sharedLimit             = "which pods get the last of a limit"
	sharedRoom              = "which pods get the last room near others, or apart from them"
	keepsWishes             = "Tenon keeps wishes that Karpenter gives up"
	devicesApart            = "Tenon keeps pods that ask for no device off machines with devices"
	evenly                  = "Tenon spreads evenly where the skew allows less"
	rounding                = "Tenon's plan is dearer by less than the cheapest machine it buys"
	unexplained             = "unexplained"
)

// excuse returns the name of the known reason for a difference, or an empty string.
func (c *comparison) excuse(d difference) string {
	switch {
	case c.limited() && c.ours.Placed() >= c.theirs.Placed():
		// A limit admits some pods and not others; which ones may differ as long as Tenon places at least as many.
		return sharedLimit
	case d.ours > d.theirs && (strings.Contains(d.theirReason, "pod anti-affinity") || c.choosesApart(d.app)):
		// If node affinity has several alternatives, Karpenter names only what keeps the pod from the last one.
		return pessimisticAntiAffinity
	case d.ours > d.theirs && (strings.Contains(d.theirReason, "pod affinity") || c.gathers(d.app) && strings.Contains(d.theirReason, "enough resources")):
		return brokenAffinity
	case d.ours > d.theirs && strings.Contains(d.theirReason, "topology spread, key=example.com/tier"):
		return countsUnusedDomains
	case d.ours > d.theirs && strings.Contains(d.theirReason, "topology spread"):
		return firstPodsFirst
	case d.ours < d.theirs && len(c.question.Nodes) > 0 && strings.Contains(d.ourReason, "the pool does not define the label"):
		return settlesLabels
	case d.ours < d.theirs && strings.Contains(d.ourReason, "the pool does not define the label") && c.excludesUndefined():
		return excludedIsDefined
	case d.ours < d.theirs && strings.Contains(d.ourReason, "affinity") && c.ours.Placed() >= c.theirs.Placed():
		return sharedRoom
	}
	return ""
}

// gathers reports whether the pods of an application have to be near others.
func (c *comparison) gathers(app string) bool {
	return slices.ContainsFunc(c.question.Pods, func(p *corev1.Pod) bool {
		a := p.Spec.Affinity
		return p.Namespace+"/"+p.Labels[workload.AppLabel] == app && a != nil && a.PodAffinity != nil &&
			len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
	})
}

// choosesApart reports whether the pods of an application keep apart from others, and have alternatives for their nodes.
func (c *comparison) choosesApart(app string) bool {
	return slices.ContainsFunc(c.question.Pods, func(p *corev1.Pod) bool {
		a := p.Spec.Affinity
		return p.Namespace+"/"+p.Labels[workload.AppLabel] == app && a != nil && a.PodAntiAffinity != nil &&
			len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && a.NodeAffinity != nil &&
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil &&
			len(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) > 1
	})
}

// excludesUndefined reports whether a pod excludes values of a label that some NodePool does not define.
func (c *comparison) excludesUndefined() bool {
	excluded := func(p *corev1.Pod, pool *karpv1.NodePool) bool {
		a := p.Spec.Affinity
		if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return false
		}
		return slices.ContainsFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
			return slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
				_, labels := pool.Spec.Template.Labels[r.Key]
				requires := slices.ContainsFunc(pool.Spec.Template.Spec.Requirements, func(own karpv1.NodeSelectorRequirementWithMinValues) bool { return own.Key == r.Key })
				return r.Operator == corev1.NodeSelectorOpNotIn && !karpv1.WellKnownLabels().Has(r.Key) && !labels && !requires
			})
		})
	}
	return slices.ContainsFunc(c.question.Pods, func(p *corev1.Pod) bool {
		return slices.ContainsFunc(c.question.Pools, func(pool *karpv1.NodePool) bool { return excluded(p, pool) })
	})
}

// limited reports whether limits left pods unplaced by either planner.
func (c *comparison) limited() bool {
	limit := func(a compare.Answer) bool {
		for _, reason := range a.Unplaced {
			if strings.Contains(reason, "limit ") || strings.Contains(reason, "exceed limits") {
				return true
			}
		}
		return false
	}
	return limit(c.ours) || limit(c.theirs)
}

// dearer returns the documented reason for a plan that costs more than Karpenter's, unexplained if there is none, or an empty
// string if the plan does not cost more. A reason counts only if the two answers show it.
func (c *comparison) dearer() string {
	excess := c.ours.Cost() - c.theirs.Cost()
	if excess <= c.theirs.Cost()*1e-9 {
		return ""
	}
	switch {
	case excess <= c.pricedApart()*(1+1e-9):
		return devicesApart
	case c.moreEven():
		return evenly
	case c.keptWishes(c.ours) > c.keptWishes(c.theirs):
		return keepsWishes
	case excess < c.leastMachine():
		return rounding
	}
	return unexplained
}

// leastMachine returns the price of the cheapest machine that Tenon buys.
func (c *comparison) leastMachine() float64 {
	least := math.Inf(1)
	for _, m := range c.ours.Machines {
		least = min(least, m.Price)
	}
	return least
}

// pricedApart returns what Tenon pays for the machines of those pods that ask for no device and that Karpenter puts on
// machines with devices.
func (c *comparison) pricedApart() float64 {
	pods, beside := c.byKey(), map[string]bool{}
	for _, m := range c.theirs.Machines {
		if !slices.ContainsFunc(m.Pods, func(key string) bool { return workload.AsksForDevices(pods[key]) }) {
			continue
		}
		for _, key := range m.Pods {
			beside[key] = !workload.AsksForDevices(pods[key])
		}
	}
	price := 0.0
	for _, m := range c.ours.Machines {
		if slices.ContainsFunc(m.Pods, func(key string) bool { return beside[key] }) {
			price += m.Price
		}
	}
	return price
}

func (c *comparison) byKey() map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, p := range c.question.Pods {
		pods[compare.Key(p)] = p
	}
	return pods
}

// moreEven reports whether some constraint that allows a skew of two or more, or is only a preference, has a greater skew in
// Karpenter's answer than in Tenon's.
func (c *comparison) moreEven() bool {
	for _, p := range c.question.Pods {
		for _, spread := range p.Spec.TopologySpreadConstraints {
			loose := spread.MaxSkew > 1 || spread.WhenUnsatisfiable == corev1.ScheduleAnyway
			if loose && c.skew(c.ours, p, spread) < c.skew(c.theirs, p, spread) {
				return true
			}
		}
	}
	return false
}

// skew returns the difference in pods between the fullest and the emptiest of the domains that either answer uses.
func (c *comparison) skew(a compare.Answer, p *corev1.Pod, spread corev1.TopologySpreadConstraint) int {
	count := map[string]int{}
	for _, answer := range []compare.Answer{c.ours, c.theirs} {
		for _, s := range c.sites(answer) {
			if spread.TopologyKey != corev1.LabelHostname && s.labels[spread.TopologyKey] != "" {
				count[s.labels[spread.TopologyKey]] = 0
			}
		}
	}
	for _, s := range c.sites(a) {
		for _, other := range s.pods {
			if s.labels[spread.TopologyKey] != "" && chosenBy(spread.LabelSelector, other) && other.Namespace == p.Namespace {
				count[s.labels[spread.TopologyKey]]++
			}
		}
	}
	if len(count) == 0 {
		return 0
	}
	counts := slices.Collect(maps.Values(count))
	return slices.Max(counts) - slices.Min(counts)
}

// site is a node, existing or to be created, with its known labels and all its pods.
type site struct {
	labels map[string]string
	pods   []*corev1.Pod
}

// sites returns the sites of an answer.
func (c *comparison) sites(a compare.Answer) []site {
	pods := c.byKey()
	var all []site
	at := map[string]int{}
	for _, n := range c.question.Nodes {
		at[n.Node.Name] = len(all)
		all = append(all, site{labels: n.Node.Labels, pods: slices.Clone(n.Pods)})
	}
	for key, node := range a.Existing {
		if i, ok := at[strings.TrimPrefix(node, "claim-")]; ok {
			all[i].pods = append(all[i].pods, pods[key])
		}
	}
	for i, m := range a.Machines {
		labels := map[string]string{corev1.LabelHostname: fmt.Sprintf("new-%d", i), karpv1.NodePoolLabelKey: m.Pool}
		for _, t := range c.question.Types[m.Pool] {
			if t.Name == m.Types[0] {
				maps.Copy(labels, t.Labels)
			}
		}
		for _, pool := range c.question.Pools {
			if pool.Name == m.Pool {
				maps.Copy(labels, pool.Spec.Template.Labels)
			}
		}
		if len(m.Zones) == 1 {
			labels[corev1.LabelTopologyZone] = m.Zones[0]
		}
		if len(m.CapacityTypes) == 1 {
			labels[karpv1.CapacityTypeLabelKey] = m.CapacityTypes[0]
		}
		s := site{labels: labels}
		for _, key := range m.Pods {
			s.pods = append(s.pods, pods[key])
		}
		all = append(all, s)
	}
	return all
}

// keptWishes returns how many preferences of pods about nodes and other pods an answer meets.
func (c *comparison) keptWishes(a compare.Answer) int {
	sites, kept := c.sites(a), 0
	for _, s := range sites {
		for _, p := range s.pods {
			affinity := p.Spec.Affinity
			if affinity == nil || p.Spec.NodeName != "" {
				continue
			}
			if affinity.NodeAffinity != nil {
				for _, wish := range affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
					if met(wish.Preference, s.labels) {
						kept++
					}
				}
			}
			if affinity.PodAffinity != nil {
				for _, wish := range affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
					if company(sites, s, p, wish.PodAffinityTerm) {
						kept++
					}
				}
			}
			if affinity.PodAntiAffinity != nil {
				for _, wish := range affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
					if !company(sites, s, p, wish.PodAffinityTerm) {
						kept++
					}
				}
			}
		}
	}
	return kept
}

// company reports whether another pod that the term selects is in the pod's domain.
func company(sites []site, at site, p *corev1.Pod, term corev1.PodAffinityTerm) bool {
	domain := at.labels[term.TopologyKey]
	return domain != "" && slices.ContainsFunc(sites, func(s site) bool {
		return s.labels[term.TopologyKey] == domain && slices.ContainsFunc(s.pods, func(other *corev1.Pod) bool {
			return other != p && chosenBy(term.LabelSelector, other)
		})
	})
}

func chosenBy(selector *metav1.LabelSelector, p *corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(p.Labels))
}

func met(term corev1.NodeSelectorTerm, nodeLabels map[string]string) bool {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: nodeLabels}}
	matches, err := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}).Match(node)
	return err == nil && matches
}
