package disrupt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
)

// Observe says, by NodePool, what would be launched and removed now if no pool were only observed. What people have paused
// stays paused. A pool for which nothing would be done is not in the answer.
func Observe(in model.Input) map[string]model.Observation {
	in = unobserved(in)
	found := map[string]model.Observation{}
	static, _ := lifecycle.Static(in)
	packed := place.Pack(in)
	for i, claim := range slices.Concat(static, packed.Claims) {
		o := found[claim.NodePool]
		pods := "for its replicas"
		if i >= len(static) {
			pods = fmt.Sprintf("for %d pods", len(claim.Pods))
		}
		o.Launches, o.PricePerHour, o.Zone = append(o.Launches, fmt.Sprintf("%s %s in %s %s", claim.CapacityType, strings.Join(claim.InstanceTypes[:min(1, len(claim.InstanceTypes))], ""),
			strings.Join(claim.Zones, " or "), pods)), o.PricePerHour+claim.PricePerHour, strings.Join(claim.Zones, " ")
		found[claim.NodePool] = o
	}
	nodes, pools := map[string]*model.Node{}, map[string]*karpv1.NodePool{}
	for _, pool := range in.Snapshot.NodePools {
		pools[pool.Name] = pool
	}
	for _, n := range in.Snapshot.Nodes {
		nodes[n.Key()] = n
		if pool := pools[n.Pool]; pool != nil && forced(n, pool, in.Snapshot) {
			remove(found, n.Pool, fmt.Sprintf("%s: %s, whatever runs on it", DisruptionReasonExpired, n.Key()), 0, n.Zone)
		}
	}
	decided := Disrupt(in)
	for i := range decided.Commands {
		command := &decided.Commands[i]
		if len(command.Nodes) == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s", command.Reason, strings.Join(command.Nodes, ", "))
		if command.Why != "" {
			text += " (" + command.Why + ")"
		}
		remove(found, nodes[command.Nodes[0]].Pool, text, command.SavesPerHour, command.Zone)
	}
	return found
}

// remove adds a removal to what was found for a pool.
func remove(found map[string]model.Observation, pool, text string, saves float64, zone string) {
	o := found[pool]
	o.Removals, o.SavesPerHour = append(o.Removals, text), o.SavesPerHour+saves
	if o.Zone == "" {
		o.Zone = zone
	}
	found[pool] = o
}

// forced says that a node's claim has expired and would go at once.
func forced(n *model.Node, pool *karpv1.NodePool, snapshot *model.Snapshot) bool {
	at := n.ExpiresAt()
	return n.Managed() && !n.Leaving() && !at.IsZero() && !snapshot.Time.Before(at) && !pool.ExpiresGracefully() && snapshot.Closed(DisruptionReasonExpired, pool) == nil
}

// unobserved returns the input with every NodePool as if it were not only observed.
func unobserved(in model.Input) model.Input {
	snapshot := *in.Snapshot
	snapshot.NodePools = slices.Clone(snapshot.NodePools)
	for i, pool := range snapshot.NodePools {
		snapshot.NodePools[i] = acted(pool)
	}
	in.Snapshot, in.Pools = &snapshot, slices.Clone(in.Pools)
	for i := range in.Pools {
		in.Pools[i].NodePool = acted(in.Pools[i].NodePool)
	}
	return in
}

func acted(pool *karpv1.NodePool) *karpv1.NodePool {
	if !pool.Observed() {
		return pool
	}
	changed := *pool
	changed.Annotations = maps.Clone(pool.Annotations)
	delete(changed.Annotations, karpv1.ObserveAnnotationKey)
	return &changed
}

// Describe says what an observation found, in one sentence.
func Describe(o model.Observation) string {
	var parts []string
	list := func(what string, all []string) {
		if len(all) == 0 {
			return
		}
		shown := all[:min(len(all), observationsShown)]
		text := fmt.Sprintf("%s %d: %s", what, len(all), strings.Join(shown, "; "))
		if len(all) > len(shown) {
			text += fmt.Sprintf("; and %d more", len(all)-len(shown))
		}
		parts = append(parts, text)
	}
	list("would launch", o.Launches)
	list("would carry out removals,", o.Removals)
	if o.SavesPerHour > 0 {
		parts = append(parts, "would save "+cloud.Money(o.Zone, o.SavesPerHour)+" an hour")
	}
	return strings.Join(parts, ". ")
}

// observationsShown is how many launches, and how many removals, one sentence lists.
const observationsShown = 5
