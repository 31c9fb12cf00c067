package devices

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Needs returns what a pod's claims ask of its node.
func (x *Index) Needs(pod *model.Pod) Needs {
	switch {
	case !pod.Class.ResourceClaims:
		return Needs{}
	case x == nil:
		return refused("it asks for devices by dynamic resource allocation, which is not planned for while the feature gate " + Gate + " is off")
	}
	if known, ok := x.needs[pod]; ok {
		return known
	}
	needs := x.work(pod)
	x.needs[pod] = needs
	return needs
}

// work derives the needs from each claim.
func (x *Index) work(pod *model.Pod) Needs {
	var needs Needs
	for _, entry := range pod.Claims.All() {
		if entry.Spec != nil {
			needs.own = append(needs.own, asked{entry: entry.Entry, key: string(pod.UID) + "/" + entry.Entry, claim: &resourcev1.ResourceClaim{Spec: *entry.Spec}})
			continue
		}
		if entry.Claim == "" && pod.Virtual {
			claim := x.fromTemplate(pod.Namespace, entry.Template)
			if claim == nil {
				return refused(fmt.Sprintf("resource claim %q names ResourceClaimTemplate %s, which does not exist", entry.Entry, entry.Template))
			}
			if why := x.undefined(claim); why != "" {
				return refused(fmt.Sprintf("resource claim %q %s", entry.Entry, why))
			}
			needs.own = append(needs.own, asked{entry: entry.Entry, key: string(pod.UID) + "/" + entry.Entry, claim: claim})
			continue
		}
		if entry.Claim == "" {
			return refused(fmt.Sprintf("resource claim %q has not been created from ResourceClaimTemplate %s yet", entry.Entry, entry.Template))
		}
		key := pod.Namespace + "/" + entry.Claim
		claim := x.known.Claims[key]
		if why := x.unusable(pod, entry, claim); why != "" {
			return refused(fmt.Sprintf("resource claim %q %s", entry.Entry, why))
		}
		others := len(x.users[key]) > 1
		if others {
			needs.used = append(needs.used, key)
		}
		one := asked{entry: entry.Entry, key: key, claim: claim}
		switch {
		case x.settled(pod, entry, claim):
			places := x.places(claim)
			if len(places) == 0 {
				return refused(fmt.Sprintf("resource claim %q is allocated to a node that is gone (ResourceClaim %s)", entry.Entry, entry.Claim))
			}
			if places = x.join(needs.alternatives, places); len(places) == 0 {
				return refused("no node reaches the devices that its resource claims have been allocated together")
			}
			needs.alternatives = places
		case others:
			needs.shared = append(needs.shared, one)
			needs.together = needs.together || !x.anywhere(one)
		default:
			needs.own = append(needs.own, one)
		}
	}
	needs.Key = needs.key()
	return needs
}

// anywhere says that a claim can be allocated from devices that every node reaches.
func (x *Index) anywhere(claim asked) bool {
	if len(x.remote) == 0 {
		return false
	}
	results := x.allocate(0, &view{node: nodeNamed(newNode, nil), slices: x.remote, used: x.used, key: "anywhere"}, []asked{claim})
	return len(results) == 1 && results[0].NodeSelector == nil
}

// Allocated says that the plan has allocated a claim that the pods share.
func (x *Index) Allocated(n *Needs) bool {
	return slices.ContainsFunc(n.shared, func(one asked) bool { _, allocated := x.plan.claims[one.key]; return allocated })
}

// join combines alternatives with those of one more claim; nil admits every node.
func (x *Index) join(alternatives, more []model.Term) []model.Term {
	if alternatives == nil {
		return more
	}
	return model.Simplified(model.Both(alternatives, more))
}

// classesOf returns the names of the classes that a request may be met from.
func classesOf(r *resourcev1.DeviceRequest) []string {
	if r.Exactly != nil {
		return []string{r.Exactly.DeviceClassName}
	}
	var names []string
	for i := range r.FirstAvailable {
		names = append(names, r.FirstAvailable[i].DeviceClassName)
	}
	return names
}

// unusable says why a pod cannot use a claim, as the end of a sentence about it; empty if it can.
func (x *Index) unusable(pod *model.Pod, entry model.PodClaim, claim *resourcev1.ResourceClaim) string {
	switch {
	case claim == nil:
		return fmt.Sprintf("names ResourceClaim %s, which does not exist", entry.Claim)
	case claim.DeletionTimestamp != nil && pod.Node == "":
		return fmt.Sprintf("names ResourceClaim %s, which is being deleted", entry.Claim)
	case entry.Template != "" && !madeFor(pod, claim):
		return fmt.Sprintf("names ResourceClaim %s, which was made for another pod", entry.Claim)
	}
	if used := len(claim.Status.ReservedFor); used >= resourcev1.ResourceClaimReservedForMaxSize && pod.Node == "" {
		return fmt.Sprintf("names ResourceClaim %s, which as many pods use as may (%d)", entry.Claim, used)
	}
	return x.undefined(claim)
}

// undefined says which part of a claim is not known here, as the end of a sentence about it; empty if all are.
func (x *Index) undefined(claim *resourcev1.ResourceClaim) string {
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly == nil && len(r.FirstAvailable) == 0 {
			return fmt.Sprintf("has a request %q of a kind that is not known here", r.Name)
		}
		for _, class := range classesOf(&r) {
			if x.known.Classes[class] == nil {
				return fmt.Sprintf("names DeviceClass %s, which does not exist", class)
			}
		}
	}
	return ""
}

// madeFor says that a claim was made from a template for a pod.
func madeFor(pod *model.Pod, claim *resourcev1.ResourceClaim) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return owner != nil && owner.UID == pod.UID
}

// settled says that a pod gets the devices that its claim is allocated. A claim that was made for a pod which has a node is
// made anew for the pod's successor. An allocation that nothing uses is given up when it is in the way of a pod.
func (x *Index) settled(pod *model.Pod, entry model.PodClaim, claim *resourcev1.ResourceClaim) bool {
	switch {
	case claim.Status.Allocation == nil:
		return false
	case entry.Template != "":
		return pod.Node == ""
	}
	return len(claim.Status.ReservedFor) > 0
}

// places returns the conditions on labels of nodes from which an allocated claim can be used: one empty term if every node
// can, and none if no node can.
func (x *Index) places(claim *resourcev1.ResourceClaim) []model.Term {
	selector := claim.Status.Allocation.NodeSelector
	if selector == nil {
		return []model.Term{{}}
	}
	var terms []model.Term
	for i := range selector.NodeSelectorTerms {
		alternative := &selector.NodeSelectorTerms[i]
		term, possible := model.Expressions(alternative.MatchExpressions), true
		for _, field := range alternative.MatchFields {
			// The only field is the name of the node.
			var hosts []string
			for _, name := range field.Values {
				if host := x.hosts[name]; host != "" {
					hosts = append(hosts, host)
				}
			}
			possible = possible && field.Operator == corev1.NodeSelectorOpIn && len(hosts) > 0
			term = append(term, model.NewCondition(corev1.LabelHostname, corev1.NodeSelectorOpIn, hosts))
		}
		if possible && len(term) > 0 {
			terms = append(terms, term)
		}
	}
	return terms
}

// left is how many more pods may use a claim.
func (x *Index) left(key string) int {
	return resourcev1.ResourceClaimReservedForMaxSize - len(x.known.Claims[key].Status.ReservedFor) - x.plan.users[key]
}
