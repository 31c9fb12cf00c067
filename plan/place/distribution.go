package place

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/devices"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Distribution places pod groups on nodes that exist or are on their way, and puts pods that find no room there into
// demand chunks that are to be bought. It chooses domains pod by pod, in the order of the pod groups; what is bought
// later fills them.
type Distribution struct {
	Market    *market.Market
	Topology  *rules.Topology
	PodGroups []*PodGroup
	Existing  []*ExistingNode
	byKey     map[string]*ExistingNode
	// waiting are the pods that need a place, and Home is the pod group of each.
	waiting []*model.Pod
	Home    map[*model.Pod]*PodGroup
	// open are the existing nodes whose machine is not known yet.
	open []*ExistingNode
	// takers are the existing nodes that pod groups of one kind may use, by domains.
	takers map[string][]domainChoice
	// turns counts the pod groups that were placed.
	turns      int
	Placements []model.Placement
	Chunks     []*DemandChunk
	// BuysNothing says that only existing nodes may be used. A preference is then given up only if nothing that can be
	// bought would meet it.
	BuysNothing bool
}

// NewDistribution prepares a distribution of pods over existing nodes and what can be bought. waiting are the pods that
// need a place now.
func NewDistribution(in *model.Input, pods, waiting []*model.Pod, byPriority bool) *Distribution {
	book, t := rules.Volumes(in.Snapshot), rules.NewTopology(in.Snapshot.Namespaces)
	known := devices.NewIndex(in, pods)
	podGroups := podGroupsOf(in, book, known, t, pods, byPriority)
	m := market.NewMarket(in, dimensionsOf(in, podGroups), asksFor(podGroups, in.Snapshot.LabelKeys.Tenancy))
	m.Book, m.Hosts, m.Devices = book, t.Hosts, known
	stockDevices(m, podGroups)
	market.TellRemote(m, waiting)
	if len(t.Groups) > 0 {
		t.Survey(in.Snapshot, waiting)
	}
	d := &Distribution{Market: m, Topology: t, PodGroups: podGroups, Home: map[*model.Pod]*PodGroup{}, waiting: waiting,
		Existing: existingNodesOf(m), byKey: map[string]*ExistingNode{}, takers: map[string][]domainChoice{}}
	for _, it := range podGroups {
		it.weigh(m)
		for _, pod := range it.Pods {
			d.Home[pod] = it
		}
	}
	for _, s := range d.Existing {
		d.byKey[s.Node.Key()], s.topology, s.Tally = s, t, make([]int32, t.Hosts)
		if s.options != nil {
			d.open = append(d.open, s)
		}
	}
	for _, g := range t.Groups {
		for host, n := range g.Counts {
			if s := d.byKey[host]; s != nil && g.Host >= 0 {
				s.Tally[g.Host] = int32(n)
			}
		}
	}
	return d
}

// dimensionsOf numbers the resources that matter to an input's pods.
func dimensionsOf(in *model.Input, podGroups []*PodGroup) *market.Dimensions {
	var classes []*model.Class
	for _, it := range podGroups {
		classes = append(classes, it.Class)
	}
	for _, set := range in.Snapshot.DaemonSets {
		classes = append(classes, set.Class)
	}
	dims := market.NewDimensions(classes, hostCapsOf(podGroups)...)
	for _, it := range podGroups {
		if it.Devices.Allocates() && !slices.Contains(dims.Claims, it.Devices.Key) {
			dims.Claims = append(dims.Claims, it.Devices.Key)
		}
	}
	return dims
}

// stockDevices works out for how many pods of each kind of claims every machine has devices.
func stockDevices(m *market.Market, podGroups []*PodGroup) {
	needs, requests := map[string]*devices.Needs{}, map[string][]int64{}
	for _, it := range podGroups {
		if !it.Devices.Allocates() {
			continue
		}
		if request, key := m.Dims.Vector(it.Class.Requests), it.Devices.Key; requests[key] == nil || solve.Fits(request, requests[key]) {
			needs[key], requests[key] = &it.Devices, request
		}
	}
	market.StockDevices(m, needs, requests)
}

// asksFor says whether any pods ask for values of a label, or are to be spread over them.
func asksFor(podGroups []*PodGroup, label string) bool {
	about := func(c model.Condition) bool { return c.Key == label }
	return slices.ContainsFunc(podGroups, func(it *PodGroup) bool {
		return slices.ContainsFunc(it.terms, func(t model.Term) bool { return slices.ContainsFunc(t, about) }) ||
			slices.ContainsFunc(it.Class.Spread, func(s corev1.TopologySpreadConstraint) bool { return s.TopologyKey == label })
	})
}

// kind distinguishes pod groups that ask for different labels of a node, or tolerate different taints.
func (it *PodGroup) kind() string {
	var key strings.Builder
	key.WriteString(rules.SelectionKey(it.Class))
	key.WriteString(rules.TolerationKey(it.Class.Tolerations))
	fmt.Fprintf(&key, "\x00%s\x00%v\x00%v", it.Volumes.Key+"\x00"+it.Devices.Key, it.wary, model.AsksDevice(it.Class))
	for _, t := range it.terms[:min(1, len(it.terms))] {
		for i := range t[len(it.base[0]):] {
			key.WriteString(t[len(it.base[0])+i].ID())
		}
	}
	return key.String()
}

// domainOf returns the domain of an existing node, as far as it is known.
func (d *Distribution) domainOf(s *ExistingNode, key string) (string, bool) {
	value, has := rules.Domain(s.Node, key)
	if !has && s.options != nil {
		if values := slices.Compact(d.Market.ZoneValues(s.zones, key)); len(values) == 1 {
			return values[0], values[0] != ""
		}
	}
	if !has && s.Node.Zone != "" && (key == corev1.LabelTopologyZone || !s.Node.Initialized && model.NormalizedKey(key) == corev1.LabelTopologyZone) {
		return s.Node.Zone, true
	}
	return value, has
}
