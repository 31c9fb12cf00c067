package status

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
)

const (
	// eventShiftActive says that traffic is shifted away from a zone: nothing is launched there, and no node there is disrupted.
	eventShiftActive = "ZonalShiftActive"
	// eventShiftCleared says that traffic is no longer shifted away from a zone.
	eventShiftCleared = "ZonalShiftCleared"
)

// shiftsEvery is the interval between looks at the zones from which traffic is shifted away.
const shiftsEvery = 30 * time.Second

// ZonalShiftMirror is the part of the mirror that ZonalShifts reads.
type ZonalShiftMirror interface {
	watched
	NodePools() []*karpv1.NodePool
	NodeClass(name string) cloud.NodeClass
}

// ZonalShifts records an Event on every NodePool that can use a zone when traffic is shifted away from it, and when it comes
// back. After a restart, shifts in force are recorded again.
type ZonalShifts struct {
	mirror ZonalShiftMirror
	// zoneID is the label with the id of a zone.
	zoneID string
	// types returns the instance types of a class.
	types  func(ctx context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error)
	events record.EventRecorder
	log    *zap.Logger
	now    func() time.Time
	// told are the shifted zones of each NodePool that its Events name, with their ids.
	told map[types.UID]map[string]string
}

// NewZonalShifts returns the ZonalShifts of a cluster; Run does the work. types returns the instance types of a class.
func NewZonalShifts(keys cloud.LabelKeys, mirror ZonalShiftMirror, types func(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error), events record.EventRecorder, log *zap.Logger) *ZonalShifts {
	return &ZonalShifts{zoneID: keys.ZoneID, mirror: mirror, types: types, events: events, log: log, now: time.Now}
}

// Run records Events until ctx ends.
func (s *ZonalShifts) Run(ctx context.Context) error {
	return loop{what: "zonal shifts", rest: statusEvery, kinds: []cluster.EventKind{cluster.PoolEdited, cluster.ClassChanged}, look: s.pass}.run(ctx, s.mirror, s.log)
}

// pass compares the shifts of every NodePool with those that it was told of, and returns when to look again.
func (s *ZonalShifts) pass(ctx context.Context) (time.Duration, error) {
	told := map[types.UID]map[string]string{}
	for _, pool := range s.mirror.NodePools() {
		before := s.told[pool.UID]
		shifted, known := s.shifted(ctx, pool)
		if !known {
			shifted = before
		}
		if len(shifted) > 0 {
			told[pool.UID] = shifted
		}
		for _, zone := range slices.Sorted(maps.Keys(shifted)) {
			if before[zone] == "" {
				s.events.Eventf(pool, corev1.EventTypeWarning, eventShiftActive, "Traffic is shifted away from zone %s (%s): nothing is launched there, and no node there is disrupted", zone, shifted[zone])
			}
		}
		for _, zone := range slices.Sorted(maps.Keys(before)) {
			if shifted[zone] == "" {
				s.events.Eventf(pool, corev1.EventTypeNormal, eventShiftCleared, "Traffic is no longer shifted away from zone %s (%s)", zone, before[zone])
			}
		}
	}
	s.told = told
	return shiftsEvery, nil
}

// shifted returns the zones of a NodePool from which traffic is shifted away, with their ids, and false if what its class
// offers is not known.
func (s *ZonalShifts) shifted(ctx context.Context, pool *karpv1.NodePool) (map[string]string, bool) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil || s.mirror.NodeClass(ref.Name) == nil {
		return nil, false
	}
	sold, err := s.types(ctx, s.mirror.NodeClass(ref.Name))
	if err != nil {
		return nil, false
	}
	shifted := map[string]string{}
	for _, typ := range sold {
		for i := range typ.Offerings {
			o := &typ.Offerings[i]
			if s.now().Before(o.ShiftedUntil) && shifted[o.Zone] == "" && s.uses(pool, o) {
				shifted[o.Zone] = o.ZoneID
			}
		}
	}
	return shifted, true
}

// uses reports whether the requirements of a NodePool admit the zone of an offering.
func (s *ZonalShifts) uses(pool *karpv1.NodePool, o *cloud.Offering) bool {
	labels := map[string]string{corev1.LabelTopologyZone: o.Zone, s.zoneID: o.ZoneID}
	var term corev1.NodeSelectorTerm
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if _, zonal := labels[r.Key]; zonal {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: r.Key, Operator: r.Operator, Values: r.Values})
		}
	}
	if len(term.MatchExpressions) == 0 {
		return true
	}
	matches, err := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}).
		Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
	return matches && err == nil
}
