package aws

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	gpus := corev1.ResourceList{awsv1.ResourceNVIDIAGPU: resource.MustParse("1")}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	subnets := map[string]awsv1.Subnet{"a": {ID: "subnet-a", Zone: "a"}, "b": {ID: "subnet-b", Zone: "b"}}
	onDemand := func(name, zone string) cloud.OfferingKey {
		return cloud.OfferingKey{InstanceType: name, Zone: zone, CapacityType: "on-demand"}
	}
	spot := func(name, zone string) cloud.OfferingKey {
		return cloud.OfferingKey{InstanceType: name, Zone: zone, CapacityType: "spot"}
	}
	prices := market{
		onDemand: map[string]float64{"x.large": 0.1, "x.xlarge": 0.2, "g.large": 0.05, "x.metal": 0.04},
		spot:     map[spotPool]float64{{"x.large", "a"}: 0.03, {"x.xlarge", "a"}: 0.15, {"x.large", "b"}: 0.08},
	}
	for _, tc := range []struct {
		why          string
		capacityType string
		offerings    []cloud.OfferingKey
		refused      []cloud.OfferingKey
		want         []string
	}{
		{why: "the caller's order is kept", capacityType: "on-demand",
			offerings: []cloud.OfferingKey{onDemand("x.xlarge", "b"), onDemand("x.large", "a")}, want: []string{"x.xlarge/subnet-b", "x.large/subnet-a"}},
		{
			why: "what the caller lists is launched: it knows what was asked for", capacityType: "on-demand",
			offerings: []cloud.OfferingKey{onDemand("x.metal", "a"), onDemand("g.large", "a"), onDemand("x.large", "a")}, want: []string{"x.metal/subnet-a", "g.large/subnet-a", "x.large/subnet-a"},
		},
		{
			why: "one capacity type is bought", capacityType: "spot", offerings: []cloud.OfferingKey{spot("x.large", "a"), onDemand("x.large", "a"), spot("x.xlarge", "a")},
			want: []string{"x.large/subnet-a", "x.xlarge/subnet-a"},
		},
		{
			why: "what was refused a moment ago is left out", capacityType: "spot", offerings: []cloud.OfferingKey{spot("x.large", "a"), spot("x.large", "b")},
			refused: []cloud.OfferingKey{spot("x.large", "a")}, want: []string{"x.large/subnet-b"},
		},
		{why: "no price, no subnet, no such type", capacityType: "spot",
			offerings: []cloud.OfferingKey{spot("x.xlarge", "b"), spot("x.large", "c"), spot("y.large", "a")}},
	} {
		resolved := &resolvedClass{byName: map[string]*classNode{}}
		for _, m := range []*machine{{name: "x.large"}, {name: "x.xlarge"}, {name: "g.large", extended: gpus}, {name: "x.metal", bareMetal: true}} {
			resolved.byName[m.name] = &classNode{machine: m}
		}
		prices.unavailable = newUnavailable(func() time.Time { return now })
		for _, key := range tc.refused {
			prices.unavailable.markOffering(key)
		}
		var got []string
		for _, c := range choose(launchSpec{LaunchSpec: cloud.LaunchSpec{CapacityType: tc.capacityType, Offerings: tc.offerings}}, resolved, subnets, prices) {
			got = append(got, c.key.InstanceType+"/"+c.subnet)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
	}
}

func TestChooseStaysWithinEC2sLimits(t *testing.T) {
	t.Parallel()
	resolved := &resolvedClass{byName: map[string]*classNode{}}
	prices := market{onDemand: map[string]float64{}, unavailable: newUnavailable(time.Now)}
	subnets := map[string]awsv1.Subnet{}
	var offerings []cloud.OfferingKey
	for n := range 80 {
		name := fmt.Sprintf("t%d.large", n)
		resolved.byName[name] = &classNode{machine: &machine{name: name}}
		prices.onDemand[name] = 1
		for _, zone := range []string{"a", "b", "c", "d", "e", "f"} {
			subnets[zone] = awsv1.Subnet{ID: zone, Zone: zone}
			offerings = append(offerings, cloud.OfferingKey{InstanceType: name, Zone: zone, CapacityType: "on-demand"})
		}
	}
	types := make(map[string]bool)
	chosen := choose(launchSpec{LaunchSpec: cloud.LaunchSpec{CapacityType: "on-demand", Offerings: offerings}}, resolved, subnets, prices)
	for _, c := range chosen {
		types[c.key.InstanceType] = true
	}
	if len(chosen) > maxOverrides || len(types) > maxTypes {
		t.Errorf("%d overrides of %d types", len(chosen), len(types))
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code, message string
		kind          cloud.ErrorKind
		reason        string
	}{
		{code: "InsufficientInstanceCapacity", message: "", kind: cloud.InsufficientCapacity, reason: "InsufficientCapacity"},
		{code: "VcpuLimitExceeded", message: "", kind: cloud.InsufficientCapacity, reason: "VCPULimitExceeded"},
		{code: "UnauthorizedOperation", message: "", kind: cloud.Forbidden, reason: "Unauthorized"},
		{code: "RequestLimitExceeded", message: "", kind: cloud.Throttled, reason: "RequestLimitExceeded"},
		{code: "IdempotentParameterMismatch", message: "", kind: cloud.ParameterMismatch, reason: "IdempotentParameterMismatch"},
		{code: "InvalidLaunchTemplateName.NotFoundException", message: "", kind: cloud.StaleRequest, reason: "LaunchTemplateNotFound"},
		{code: "InvalidAMIID.NotFound", message: "", kind: cloud.StaleRequest, reason: "AMINotFound"},
		{code: "InvalidParameterValue", message: "Value (x) for parameter iamInstanceProfile.name is invalid.", kind: cloud.Transient,
			reason: "InstanceProfileNameInvalid"},
		{code: "InvalidParameterValue", message: "something else", kind: cloud.Invalid, reason: "LaunchFailed"},
		{code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", message: "", kind: cloud.InsufficientCapacity, reason: "SpotSLRCreationFailed"},
		{code: "NeverHeardOf", message: "", kind: cloud.Transient, reason: "LaunchFailed"},
	} {
		if got := verdictOfCode(tc.code, tc.message); got.kind != tc.kind || got.reason != tc.reason {
			t.Errorf("%s: %v; want %s, %s", tc.code, got, tc.kind, tc.reason)
		}
	}
}
