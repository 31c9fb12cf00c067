// Package kwok is a provider without a cloud: an instance is a Node object, which the provider makes and deletes itself and
// for which kwok (https://kwok.sigs.k8s.io) plays the kubelet. It serves to try a cluster out, and as an example of a
// provider: everything that package cloud asks for is here, and nothing else.
//
// Node classes are of Karpenter's kind KWOKNodeClass, and the catalogue of instance types is a file in the form of
// Karpenter's kwok provider (catalogue.go).
//
// # Where the state is
//
// All of it is in the Node objects, so a provider that is killed has lost nothing. Labels name the cluster that owns an
// instance and its launch group; annotations have the request that launched it, the time, and its tags (node.go). A Node's
// name follows from the token of its launch and a number. Sent again, a launch therefore finds the Nodes that it has made
// and makes the missing ones, and a token that comes with another request is noticed. A Node that was deleted after its
// launch would be made again, but a token is sent again only while nobody knows of its instances.
//
// Terminate marks the Node, so that it counts as terminated from then on whatever finalizers keep the object, and takes away
// the label by which kwok knows it.
//
// # Capacity
//
// There is no lack of capacity, unless an admission policy says so: a Node that is refused with the reason
// RequestEntityTooLarge counts as one for whose offering there is no capacity. A ValidatingAdmissionPolicy with that reason
// takes a zone, a type or a capacity type away.
//
// Reading order: errors, nodeclass, catalogue, offerings, kwok, node, instances, launch.
package kwok

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// Options are what a provider needs.
type Options struct {
	// Cluster is the name of the cluster, which owns the Nodes.
	Cluster string
	// Kube reads and writes Nodes, without a cache.
	Kube client.Client
	// Catalogue is a catalogue of instance types; nil means the built-in one.
	Catalogue []byte
	// Now is the clock; nil means the real one.
	Now func() time.Time
}

// Provider implements cloud.Provider.
type Provider struct {
	cluster string
	kube    client.Client
	now     func() time.Time
	offers  *offers
}

// New returns a provider. It makes no calls.
func New(options Options) (*Provider, error) {
	types, err := readCatalogue(options.Catalogue)
	if err != nil {
		return nil, fmt.Errorf("kwok: %w", err)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Provider{cluster: options.Cluster, kube: options.Kube, now: options.Now, offers: newOffers(types)}, nil
}

// Kind implements cloud.Provider.
func (p *Provider) Kind() cloud.Kind { return Kind() }

// ResolveNodeClass implements cloud.Provider. A class selects nothing, so it is always Ready.
func (p *Provider) ResolveNodeClass(_ context.Context, class cloud.NodeClass) (cloud.NodeClass, error) {
	resolved := class.DeepCopyObject().(cloud.NodeClass)
	meta.SetStatusCondition(resolved.StatusConditions(), metav1.Condition{
		Type: karpv1.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: karpv1.ConditionTypeReady, ObservedGeneration: class.GetGeneration(),
		LastTransitionTime: metav1.NewTime(p.now()),
	})
	return resolved, nil
}

// ReleaseNodeClass implements cloud.Provider. Nothing is made for a class.
func (p *Provider) ReleaseNodeClass(context.Context, cloud.NodeClass) error { return nil }

// InstanceTypes implements cloud.Provider.
func (p *Provider) InstanceTypes(_ context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error) {
	if _, err := registrationDelay("InstanceTypes", class); err != nil {
		return nil, err
	}
	return p.offers.types(p.now()), nil
}

// Excluded implements cloud.Provider. A class excludes nothing.
func (p *Provider) Excluded(cloud.NodeClass) []cloud.Exclusion { return nil }

// VolumePrice implements cloud.Provider. Nodes have no volumes.
func (p *Provider) VolumePrice(cloud.NodeClass) float64 { return 0 }

// Drift implements cloud.Provider. Nothing in a class is about a node that runs, so none drifts.
func (p *Provider) Drift(_ context.Context, _ cloud.NodeClass, questions []cloud.DriftQuestion) ([]cloud.Drift, error) {
	return make([]cloud.Drift, len(questions)), nil
}

// Leftovers implements cloud.Provider. Nothing is made for a class.
func (p *Provider) Leftovers(context.Context, []cloud.NodeClass) ([]cloud.Leftover, error) {
	return nil, nil
}

// RemoveLeftover implements cloud.Provider.
func (p *Provider) RemoveLeftover(_ context.Context, leftover cloud.Leftover) error {
	return failed(cloud.Invalid, "RemoveLeftover", fmt.Errorf("%s: nothing is made for a class", leftover))
}

// RepairPolicies implements cloud.Provider. They are those of Karpenter's kwok provider.
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	const tolerated = 10 * time.Minute
	return []cloud.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Tolerated: tolerated},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Tolerated: tolerated},
	}
}
