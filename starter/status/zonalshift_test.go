package status

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
)

// shiftingCloud sells one type in two zones, from which traffic may be shifted away.
type shiftingCloud struct {
	overlayWorld
	shifted map[string]time.Time
}

func (c *shiftingCloud) types(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error) {
	typ := &cloud.InstanceType{Name: "m5.large"}
	for _, zone := range []string{"a", "b"} {
		typ.Offerings = append(typ.Offerings, cloud.Offering{CapacityType: "on-demand", Zone: zone, ZoneID: "az-" + zone, ShiftedUntil: c.shifted[zone]})
	}
	return []*cloud.InstanceType{typ}, nil
}

// TestZonalShiftEvents tells the NodePools that can use a zone, once, when traffic leaves it and when it comes back.
func TestZonalShiftEvents(t *testing.T) {
	t.Parallel()
	both, only := testPool("both"), testPool("only-b")
	both.UID, only.UID = "both", "only-b"
	only.Spec.Template.Spec.Requirements = append(only.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}})
	world := &shiftingCloud{overlayWorld: overlayWorld{pools: []*karpv1.NodePool{both, only}, classes: map[string]cloud.NodeClass{"default": &awsv1.EC2NodeClass{}}}}
	events := record.NewFakeRecorder(10)
	shifts := NewZonalShifts(nodeclass.Labels(), &world.overlayWorld, world.types, events, zaptest.NewLogger(t))
	for _, step := range []struct {
		reason  string
		shifted map[string]time.Time
		want    []string
	}{
		{reason: "nothing is shifted"},
		{reason: "only one NodePool can use the zone", shifted: map[string]time.Time{"a": time.Now().Add(time.Hour)},
			want: []string{"Warning ZonalShiftActive Traffic is shifted away from zone a (az-a): nothing is launched there, and no node there is disrupted"}},
		{reason: "it is told once", shifted: map[string]time.Time{"a": time.Now().Add(time.Hour)}},
		{reason: "a shift ends by itself", shifted: map[string]time.Time{"a": time.Now().Add(-time.Second)},
			want: []string{"Normal ZonalShiftCleared Traffic is no longer shifted away from zone a (az-a)"}},
		{reason: "both NodePools can use this one", shifted: map[string]time.Time{"b": time.Now().Add(time.Hour)},
			want: []string{"Warning ZonalShiftActive Traffic is shifted away from zone b (az-b): nothing is launched there, and no node there is disrupted",
				"Warning ZonalShiftActive Traffic is shifted away from zone b (az-b): nothing is launched there, and no node there is disrupted"}},
	} {
		world.shifted = step.shifted
		if again, err := shifts.pass(t.Context()); err != nil || again != shiftsEvery {
			t.Errorf("%s: again after %s, %v", step.reason, again, err)
		}
		var got []string
		for len(events.Events) > 0 {
			got = append(got, <-events.Events)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
}
