package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// DisruptionReasonOverprovisioned is why a node is removed from a static pool that has more nodes than replicas. No budget
// applies to it, because somebody asked for fewer nodes.
const DisruptionReasonOverprovisioned karpv1.DisruptionReason = "Overprovisioned"

// Shortage is how many nodes a static pool lacks.
type Shortage struct {
	Pool string
	// Nodes is how many may be launched at once; zero if something forbids it.
	Nodes int
	// Forbidden says what keeps the pool from the rest of its replicas; empty where nothing does.
	Forbidden string
}

// Shortages finds the static pools that have fewer nodes than replicas, ordered by name. A node that is being removed does
// not count as a replica, but counts for limits.nodes until it is gone. A node that a Replacement removes counts as a
// replica until the node that replaces it exists: that one is on its way, or will be asked for when this one is gone.
func Shortages(snapshot *model.Snapshot) []Shortage {
	var found []Shortage
	for _, pool := range staticPools(snapshot) {
		nodes := nodesOf(snapshot, pool.Name)
		staying := len(slices.DeleteFunc(slices.Clone(nodes), func(n *model.Node) bool { return n.Deleting }))
		lacking := int(*pool.Spec.Replicas) - staying - unreplaced(nodes)
		if lacking <= 0 {
			continue
		}
		shortage := Shortage{Pool: pool.Name, Nodes: lacking}
		if limit, limited := pool.Spec.Limits[karpv1.ResourceNodes]; limited {
			if room := max(0, int(limit.Value())-len(nodes)); room < lacking {
				shortage.Nodes = room
				shortage.Forbidden = fmt.Sprintf("limit nodes %d leaves %d", limit.Value(), room)
			}
		}
		if why := closedToStatic(snapshot, pool); why != "" {
			shortage.Nodes, shortage.Forbidden = 0, why
		}
		found = append(found, shortage)
	}
	return found
}

// unreplaced counts the nodes of a pool that a Replacement removes and that have no replacement yet.
func unreplaced(nodes []*model.Node) int {
	missing := map[string]int{}
	for _, n := range nodes {
		switch {
		case n.Replacement == "":
		case n.Deleting:
			missing[n.Replacement]++
		default:
			missing[n.Replacement]--
		}
	}
	count := 0
	for _, n := range missing {
		count += max(0, n)
	}
	return count
}

// replaces says that a node is being launched to replace one that is not leaving yet.
func replaces(n *model.Node, nodes []*model.Node) bool {
	return n.Replacement != "" && !n.Initialized && !n.Leaving() &&
		!slices.ContainsFunc(nodes, func(other *model.Node) bool { return other.Replacement == n.Replacement && other.Leaving() })
}

// closedToStatic says why nothing may be launched for a static pool whatever the cloud has; empty if something may.
func closedToStatic(snapshot *model.Snapshot, pool *karpv1.NodePool) string {
	if stop := snapshot.Stopped(karpv1.PauseProvisioning, pool); stop != nil {
		return stop.String()
	}
	dynamic := *pool
	dynamic.Spec.Replicas = nil
	return market.ClosedBecause(model.Pool{NodePool: &dynamic})
}

// Static plans the nodes that static pools lack. Their claims carry the requirements of the pool's template unchanged: the
// launch chooses instance types and zones. Only the capacity type is settled, as the best one with an available offering,
// so that a pool whose spot capacity is refused goes on with on-demand. Pools that can buy nothing now are returned with
// the reason.
func Static(in model.Input) (claims []model.Claim, refused []model.Reason) {
	pools := map[string]model.Pool{}
	for _, pool := range in.Pools {
		pools[pool.NodePool.Name] = pool
	}
	for _, shortage := range Shortages(in.Snapshot) {
		if shortage.Forbidden != "" {
			refused = append(refused, model.Reason{NodePool: shortage.Pool, Message: shortage.Forbidden})
		}
		pool, known := pools[shortage.Pool]
		if shortage.Nodes == 0 || !known {
			continue
		}
		claim, why := StaticClaim(&in, pool)
		if why != "" {
			refused = append(refused, model.Reason{NodePool: shortage.Pool, Message: why})
			continue
		}
		claims = append(claims, slices.Repeat([]model.Claim{claim}, shortage.Nodes)...)
	}
	return claims, refused
}

