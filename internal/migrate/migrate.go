// Package migrate says what becomes of a cluster when Tenon takes it over from Karpenter, and when Karpenter gets it back. It
// reads what the API server has and changes nothing.
//
// Toward looks at Karpenter's installation and at the objects that both controllers work with. Tenon continues with most of
// them as they are, since it reads the same resources and shares Karpenter's Lease. What differs is of three kinds: settings
// of Karpenter's Deployment that Tenon does not have; objects that Karpenter ignores because of a feature gate, and Tenon
// does not; and fields or references that this version of Tenon does not know.
//
// Back looks at what only Tenon understands: pauses, annotations tenon.sh/..., taints, and removals that are under way.
//
// Reading order: migrate, strict, installation, toward, back.
package migrate

import (
	"cmp"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Verdict is what becomes of something.
type Verdict string

// The verdicts, the gravest first.
const (
	// Refused is what the next controller does nothing with, or must not be started beside.
	Refused Verdict = "refused"
	// Waits is what should be finished before the cluster changes hands.
	Waits Verdict = "waits"
	// Differs is what the next controller treats in another way.
	Differs Verdict = "differs"
	// Left is what is none of the next controller's business.
	Left Verdict = "left"
)

var gravity = []Verdict{Refused, Waits, Differs, Left}

// Finding is one thing that is not simply continued.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Object is a kind and a name, such as "NodePool web", or "Deployment kube-system/karpenter". Field is a path in it, or an
	// environment variable; empty if the finding is about the whole object.
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	// Message is one sentence, and Fix another one; empty if nothing has to be done.
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Report is what Toward or Back found.
type Report struct {
	// Karpenter is the version of the Deployment that runs Karpenter, and Holder the identity in the Lease; each empty if there
	// is none.
	Karpenter string `json:"karpenter,omitempty"`
	Holder    string `json:"leaseHolder,omitempty"`
	// NodePools, NodeClasses and NodeClaims are how many of each the next controller continues with, and Nodes how many Nodes
	// belong to those NodeClaims.
	NodePools   int       `json:"nodePools"`
	NodeClasses int       `json:"nodeClasses"`
	NodeClaims  int       `json:"nodeClaims"`
	Nodes       int       `json:"nodes"`
	Findings    []Finding `json:"findings"`
}

// Worst returns the gravest verdict of the findings; empty if there are none.
func (r *Report) Worst() Verdict {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Verdict
}

// add records a finding.
func (r *Report) add(verdict Verdict, object, field, message, fix string) {
	r.Findings = append(r.Findings, Finding{verdict, object, field, message, fix})
}

// sort orders the findings: the gravest first, then by object and field.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(gravity, a.Verdict), slices.Index(gravity, b.Verdict)), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field))
	})
}

// Cluster is what the API server has. NodePools, NodeClasses and NodeClaims are JSON documents, because they may have fields
// that Tenon's types lack.
type Cluster struct {
	// Deployments are those that may run Karpenter. Lease is the Lease karpenter-leader-election that was found; nil if there
	// is none.
	Deployments []appsv1.Deployment
	Lease       *coordinationv1.Lease
	NodePools   []json.RawMessage
	NodeClasses []json.RawMessage
	NodeClaims  []json.RawMessage
	Nodes       []corev1.Node
	// Buffers are the names, with namespace, of CapacityBuffers, and Overlays those of NodeOverlays.
	Buffers, Overlays []string
	// Pauses are those of the whole cluster.
	Pauses []karpv1.Pause
}
