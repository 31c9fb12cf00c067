// Package cloud is the contract between Tenon and a cloud provider.
//
// A provider answers questions: what a node class currently selects (ResolveNodeClass), what can be launched for it and
// at which price (InstanceTypes), what exactly a launch will request (PrepareLaunch), what is running (Instances), how
// an instance differs from what its class asks for now (Drift), what is left of earlier classes (Leftovers), and when a
// node counts as lost (RepairPolicies). It also acts: it launches (Launch), tags (Tag) and terminates (Terminate)
// instances, and removes what it created for a class (ReleaseNodeClass, RemoveLeftover).
//
// # Exactly once
//
// Launch is the only call whose repetition could cost money, so it is split in two. PrepareLaunch turns names into a
// LaunchRequest in which everything is resolved, such as subnets, images, tags and prices. The workflow records the request
// before anything is launched. Launch then sends exactly that request with a client token chosen by the workflow. After
// a lost reply, a timeout or a killed worker, the workflow sends it again: the same token with the same request
// launches nothing new and returns the instances of the first call. Where the cloud cannot answer that way (ErrorKind
// ParameterMismatch, or a token too old to be remembered), the instances are found by the launch group in their tags,
// which they have from creation: Instances with Query.LaunchGroup. A new token is used only after the old one is known
// to have launched nothing.
//
// # Ownership
//
// Every instance carries, from the moment of its creation, the tags of its owner: cluster, NodePool, node class and
// launch group. A provider never lists, tags or terminates an instance without the tag of its own cluster.
//
// # Errors
//
// Every error a provider returns is classified once, at its boundary, as an ErrorKind (KindOf). The kinds say what the
// caller has to do next, not what the cloud called it; the cloud's own code stays in the message.
package cloud

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Provider is everything Tenon asks of a cloud. All methods are safe for concurrent use and idempotent. Consumers
// declare the few methods they need themselves; cloud/cloudtest tests every provider against this interface.
type Provider interface {
	// Kind describes the provider's node classes. It is always the same. A class that is passed to the other methods is of
	// this kind.
	Kind() Kind

	// ResolveNodeClass resolves what the class selects to what that is now, such as subnets and images, and makes what it
	// needs in the cloud. It returns a copy of class with the complete status, with one condition per part and Ready
	// over all of them; a selector that matches nothing is a False condition, not an error. It does not modify class. A
	// part of the status that has not changed is as it was in class, in the same order.
	ResolveNodeClass(ctx context.Context, class NodeClass) (NodeClass, error)

	// ReleaseNodeClass removes what the provider created for a class that is being deleted. It succeeds if nothing is left.
	ReleaseNodeClass(ctx context.Context, class NodeClass) error

	// InstanceTypes returns what can be launched for a class, ordered by name, with the capacity and allocatable a node
	// of that class will have. Offerings that recently had no capacity are included, marked as not available. The
	// values are shared between callers and must not be modified. If the class's status is not resolved, the error is
	// NodeClassNotReady.
	InstanceTypes(ctx context.Context, class NodeClass) ([]*InstanceType, error)

	// Excluded returns what the class keeps its nodes from having, and why: types of the region that cannot be launched for
	// it, and devices that types would otherwise have. It is what the last InstanceTypes of the class left out, empty
	// before the first, and does not call the cloud.
	Excluded(class NodeClass) []Exclusion

	// VolumePrice returns what the volumes of one node of a class cost per hour, in the currency of the region's
	// prices. It does not call the cloud.
	VolumePrice(class NodeClass) float64

	// Drift compares claims launched from a class, and their instances, with what the class asks for now. It returns
	// one answer for each question. The reasons are the provider's own; if several apply, the first one is returned.
	// What the selectors match is taken from the class's status, and Drift makes no calls to the cloud that
	// InstanceTypes does not make. A part of the status that is not resolved is not compared.
	Drift(ctx context.Context, class NodeClass, questions []DriftQuestion) ([]Drift, error)

	// PrepareLaunch resolves a launch into the complete request, and makes what the request refers to. It launches
	// nothing and may be repeated at will.
	PrepareLaunch(ctx context.Context, spec LaunchSpec) (LaunchRequest, error)

	// Launch sends the request. A reply with fewer instances than asked for is not an error: the offerings that were
	// refused are in LaunchResult.Refused, and they count as unavailable for the next three minutes; a full
	// reservation, until its room is read again. The error is InsufficientCapacity only when nothing was launched at
	// all for lack of capacity; LaunchResult.Refused then lists the offerings that the reply names.
	Launch(ctx context.Context, request LaunchRequest) (LaunchResult, error)

	// Instances returns this cluster's instances that match the query, ordered by id.
	Instances(ctx context.Context, query Query) ([]Instance, error)

	// Terminate terminates the instances with these ids. Ids that are unknown or already gone are not an error. An
	// instance without this cluster's ownership tags is refused with the kind Forbidden.
	Terminate(ctx context.Context, ids []string) error

	// Tag adds tags to one instance of this cluster.
	Tag(ctx context.Context, id string, tags map[string]string) error

	// Leftovers returns what was made for node classes of this cluster and is of no use any more, because no class needs it
	// and no instance has it. classes are all that exist. What was made since they were read may be among the answer, so
	// only what is returned again and again is certain.
	Leftovers(ctx context.Context, classes []NodeClass) ([]Leftover, error)

	// RemoveLeftover removes one of them. It succeeds if it is gone already. What lacks this cluster's ownership tags is
	// refused with the kind Forbidden, and what has come into use with the kind Transient.
	RemoveLeftover(ctx context.Context, leftover Leftover) error

	// RepairPolicies says which conditions of a Node mean that its instance will not recover.
	RepairPolicies() []RepairPolicy
}

// Leftover names something that was made for a node class and is of no use any more.
type Leftover struct {
	// Kind is the cloud's word for it, such as launch template.
	Kind string
	Name string
}

// String returns the kind and the name.
func (l Leftover) String() string { return l.Kind + " " + l.Name }

// RepairPolicy is a condition of a Node that is tolerated for a while.
type RepairPolicy struct {
	Condition corev1.NodeConditionType
	Status    corev1.ConditionStatus
	// Tolerated is for how long the condition may last before the node counts as lost.
	Tolerated time.Duration
}

// DriftNodeClass says that the node class has changed since, found by its hash only, so that the message names no field.
const DriftNodeClass = "NodeClassDrift"

// DriftQuestion is a claim and the instance launched for it. While the instance is not known (its ID is empty), only what
// the claim says is compared.
type DriftQuestion struct {
	Claim    *karpv1.NodeClaim
	Instance Instance
}

// Drift is how a node differs from what would be launched now. The zero Drift means that it does not differ.
type Drift struct {
	// Reason is one word, for the condition Drifted.
	Reason string
	// Message is for people, and names the field and both values.
	Message string
}
