package worker

import "testing"

func TestFeatureGates(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		why, text string
		want      FeatureGates
		fails     bool
	}{
		{why: "nothing is asked for", text: "", want: FeatureGates{}, fails: false},
		{why: "one", text: "NodeRepair=true", want: FeatureGates{NodeRepair: true}, fails: false},
		{why: "both, with spaces", text: "NodeRepair=true, SpotToSpotConsolidation=true",
			want: FeatureGates{NodeRepair: true, SpotToSpotConsolidation: true}, fails: false},
		{why: "turned off", text: "NodeRepair=false", want: FeatureGates{}, fails: false},
		{why: "Karpenter's own default, what has no effect included",
			text: "NodeOverlay=false,NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=true",
			want: FeatureGates{SpotToSpotConsolidation: true}, fails: false},
		{why: "what is always on", text: "StaticCapacity=false", want: FeatureGates{}, fails: true},
		{why: "overlays", text: "NodeOverlay=true", want: FeatureGates{NodeOverlay: true}, fails: false},
		{why: "devices by claim", text: "DynamicResources=true", want: FeatureGates{DynamicResources: true}, fails: false},
		{why: "what there is not", text: "NodeClassCEL=true", want: FeatureGates{}, fails: true},
		{why: "a gate nobody knows", text: "Drift=true", want: FeatureGates{}, fails: true},
		{why: "neither true nor false", text: "NodeRepair", want: FeatureGates{}, fails: true},
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
