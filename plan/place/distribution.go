package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// place is the nodes that are in the same domains.
type place struct {
	values []string
	row    *roomTree
}

// Distribution places pod groups: on nodes that exist or are on their way, and what finds no room there in demand chunks
// that are to be bought. It decides about domains here, pod by pod in the order of the pod groups; what is bought later
// fills them.
type Distribution struct {
	Market    *market.Market
	Topology  *rules.Topology
	PodGroups []*PodGroup
	Existing  []*ExistingNode
	// waiting are the pods that need a place, and home is the pod group of each.
	waiting []*model.Pod
	Home    map[*model.Pod]*PodGroup
	// open are the existing nodes whose machine is not known yet.
	open []*ExistingNode
	// takers are the others that pod groups of one kind may use, by what tells the kinds apart.
	takers map[string]*roomTree
	// places are takers by the domains they are in.
	places map[string][]place
	// turns counts the pod groups that were placed.
	turns      int
	Placements []model.Placement
	Chunks     []*DemandChunk
	// BuysNothing says that only nodes that are there may be used; a preference is then given up only if nothing that can
	// be bought would meet it.
	BuysNothing bool
	// Now is the time of the snapshot.
	Now time.Time
}

// NewDistribution prepares a distribution of pod groups over existing nodes and what can be bought. waiting are the pods that
// need a place.
func NewDistribution(in *model.Input, book *rules.VolumeIndex, t *rules.Topology, podGroups []*PodGroup, waiting []*model.Pod) *Distribution {
	m := market.NewMarket(in, dimensionsOf(in, podGroups))
	m.Book, m.Hosts = book, t.Hosts
	market.TellRemote(m, waiting)
	if len(t.Groups) > 0 {
		t.Survey(in.Snapshot, waiting)
	}
	d := &Distribution{Market: m, Topology: t, PodGroups: podGroups, Home: map[*model.Pod]*PodGroup{}, waiting: waiting, Now: in.Snapshot.Time,
		Existing: existingNodesOf(m, book, t), takers: map[string]*roomTree{}, places: map[string][]place{}}
	for _, it := range podGroups {
		for _, pod := range it.Pods {
			d.Home[pod] = it
		}
	}
	for _, s := range d.Existing {
		if s.options != nil {
			d.open = append(d.open, s)
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
	return market.NewDimensions(classes, hostCapsOf(podGroups)...)
}

// LettingIn are the existing nodes whose machine is known that let the pod group's pods in, were there room.
func (d *Distribution) LettingIn(it *PodGroup) *roomTree {
	if it.known.takers != nil {
		return it.known.takers
	}
	key := it.kind()
	if d.takers[key] == nil {
		var existing []*ExistingNode
		for _, s := range d.Existing {
			if s.options == nil && s.admits(it) {
				existing = append(existing, s)
			}
		}
		if !model.AsksDevice(it.Class) {
			// Whoever can do without devices takes the nodes that have none first.
			slices.SortStableFunc(existing, func(a, b *ExistingNode) int {
				return cmp.Compare(model.Flag(a.Node.Allocatable.HasDevice()), model.Flag(b.Node.Allocatable.HasDevice()))
			})
		}
		d.takers[key] = &roomTree{Slots: existing}
	}
	it.known.takers = d.takers[key]
	return it.known.takers
}

// openTo are the claims without a machine that will let the pod group's pods in.
func (d *Distribution) openTo(it *PodGroup) []*ExistingNode {
	return slices.DeleteFunc(slices.Clone(d.open), func(s *ExistingNode) bool { return !s.willAdmit(it) })
}

// kind tells apart pod groups that ask different labels of a node or tolerate different taints.
func (it *PodGroup) kind() string {
	var key strings.Builder
	key.WriteString(rules.SelectionKey(it.Class))
	key.WriteString(rules.TolerationKey(it.Class.Tolerations))
	fmt.Fprintf(&key, "\x00%s\x00%v\x00%v", it.Volumes.Key, it.wary, model.AsksDevice(it.Class))
	for _, t := range it.terms[:min(1, len(it.terms))] {
		for i := range t[len(it.base[0]):] {
			key.WriteString(t[len(it.base[0])+i].ID())
		}
	}
	return key.String()
}

// domainOf is the domain an existing node is in, as far as it is known.
func (d *Distribution) domainOf(s *ExistingNode, key string) (string, bool) {
	value, has := rules.Domain(s.Node, key)
	if !has && s.options != nil && d.Market.Zonal(key) {
		var values []string
		for z := range d.Market.Zones {
			if s.zones&(1<<z) != 0 {
				values = append(values, d.Market.ZoneLabels[z][key])
			}
		}
		if values = slices.Compact(values); len(values) == 1 {
			return values[0], values[0] != ""
		}
	}
	if !has && s.Node.Zone != "" && (key == corev1.LabelTopologyZone || !s.Node.Initialized && model.NormalizedKey(key) == corev1.LabelTopologyZone) {
		return s.Node.Zone, true
	}
	return value, has
}
