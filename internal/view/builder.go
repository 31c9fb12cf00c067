package view

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// Input is what a view is made of.
type Input struct {
	Snapshot *plan.Snapshot
	// Prices may be nil: then none are known.
	Prices Prices
	// Reasons say why pending pods wait, as the planner says it.
	Reasons map[types.UID]string
	// Workflows are those under way, Decisions the last ones, both from the newest; Trouble is why they are missing or old.
	Workflows []*Workflow
	Decisions []*Decision
	Trouble   string
	// Stale is why the snapshot may be old.
	Stale string
}

// Builder makes views of one cluster. It is not safe for concurrent use.
type Builder struct {
	name    string
	last    *Cluster
	nodes   map[string]builtNode
	pending map[types.UID]builtPod
	ledger  Ledger
}

type builtNode struct {
	from  *plan.Node
	price Price
	node  *Node
}

type builtPod struct {
	from             *plan.Pod
	promised, reason string
	pod              *Pod
}

// NewBuilder returns a Builder for the cluster of that name.
func NewBuilder(name string) *Builder { return &Builder{name: name} }

// Build returns the view of an input. It returns the last view again if nothing in it has changed but the time.
func (b *Builder) Build(in Input) *Cluster {
	now := &Cluster{Name: b.name, Time: in.Snapshot.Time, Stale: in.Stale, Workflows: in.Workflows, Decisions: in.Decisions, Trouble: in.Trouble}
	counts := b.buildNodes(now, in)
	b.buildPending(now, in)
	now.Pools = make([]Pool, 0, len(in.Snapshot.NodePools))
	for _, pool := range in.Snapshot.NodePools {
		count := counts[pool.Name]
		if count == nil {
			count = &poolCount{}
		}
		now.Pools = append(now.Pools, poolOf(pool, *count, in.Snapshot.Time))
	}
	now.Pauses = Pauses(in.Snapshot.Pauses, in.Snapshot.NodePools, in.Snapshot.Time)
	now.Cost.Saved, now.Cost.SavedSince = saved(in.Decisions)
	now.Cost.History = b.ledger.samples
	if len(now.Nodes) == 0 || now.Cost.Unpriced < len(now.Nodes) { // before prices are known, there is nothing to remember
		now.Cost.History = b.ledger.Add(in.Snapshot.Time, now.Cost.PerHour)
	}
	if b.last != nil {
		now.Generation = b.last.Generation
		if _, changed := Since(b.last, now); !changed {
			return b.last
		}
	}
	now.Generation++
	b.last = now
	return now
}

// buildNodes fills in the nodes, and what is counted over them. It returns the counts of each pool.
func (b *Builder) buildNodes(now *Cluster, in Input) map[string]*poolCount {
	built := make(map[string]builtNode, len(in.Snapshot.Nodes))
	counts := map[string]*poolCount{}
	now.Nodes = make([]*Node, 0, len(in.Snapshot.Nodes))
	now.Cost.Currency = cloud.Currency("")
	var requested, allocatable Amounts
	for _, from := range in.Snapshot.Nodes {
		var price Price
		if in.Prices != nil {
			price = in.Prices(from)
		}
		one := b.nodes[from.Key()]
		if one.from != from || one.price != price {
			fresh := nodeOf(from, price)
			if one.node == nil || !one.node.same(fresh) {
				one.node = fresh
			}
			one.from, one.price = from, price
		}
		built[from.Key()] = one
		node := one.node
		now.Nodes = append(now.Nodes, node)
		now.Totals.Nodes++
		now.Totals.Pods += len(node.Pods)
		if node.leaving() {
			now.Totals.Leaving++
		}
		if node.coming() {
			now.Totals.Coming++
		}
		if price.PerHour == 0 {
			now.Cost.Unpriced++
		}
		now.Cost.PerHour += price.PerHour
		now.Cost.OnDemand += price.OnDemand
		if node.Zone != "" {
			now.Cost.Currency = cloud.Currency(node.Zone)
		}
		requested.CPU, requested.Memory, requested.Pods = requested.CPU+node.Requested.CPU, requested.Memory+node.Requested.Memory, requested.Pods+node.Requested.Pods
		allocatable.CPU, allocatable.Memory, allocatable.Pods = allocatable.CPU+node.Allocatable.CPU, allocatable.Memory+node.Allocatable.Memory, allocatable.Pods+node.Allocatable.Pods
		if counts[from.Pool] == nil {
			counts[from.Pool] = &poolCount{}
		}
		counts[from.Pool].add(from, price)
	}
	now.Totals.Fill = fillOf(requested, allocatable)
	b.nodes = built
	return counts
}

// buildPending fills in the pods that wait. Virtual pods are left out: nobody has created them.
func (b *Builder) buildPending(now *Cluster, in Input) {
	promised := map[types.UID]string{}
	if len(in.Snapshot.Pending) > 0 {
		for _, node := range in.Snapshot.Nodes {
			for _, pod := range node.Promised {
				promised[pod] = node.Key()
			}
		}
	}
	built := make(map[types.UID]builtPod, len(in.Snapshot.Pending))
	now.Pending = make([]*Pod, 0, len(in.Snapshot.Pending))
	for _, from := range in.Snapshot.Pending {
		if from.Virtual {
			continue
		}
		one := b.pending[from.UID]
		to, reason := promised[from.UID], in.Reasons[from.UID]
		if one.from != from || one.promised != to || one.reason != reason {
			fresh := waitingPod(from, to, reason)
			if one.pod == nil || *one.pod != *fresh {
				one.pod = fresh
			}
			one.from, one.promised, one.reason = from, to, reason
		}
		built[from.UID] = one
		now.Pending = append(now.Pending, one.pod)
	}
	now.Totals.Pending = len(now.Pending)
	slices.SortFunc(now.Pending, byUID)
	b.pending = built
}
