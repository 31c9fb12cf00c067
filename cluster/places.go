package cluster

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/plan"
)

// places joins Nodes and NodeClaims by provider id, and remembers which joined nodes are still valid.
type places struct {
	*shared
	// claims are the NodeClaims that count: those mirrored, unless an assumed version takes precedence.
	claims map[string]*promised
	// claimsOf and nodesOf find names by provider id. More than one is an error in the cluster; the first name counts.
	claimsOf map[string][]string
	nodesOf  map[string][]string
	// claimsByInstance is claimsOf by the instance id alone.
	claimsByInstance map[string][]string
	// builtNodes and builtClaims are the joined nodes that are still valid, by the name of the Node and, for claims
	// without a Node, by the name of the claim.
	builtNodes  map[string]*plan.Node
	builtClaims map[string]*plan.Node
}

func newPlaces(s *shared) *places {
	return &places{
		shared:           s,
		claims:           map[string]*promised{},
		claimsOf:         map[string][]string{},
		nodesOf:          map[string][]string{},
		claimsByInstance: map[string][]string{},
		builtNodes:       map[string]*plan.Node{},
		builtClaims:      map[string]*plan.Node{},
	}
}

// moveNode moves a Node from one provider id to another; either is empty where it has none. The lock is held.
func (p *places) moveNode(name, before, after string) {
	if before != after {
		remove(p.nodesOf, before, name)
		enlist(p.nodesOf, after, name)
		p.touchProvider(before)
	}
	p.touchProvider(after)
	p.touchNode(name)
}

// putClaim sets the version of a claim that counts; nil where the claim is gone. The lock is held.
func (p *places) putClaim(name string, now *promised) {
	before, after := providerID(p.claims[name]), providerID(now)
	if now != nil {
		p.claims[name] = now
	} else {
		delete(p.claims, name)
	}
	if before != after {
		remove(p.claimsOf, before, name)
		enlist(p.claimsOf, after, name)
		remove(p.claimsByInstance, instanceID(before), name)
		enlist(p.claimsByInstance, instanceID(after), name)
		p.touchProvider(before)
	}
	p.touchProvider(after)
	delete(p.builtClaims, name)
	p.changed()
}

// touchNode makes the next snapshot rebuild a Node. The lock is held.
func (p *places) touchNode(name string) {
	delete(p.builtNodes, name)
	p.changed()
}

// touchProvider makes the next snapshot rebuild everything with a provider id. The lock is held.
func (p *places) touchProvider(id string) {
	if id == "" {
		return
	}
	for _, name := range p.nodesOf[id] {
		p.touchNode(name)
	}
	for _, name := range p.claimsOf[id] {
		delete(p.builtClaims, name)
	}
	p.changed()
	p.publish(Event{Kind: providerPlace, Name: id})
}

// touchKey makes the next snapshot rebuild the place with this key. The lock is held.
func (p *places) touchKey(key string) {
	claim, ok := p.claims[key]
	if !ok {
		p.touchNode(key)
		return
	}
	delete(p.builtClaims, key)
	if node := p.nodeOf(claim); node != "" {
		delete(p.builtNodes, node)
	}
	p.changed()
}

// claimOf returns the claim that a Node belongs to, or nil.
func (p *places) claimOf(node *machine) *promised {
	id := node.node.Spec.ProviderID
	if id == "" || first(p.nodesOf[id]) != node.node.Name {
		return nil
	}
	return p.claims[first(p.claimsOf[id])]
}

// nodeOf returns the name of the Node that belongs to a claim, or "".
func (p *places) nodeOf(claim *promised) string {
	id := claim.claim.Status.ProviderID
	if id == "" || first(p.claimsOf[id]) != claim.claim.Name {
		return ""
	}
	return first(p.nodesOf[id])
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

// first is the first name of an index entry, which is the one that counts; empty where there is none.
func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// instanceID is the last part of a provider id: i-0123 of aws:///us-east-1a/i-0123.
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
