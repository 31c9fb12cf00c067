package aws_test

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/tenon-sh/tenon/cloud/aws/cleanup"
)

// TestCleanupFindsWhatTheProviderMakes launches instances and removes them as if the cluster were gone: nothing that the
// provider makes may lack the tags by which tenon cleanup recognises it.
func TestCleanupFindsWhatTheProviderMakes(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	for _, capacityType := range []string{"on-demand", "spot"} {
		spec := a.spec(class, capacityType, 1)
		spec.CapacityType = capacityType
		for i := range spec.Offerings {
			spec.Offerings[i].CapacityType = capacityType
		}
		request, err := a.provider.PrepareLaunch(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		request.Token = capacityType
		if _, err := a.provider.Launch(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	made := append(a.others().left(), a.Alive()...)
	if len(made) < 4 {
		t.Fatalf("the provider made only %v", made)
	}
	cfg, err := config.LoadDefaultConfig(t.Context(), a.admin()...)
	if err != nil {
		t.Fatal(err)
	}
	account := cleanup.New(cfg, "blue")
	found, err := account.Find(t.Context(), func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if found.Status != "ACTIVE" || len(found.Unknown) > 0 {
		t.Errorf("the cluster is %q, unknown are %v", found.Status, found.Unknown)
	}
	var names []string
	for _, item := range found.Items {
		if item.Kind == cleanup.KindLaunchTemplate {
			names = append(names, item.Name)
		} else {
			names = append(names, item.ID)
		}
		if item.Kind == cleanup.KindInstance && (item.PricePerHour <= 0 || item.CapacityType == "") {
			t.Errorf("%s costs %g", item.ID, item.PricePerHour)
		}
	}
	slices.Sort(names)
	slices.Sort(made)
	if !slices.Equal(names, made) {
		t.Errorf("found %v, but the provider made %v", names, made)
	}
}