// StaticClaim returns the claim for one more node of a static pool, or says why none can be launched.
func StaticClaim(in *model.Input, pool model.Pool) (claim model.Claim, why string) {
	if why := cmp.Or(closedToStatic(in.Snapshot, pool.NodePool), pool.Problem); why != "" {
		return model.Claim{}, why
	}
	template := &pool.NodePool.Spec.Template.Spec
	claim = model.Claim{NodePool: pool.NodePool.Name, Requirements: template.Requirements}
	if template.NodeClassRef != nil {
		claim.NodeClass = template.NodeClassRef.Name
	}
	object, err := claim.NodeClaim(pool.NodePool, "")
	if err != nil {
		return model.Claim{}, err.Error()
	}
	keys, err := market.Offerings(in.Snapshot.LabelKeys, object, pool.Types, in.Unavailable, in.Snapshot.Time, in.MinValues)
	if err != nil {
		return model.Claim{}, "no instance type and available offering meets its requirements"
	}
	claim.CapacityType = keys[0].CapacityType
	for _, key := range keys {
		if !slices.Contains(claim.InstanceTypes, key.InstanceType) {
			claim.InstanceTypes = append(claim.InstanceTypes, key.InstanceType)
		}
		if !slices.Contains(claim.Zones, key.Zone) {
			claim.Zones = append(claim.Zones, key.Zone)
		}
	}
	slices.Sort(claim.Zones)
	claim.PricePerHour = priceOf(pool.Types, keys[0])
	ofCapacity := func(r karpv1.NodeSelectorRequirementWithMinValues) bool {
		return karpv1.NormalizedLabelKey(r.Key) == karpv1.CapacityTypeLabelKey
	}
	claim.Requirements = append(slices.DeleteFunc(slices.Clone(template.Requirements), ofCapacity), karpv1.NodeSelectorRequirementWithMinValues{
		Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{claim.CapacityType}})
	claim.Group = claim.LaunchKey()
	return claim, ""
}

func priceOf(types []*cloud.InstanceType, key cloud.OfferingKey) float64 {
	for _, typ := range types {
		for i := range typ.Offerings {
			if o := &typ.Offerings[i]; o.Key(typ) == key {
				return o.Price
			}
		}
	}
	return 0
}

// Overprovision finds the nodes that static pools have beyond their replicas: first those without a machine, then empty
// ones, then those that cost the least to disrupt for the life they have left. Nodes that ask not to be disrupted are last,
// but are removed as well. A node that is being launched to replace another one is not surplus. Nothing is surplus where
// disruption is paused, or no maintenance window is open.
func Overprovision(snapshot *model.Snapshot) []model.Command {
	var commands []model.Command
	for _, pool := range staticPools(snapshot) {
		if snapshot.Closed(DisruptionReasonOverprovisioned, pool) != nil {
			continue
		}
		all := nodesOf(snapshot, pool.Name)
		staying := slices.DeleteFunc(slices.Clone(all), func(n *model.Node) bool { return n.Deleting || replaces(n, all) })
		surplus := len(staying) - int(*pool.Spec.Replicas)
		if surplus <= 0 {
			continue
		}
		slices.SortFunc(staying, func(a, b *model.Node) int { return byLoss(a, b, pool, snapshot.Time) })
		command := model.Command{Reason: DisruptionReasonOverprovisioned}
		for _, n := range staying[:surplus] {
			command.Nodes = append(command.Nodes, n.Key())
		}
		commands = append(commands, command)
	}
	return commands
}

// byLoss orders the nodes of a pool as they are removed.
func byLoss(a, b *model.Node, pool *karpv1.NodePool, now time.Time) int {
	protected := func(n *model.Node) bool {
		return n.Undisruptable(now) || slices.ContainsFunc(n.Pods, func(pod *model.Pod) bool { return pod.Undisruptable(now) })
	}
	stage := func(n *model.Node) int {
		switch {
		case protected(n):
			return 3
		case !n.Launched && n.Name == "":
			return 0
		case DisruptionCost(n) <= 1:
			return 1
		}
		return 2
	}
	loss := func(n *model.Node) float64 {
		// The life that is left is 1 for a new node, or for one that never expires, and 0 for one that is about to expire.
		left := 1.0
		if whole := pool.Spec.Template.Spec.ExpireAfter; !whole.IsNever() && *whole.Duration > 0 {
			left = max(0, min(1, 1-now.Sub(n.Created).Seconds()/whole.Duration.Seconds()))
		}
		return left * DisruptionCost(n)
	}
	return cmp.Or(cmp.Compare(stage(a), stage(b)), cmp.Compare(loss(a), loss(b)), a.Created.Compare(b.Created), strings.Compare(a.Key(), b.Key()))
}

// staticPools returns the static pools, ordered by name, without those being deleted.
func staticPools(snapshot *model.Snapshot) []*karpv1.NodePool {
	static := slices.DeleteFunc(slices.Clone(snapshot.NodePools), func(pool *karpv1.NodePool) bool {
		return pool.Spec.Replicas == nil || !pool.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(static, func(a, b *karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return static
}

// nodesOf are the nodes and claims of a pool.
func nodesOf(snapshot *model.Snapshot, pool string) []*model.Node {
	return slices.DeleteFunc(slices.Clone(snapshot.Nodes), func(n *model.Node) bool { return n.Claim == "" || n.Pool != pool })
}
