package worker

import "testing"

func TestFeatureGates(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		why, text string
		want      FeatureGates
		fails     bool
	}{
		{"nothing is asked for", "", FeatureGates{}, false},
		{"one", "NodeRepair=true", FeatureGates{NodeRepair: true}, false},
		{"both, with spaces", "NodeRepair=true, SpotToSpotConsolidation=true", FeatureGates{NodeRepair: true, SpotToSpotConsolidation: true}, false},
		{"turned off", "NodeRepair=false", FeatureGates{}, false},
		{"Karpenter's own default, what has no effect included", "NodeOverlay=false,NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=true", FeatureGates{SpotToSpotConsolidation: true}, false},
		{"what is always on", "StaticCapacity=false", FeatureGates{}, true},
		{"overlays", "NodeOverlay=true", FeatureGates{NodeOverlay: true}, false},
		{"what there is not", "NodeClassCEL=true", FeatureGates{}, true},
		{"a gate nobody knows", "Drift=true", FeatureGates{}, true},
		{"neither true nor false", "NodeRepair", FeatureGates{}, true},
	} {
		var got FeatureGates
		err := got.Set(row.text)
		if (err != nil) != row.fails || !row.fails && got != row.want {
			t.Errorf("%s: %q is %+v and fails with %v", row.why, row.text, got, err)
		}
		var again FeatureGates
		if err := again.Set(got.String()); err != nil || again != got {
			t.Errorf("%s: %s reads as %+v: %v", row.why, got.String(), again, err)
		}
	}
}
