package activities

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

func TestClaimNameIsOneEveryTryMakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pool := rapid.StringMatching(`[a-z]([a-z0-9-]{0,30}[a-z0-9])?`).Draw(t, "pool")
		seed := rapid.String().Draw(t, "seed")
		name := claimName(pool, seed)
		if name != claimName(pool, seed) {
			t.Errorf("a second try makes another name than %s", name)
		}
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s cannot be a NodeClaim's name: %v", name, problems)
		}
	})
	names := map[string]bool{}
	for i := range 1000 {
		names[claimName("default", fmt.Sprintf("plan-1/%d", i))] = true
	}
	if len(names) < 990 {
		t.Errorf("a thousand claims have only %d names", len(names))
	}
}

func TestGroupNames(t *testing.T) {
	t.Parallel()
	alike := func(group string, n int) []plan.Claim {
		claims := make([]plan.Claim, n)
		for i := range claims {
			claims[i].Group = group
		}
		return claims
	}
	for _, test := range []struct {
		reason string
		claims []plan.Claim
		want   map[string]int
	}{
		{reason: "alike claims are launched together, others are not", claims: append(alike("a", 3), alike("b", 2)...), want: map[string]int{"p-0": 3, "p-1": 2}},
		{reason: "a group is bounded", claims: alike("a", maxGroup+1), want: map[string]int{"p-0": maxGroup, "p-1": 1}},
		{reason: "a group that is full does not spoil the next", claims: append(alike("a", maxGroup), alike("b", 1)...),
			want: map[string]int{"p-0": maxGroup, "p-1": 1}},
		{reason: "nothing to launch", want: map[string]int{}},
	} {
		got := map[string]int{}
		for _, name := range groupNames("p", test.claims) {
			got[name]++
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

func TestLaunchIsToldWhatConcernsIt(t *testing.T) {
	t.Parallel()
	refused := func(kind, zone, capacity string) workflows.Unavailable {
		return workflows.Unavailable{OfferingKey: cloud.OfferingKey{InstanceType: kind, Zone: zone, CapacityType: capacity}}
	}
	claim := plan.Claim{InstanceTypes: []string{"m5.large", "m5.xlarge"}, Zones: []string{"a", "b"}, CapacityType: "spot"}
	concerns := refused("m5.large", "a", "spot")
	got := concerned([]workflows.Unavailable{concerns, refused("m5.large", "c", "spot"), refused("c5.large", "a", "spot"), refused("m5.large", "a", "on-demand")}, claim)
	if diff := cmp.Diff([]workflows.Unavailable{concerns}, got); diff != "" {
		t.Errorf("a claim allows every type in every zone, so the launch has to know which pairs were refused, and no others (-want +got):\n%s", diff)
	}
}

// TestCreated checks that a second attempt of a plan finds what the first one created, and nothing of other plans.
func TestCreated(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(
		groupClaim("a", "s-1-0", ""), groupClaim("b", "s-1-0", ""), groupClaim("c", "s-1-1", ""),
		groupClaim("of-plan-eleven", "s-11-0", ""), groupClaim("by-hand", "", "")).Build()
	got, err := New(Config{Kube: kube}).creator.created(context.Background(), "s-1")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, group := range got.Groups {
		for _, claim := range group.Claims {
			names[group.Group] = append(names[group.Group], claim.Name)
		}
	}
	if diff := cmp.Diff(map[string][]string{"s-1-0": {"a", "b"}, "s-1-1": {"c"}}, names); diff != "" {
		t.Errorf("groups of the first try (-want +got):\n%s", diff)
	}
	if !got.Again || got.SeenVersion == "" {
		t.Errorf("what the first try has not come to is not planned again, or not after its claims: %+v", got)
	}
}
