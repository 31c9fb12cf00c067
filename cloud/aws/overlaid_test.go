package aws_test

import (
	"testing"

	"github.com/tenon-sh/tenon/cloud"
)

// TestLaunchByOverlaidPrices launches the type that a NodeOverlay makes the cheapest, although EC2 charges more for it
// than for another.
func TestLaunchByOverlaidPrices(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	spec := a.spec(class, "group-1", 1)
	spec.Prices = map[cloud.OfferingKey]float64{}
	for _, key := range spec.Offerings {
		if key.InstanceType == "m5.large" {
			spec.Prices[key] = 0.001
		}
	}
	request, err := a.provider.PrepareLaunch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, override := range detailsOf(t, request).Overrides {
		if overlaid := override.InstanceType == "m5.large"; overlaid != (override.Price == 0.001) {
			t.Errorf("%s in %s has the price %g", override.InstanceType, override.Zone, override.Price)
		}
	}
	request.Token = "token"
	result, err := a.provider.Launch(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Instances[0].InstanceType; got != "m5.large" {
		t.Errorf("launched %s, want the m5.large whose price is overlaid", got)
	}
}
