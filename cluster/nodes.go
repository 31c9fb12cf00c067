package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// machine is a Node as the API has it and as planning sees it.
type machine struct {
	node *corev1.Node
	plan *plan.Node
}

func (m *machine) key() string { return m.node.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (m *machine) GetObjectMeta() metav1.Object { return m.node }

// promised is a NodeClaim as the API has it and as planning sees it.
type promised struct {
	claim *karpv1.NodeClaim
	plan  *plan.Node
}

func (p *promised) key() string { return p.claim.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (p *promised) GetObjectMeta() metav1.Object { return p.claim }

// reduceNode keeps a Node whole but for what only the kubelet and kubectl need, which is most of it.
func reduceNode(interner *plan.Interner, obj any) (*machine, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil, unexpected(node, obj)
	}
	node.ManagedFields = nil
	node.Status.Images = nil
	node.Status.Config = nil
	reduced := &machine{node: node, plan: interner.Node(node)}
	// Both are read-only from here on, so one map with shared strings does for both.
	node.Labels = reduced.plan.Labels
	return reduced, nil
}

// reduceClaim keeps a NodeClaim whole. Hundreds of claims list the same sixty instance types: those are shared.
func reduceClaim(interner *plan.Interner, obj any) (*promised, error) {
	claim, ok := obj.(*karpv1.NodeClaim)
	if !ok {
		return nil, unexpected(claim, obj)
	}
	claim.ManagedFields = nil
	for i := range claim.Spec.Requirements {
		requirement := &claim.Spec.Requirements[i]
		requirement.Key = interner.String(requirement.Key)
		values := make([]string, len(requirement.Values)) // the decoder's slice has up to twice the room
		for v, value := range requirement.Values {
			values[v] = interner.String(value)
		}
		if len(values) > 0 {
			requirement.Values = values
		}
	}
	reduced := &promised{claim: claim, plan: interner.Claim(claim)}
	if len(reduced.plan.Labels) == len(claim.Labels) { // no requirement has added one
		claim.Labels = reduced.plan.Labels
	}
	return reduced, nil
}

// places joins Nodes, NodeClaims and pods.
type places struct {
	residents map[string]*residents
	// claims are the NodeClaims that count: those mirrored, and those assumed in front of them.
	claims map[string]*promised
	// claimsOf and nodesOf find names by provider id. More than one is a mistake of somebody's; the first name counts.
	claimsOf map[string][]string
	nodesOf  map[string][]string
	// claimsByInstance is claimsOf by the instance id alone.
	claimsByInstance map[string][]string
	// builtNodes and builtClaims are the joined nodes that are still valid, by Node's name and, for claims without a
	// Node, by claim's name.
	builtNodes  map[string]*plan.Node
	builtClaims map[string]*plan.Node
}

func newPlaces() places {
	return places{
		residents:        map[string]*residents{},
		claims:           map[string]*promised{},
		claimsOf:         map[string][]string{},
		nodesOf:          map[string][]string{},
		claimsByInstance: map[string][]string{},
		builtNodes:       map[string]*plan.Node{},
		builtClaims:      map[string]*plan.Node{},
	}
}

// enlist adds a name to an index, keeping the names ordered.
func enlist(index map[string][]string, id, name string) {
	if id == "" {
		return
	}
	names := index[id]
	if at, found := slices.BinarySearch(names, name); !found {
		index[id] = slices.Insert(names, at, name)
	}
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// nodeChanged keeps the index of Nodes. The lock is held.
func (m *Mirror) nodeChanged(old, now *machine, existed, exists bool) {
	name, before, after := "", "", ""
	if existed {
		name, before = old.node.Name, old.node.Spec.ProviderID
	}
	if exists {
		name, after = now.node.Name, now.node.Spec.ProviderID
	}
	if before != after {
		remove(m.places.nodesOf, before, name)
		enlist(m.places.nodesOf, after, name)
		m.touchProvider(before)
	}
	if !exists {
		if here := m.places.residents[name]; here != nil && len(here.pods) == 0 {
			delete(m.places.residents, name)
		}
		m.retract(name)
	}
	m.touchProvider(after)
	m.touchNode(name)
	m.events.publish(Event{Kind: NodeChanged, Name: name})
}

// claimChanged takes a claim the watch delivered. The lock is held.
func (m *Mirror) claimChanged(old, now *promised, _, exists bool) {
	name := ""
	if exists {
		name = now.claim.Name
		if assumed, ok := m.assumed[name]; ok && atLeast(now.claim.ResourceVersion, assumed.version) {
			delete(m.assumed, name)
		}
	} else {
		name = old.claim.Name
	}
	m.refreshClaim(name)
}

// refreshClaim decides which version of a claim counts and keeps the index of claims. The lock is held.
func (m *Mirror) refreshClaim(name string) {
	old, existed := m.places.claims[name]
	now, exists := m.claims.items[name]
	if assumed, ok := m.assumed[name]; ok {
		now, exists = assumed.claim, true
	}
	if old == now {
		return
	}
	if exists && initialized(now) && existed && !initialized(old) {
		m.cameUp(now)
	}
	if exists && initialized(now) && !(existed && initialized(old)) {
		m.overdue.learn(now)
	}
	before, after := "", ""
	if existed {
		before = old.claim.Status.ProviderID
	}
	if exists {
		m.places.claims[name] = now
		after = now.claim.Status.ProviderID
	} else {
		delete(m.places.claims, name)
		m.retract(name)
	}
	if before != after {
		remove(m.places.claimsOf, before, name)
		enlist(m.places.claimsOf, after, name)
		remove(m.places.claimsByInstance, instanceID(before), name)
		enlist(m.places.claimsByInstance, instanceID(after), name)
		m.touchProvider(before)
	}
	m.touchProvider(after)
	delete(m.places.builtClaims, name)
	m.changed()
	m.events.publish(Event{Kind: ClaimChanged, Name: name})
}

// touchNode makes the next snapshot build a Node again. The lock is held.
func (m *Mirror) touchNode(name string) {
	delete(m.places.builtNodes, name)
	m.changed()
}

// touchProvider makes the next snapshot build everything with a provider id again. The lock is held.
func (m *Mirror) touchProvider(id string) {
	if id == "" {
		return
	}
	for _, name := range m.places.nodesOf[id] {
		m.touchNode(name)
	}
	for _, name := range m.places.claimsOf[id] {
		delete(m.places.builtClaims, name)
	}
	m.changed()
	m.events.publish(Event{Kind: providerPlace, Name: id})
}

// claimOf returns the claim a Node comes from, or nil.
func (p *places) claimOf(node *machine) *promised {
	id := node.node.Spec.ProviderID
	if id == "" || first(p.nodesOf[id]) != node.node.Name {
		return nil
	}
	return p.claims[first(p.claimsOf[id])]
}

// nodeOf returns the name of the Node a claim has become, or "".
func (p *places) nodeOf(claim *promised) string {
	id := claim.claim.Status.ProviderID
	if id == "" || first(p.claimsOf[id]) != claim.claim.Name {
		return ""
	}
	return first(p.nodesOf[id])
}

// buildNodes returns all places, ordered by key, building those that have changed. The lock is held.
func (m *Mirror) buildNodes() []*plan.Node {
	p := &m.places
	nodes := make([]*plan.Node, 0, len(m.nodes.items)+len(p.claims))
	for name, node := range m.nodes.items {
		built, ok := p.builtNodes[name]
		if !ok {
			built = m.buildNode(p.claimOf(node), node)
			p.builtNodes[name] = built
		}
		nodes = append(nodes, built)
	}
	for name, claim := range p.claims {
		if p.nodeOf(claim) != "" {
			continue
		}
		built, ok := p.builtClaims[name]
		if !ok {
			built = m.buildNode(claim, nil)
			p.builtClaims[name] = built
		}
		nodes = append(nodes, built)
	}
	slices.SortFunc(nodes, func(a, b *plan.Node) int {
		if order := strings.Compare(a.Key(), b.Key()); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return nodes
}

// buildNode joins a claim and a Node, either of which may be nil, with the pods and what the mirror remembers of both.
func (m *Mirror) buildNode(claim *promised, node *machine) *plan.Node {
	var built plan.Node
	var here *residents
	switch {
	case node == nil:
		built = *claim.plan
	case claim == nil:
		built = *node.plan
	default:
		built = *claim.plan.Join(node.plan)
	}
	if node != nil {
		here = m.places.residents[node.node.Name]
		built.Pods = here.byUID()
		built.LastPodEvent = later(built.LastPodEvent, m.lastPodEvent(here))
		m.hold(&built)
	}
	built.Promised, built.NominatedUntil = m.promisesOf(built.Key(), built.Initialized)
	if claim != nil && m.overdue.names[claim.claim.Name] {
		built.Cordoned, built.Promised, built.NominatedUntil = true, nil, time.Time{}
	}
	return &built
}

// lastPodEvent is when a pod last came to a node or left it. Pods that left before this mirror began have left no
// trace: a node without pods is then taken to have been emptied the moment before.
func (m *Mirror) lastPodEvent(here *residents) time.Time {
	if here == nil {
		return m.pods.pulse.first
	}
	event := later(here.event, here.gone)
	if event.IsZero() {
		return m.pods.pulse.first
	}
	return event
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ErrClaimDeleted means that the NodeClaim somebody waits for has been deleted, or was never there.
var ErrClaimDeleted = errors.New("the NodeClaim is deleted")

// AwaitNode returns when ok holds of the Node with a provider id and of its NodeClaim, either of which may be nil. The
// error is ErrClaimDeleted when the claim is being deleted, or is gone after it was seen.
func (m *Mirror) AwaitNode(ctx context.Context, providerID string, ok func(*corev1.Node, *karpv1.NodeClaim) bool) (node *corev1.Node, claim *karpv1.NodeClaim, err error) {
	seen := false
	err = m.Await(ctx, func() (bool, error) {
		node, claim = m.NodeByProviderID(providerID), m.ClaimByProviderID(providerID)
		if claim == nil && seen || claim != nil && claim.DeletionTimestamp != nil {
			return false, ErrClaimDeleted
		}
		seen = claim != nil
		return ok(node, claim), nil
	}, Event{Kind: providerPlace, Name: providerID})
	return node, claim, err
}
