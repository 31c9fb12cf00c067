package aws_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// shiftedZones returns the zones whose offerings are marked as shifted, and those that have an available offering.
func (a *account) shiftedZones(provider *aws.Provider) (shifted, available []string) {
	a.t.Helper()
	types, err := provider.InstanceTypes(a.t.Context(), a.resolvedClass())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, typ := range types {
		for _, o := range typ.Offerings {
			if !o.ShiftedUntil.IsZero() && !slices.Contains(shifted, o.Zone) {
				shifted = append(shifted, o.Zone)
			}
			if o.Available && !slices.Contains(available, o.Zone) {
				available = append(available, o.Zone)
			}
		}
	}
	slices.Sort(shifted)
	slices.Sort(available)
	return shifted, available
}

// TestZonalShift shifts traffic away from a zone and back: nothing is launched there meanwhile.
func TestZonalShift(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	provider := a.newProviderOf(func(o *options) { o.ZonalShift = true })
	if err := a.sim.ShiftZone("us-east-1a", time.Hour); err != nil {
		t.Fatal(err)
	}
	shifted, available := a.shiftedZones(provider)
	if !slices.Equal(shifted, []string{"us-east-1a"}) || slices.Contains(available, "us-east-1a") || len(available) == 0 {
		t.Errorf("shifted away from %v, available in %v", shifted, available)
	}
	launch := func(zone string) error {
		_, err := provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{Group: "in-" + zone, Count: 1, Class: a.resolvedClass(), CapacityType: "on-demand",
			Offerings: []cloud.OfferingKey{{InstanceType: "m5.large", Zone: zone, CapacityType: "on-demand"}}})
		return err
	}
	if err := launch("us-east-1a"); cloud.KindOf(err) != cloud.InsufficientCapacity {
		t.Errorf("a launch in the shifted zone is prepared: %v", err)
	}
	if err := launch("us-east-1b"); err != nil {
		t.Errorf("a launch elsewhere: %v", err)
	}
	if shifted, _ := a.shiftedZones(a.provider); len(shifted) > 0 {
		t.Errorf("a provider that was not asked to look leaves %v alone", shifted)
	}
	if err := a.sim.ShiftZone("us-east-1a", 0); err != nil {
		t.Fatal(err)
	}
	a.Advance(31 * time.Second)
	for late := time.After(30 * time.Second); ; { // the shifts are read again in the background
		shifted, available := a.shiftedZones(provider)
		if len(shifted) == 0 && slices.Contains(available, "us-east-1a") {
			break
		}
		select {
		case <-late:
			t.Fatalf("shifted away from %v, available in %v after the shift", shifted, available)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestKindsOfZonalShifts follows Karpenter (pkg/providers/arczonalshift): every shift that ARC applies counts, whoever started it,
// as far as it is among the resource's zonal shifts. Neither reads the autoshifts.
func TestKindsOfZonalShifts(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		kinds map[string]string // zones by kind
		want  []string
	}{
		"a practice run is a shift":                           {kinds: map[string]string{"PRACTICE_RUN": "us-east-1a"}, want: []string{"us-east-1a"}},
		"a shift by hand overrides a practice run":            {kinds: map[string]string{"PRACTICE_RUN": "us-east-1a", "ZONAL_SHIFT": "us-east-1b"}, want: []string{"us-east-1b"}},
		"an autoshift has a list of its own":                  {kinds: map[string]string{"ZONAL_AUTOSHIFT": "us-east-1a"}},
		"a practice run that an autoshift overrides is none":  {kinds: map[string]string{"ZONAL_AUTOSHIFT": "us-east-1a", "PRACTICE_RUN": "us-east-1b"}},
		"a shift by hand overrides an autoshift and is known": {kinds: map[string]string{"ZONAL_AUTOSHIFT": "us-east-1a", "ZONAL_SHIFT": "us-east-1b"}, want: []string{"us-east-1b"}},
	} {
		a := newAccount(t)
		for kind, zone := range test.kinds {
			if err := a.sim.ShiftZoneAs(zone, kind, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if shifted, _ := a.shiftedZones(a.newProviderOf(func(o *options) { o.ZonalShift = true })); !slices.Equal(shifted, test.want) {
			t.Errorf("%s: shifted away from %v, want %v", reason, shifted, test.want)
		}
	}
}

// TestAShiftEndsWithoutARC lets a shift run out while ARC cannot be asked.
func TestAShiftEndsWithoutARC(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	provider := a.newProviderOf(func(o *options) { o.ZonalShift = true })
	if err := a.sim.ShiftZone("us-east-1a", time.Hour); err != nil {
		t.Fatal(err)
	}
	if shifted, _ := a.shiftedZones(provider); !slices.Equal(shifted, []string{"us-east-1a"}) {
		t.Fatalf("shifted away from %v", shifted)
	}
	if err := a.sim.SetFaults(ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "GetManagedResource", Code: "InternalServerException", Status: 500}}}); err != nil {
		t.Fatal(err)
	}
	a.Advance(time.Hour + time.Second)
	if shifted, available := a.shiftedZones(provider); len(shifted) > 0 || !slices.Contains(available, "us-east-1a") {
		t.Errorf("after the shift it is shifted away from %v, available in %v", shifted, available)
	}
}

// TestUnreadableZonalShift holds that nodes are still launched when ARC cannot be asked: the cluster may not be registered
// there.
func TestUnreadableZonalShift(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if err := a.sim.SetFaults(ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "GetManagedResource", Code: "ResourceNotFoundException", Status: 404}}}); err != nil {
		t.Fatal(err)
	}
	provider := a.newProviderOf(func(o *options) { o.ZonalShift = true })
	if shifted, available := a.shiftedZones(provider); len(shifted) > 0 || !strings.HasPrefix(strings.Join(available, " "), "us-east-1a") {
		t.Errorf("shifted away from %v, available in %v", shifted, available)
	}
}
