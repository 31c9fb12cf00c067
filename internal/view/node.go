package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// NodeState is where a node is in its life.
type NodeState string

// The states of a node, in the order in which a node passes through them.
const (
	// NodeLaunching says that the claim has no instance yet.
	NodeLaunching NodeState = "Launching"
	// NodeJoining says that the instance runs, and its Node has not registered.
	NodeJoining NodeState = "Joining"
	// NodeStarting says that the node has registered and is not initialized.
	NodeStarting NodeState = "Starting"
	NodeServing  NodeState = "Serving"
	NodeNotReady NodeState = "NotReady"
	NodeCordoned NodeState = "Cordoned"
	// NodeClosed says that a disruption keeps new pods off the node.
	NodeClosed NodeState = "Closed"
	// NodeLeaving says that the node or its claim is deleted.
	NodeLeaving NodeState = "Leaving"
	// NodeTerminating says that the cloud has been told to terminate the instance.
	NodeTerminating NodeState = "Terminating"
)

// Node is a Node, the NodeClaim it comes from, or both.
type Node struct {
	// Key is the claim's name, or the Node's if there is no claim.
	Key          string    `json:"key"`
	Name         string    `json:"name,omitempty"`
	Claim        string    `json:"claim,omitempty"`
	Pool         string    `json:"pool,omitempty"`
	InstanceType string    `json:"instanceType,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	Arch         string    `json:"arch,omitempty"`
	State        NodeState `json:"state"`
	// Note says what is special about the node, such as that it has drifted; empty if nothing is.
	Note    string    `json:"note,omitempty"`
	Created time.Time `json:"created"`
	Price
	Allocatable Amounts `json:"allocatable"`
	Requested   Amounts `json:"requested"`
	Fill        Fill    `json:"fill"`
	// Pods are ordered by namespace and name.
	Pods []Pod `json:"pods"`
	// Promised is how many pods were planned for the node and are not bound yet.
	Promised int `json:"promised,omitempty"`
	// Replacement is the id of the replacement that removes the node, or for which it was launched.
	Replacement string `json:"replacement,omitempty"`
	// Approval is the id of the approval that the node's disruption waits for.
	Approval string `json:"approval,omitempty"`
}

// coming says that the node does not serve yet, leaving that it goes.
func (n *Node) coming() bool {
	return n.State == NodeLaunching || n.State == NodeJoining || n.State == NodeStarting
}

func (n *Node) leaving() bool {
	return n.State == NodeClosed || n.State == NodeLeaving || n.State == NodeTerminating
}

func nodeOf(n *plan.Node, price Price) *Node {
	node := &Node{Key: n.Key(), Name: n.Name, Claim: n.Claim, Pool: n.Pool, InstanceType: n.InstanceType, CapacityType: n.CapacityType, Zone: n.Zone,
		Arch: n.Labels["kubernetes.io/arch"], State: stateOf(n), Note: noteOf(n), Created: n.Created, Price: price,
		Allocatable: amountsOf(n.Allocatable), Promised: len(n.Promised), Replacement: n.Replacement, Pods: make([]Pod, 0, len(n.Pods))}
	if asked := waitsFor(n); asked != nil {
		node.Approval = asked.ID
	}
	var requested plan.Resources
	for _, p := range n.Pods {
		node.Pods = append(node.Pods, podOf(p))
		if p.Class != nil && !p.Terminal {
			requested = requested.Add(p.Class.Requests)
		}
	}
	slices.SortFunc(node.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	node.Requested = amountsOf(requested)
	node.Fill = fillOf(node.Requested, node.Allocatable)
	return node
}

func stateOf(n *plan.Node) NodeState {
	switch {
	case n.Terminating:
		return NodeTerminating
	case n.Disrupted:
		return NodeClosed
	case n.Deleting:
		return NodeLeaving
	case n.Claim != "" && !n.Launched && n.Name == "":
		return NodeLaunching
	case n.Claim != "" && !n.Registered:
		return NodeJoining
	case n.Claim != "" && !n.Initialized:
		return NodeStarting
	case !n.Ready:
		return NodeNotReady
	case n.Cordoned:
		return NodeCordoned
	}
	return NodeServing
}

// waitsFor returns the approval that the node's disruption waits for, nil if there is none. Its workflow ends it in time, so no
// clock is asked.
func waitsFor(n *plan.Node) *karpv1.Approval {
	at := slices.IndexFunc(n.Approvals, func(a karpv1.Approval) bool { return a.State == karpv1.ApprovalWaiting })
	if at < 0 {
		return nil
	}
	return &n.Approvals[at]
}

func noteOf(n *plan.Node) string {
	asked := waitsFor(n)
	switch {
	case asked != nil:
		return fmt.Sprintf("waits for approval (%s) since %s: tenon approve %s", asked.Reason, asked.Since.UTC().Format(time.RFC3339), asked.ID)
	case n.Drifted:
		return "has drifted: " + n.DriftedFor
	case !n.EndsAt.IsZero():
		return "ends at " + n.EndsAt.UTC().Format(time.RFC3339)
	case n.Misprotected != "":
		return "has an invalid karpenter.sh/do-not-disrupt: " + n.Misprotected
	case n.DoNotDisrupt:
		return "is protected from disruption by " + cmp.Or(n.Protection, "karpenter.sh/do-not-disrupt")
	}
	return ""
}

// same says that two views of a node do not differ.
func (n *Node) same(other *Node) bool {
	return n.plain() == other.plain() && n.Allocatable.equal(other.Allocatable) && n.Requested.equal(other.Requested) && slices.Equal(n.Pods, other.Pods)
}

// plain are the fields of a node that can be compared directly.
type plain struct {
	key, name, claim, pool, instanceType, capacityType, zone, arch, note, replacement, approval string
	state                                                                                       NodeState
	created                                                                                     int64
	price                                                                                       Price
	fill                                                                                        Fill
	promised                                                                                    int
}

func (n *Node) plain() plain {
	return plain{n.Key, n.Name, n.Claim, n.Pool, n.InstanceType, n.CapacityType, n.Zone, n.Arch, n.Note, n.Replacement, n.Approval, n.State, n.Created.UnixNano(), n.Price,
		n.Fill, n.Promised}
}

// Details are what is shown of one node only when somebody looks at it.
type Details struct {
	*Node
	ProviderID string            `json:"providerID,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Taints     []string          `json:"taints,omitempty"`
	// Expires is when the node expires; zero if it does not.
	Expires time.Time `json:"expires,omitzero"`
	// LastPodEvent is when a pod last arrived on the node or left it.
	LastPodEvent time.Time `json:"lastPodEvent,omitzero"`
}

// DetailsOf returns the details of a node of a snapshot. node is the snapshot's, seen is its view.
func DetailsOf(node *plan.Node, seen *Node) Details {
	d := Details{Node: seen, ProviderID: node.ProviderID, Labels: maps.Clone(node.Labels), Expires: node.ExpiresAt(), LastPodEvent: node.LastPodEvent}
	for _, taint := range node.Taints {
		d.Taints = append(d.Taints, taint.ToString())
	}
	return d
}
