package aws_test

import (
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestALocalZone checks that a Local Zone offers only what it has, as on-demand only, and launches there.
func TestALocalZone(t *testing.T) {
	t.Parallel()
	const local = "us-east-1-bos-1a"
	a := startAccount(t, ec2sim.Options{Zones: []string{"us-east-1a", local}})
	class := a.NodeClass()
	a.resolve(a.provider, class)
	offered, err := a.provider.InstanceTypes(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, it := range offered {
		for _, o := range it.Offerings {
			if o.Zone != local {
				continue
			}
			found++
			if it.Name == "m5.large" {
				t.Error("m5.large is offered where it is not")
			}
			if o.CapacityType == "spot" && o.Available {
				t.Errorf("%s is offered as spot", it.Name)
			}
			if o.ZoneID != "use1-bos1-az1" {
				t.Errorf("the zone's id is %s", o.ZoneID)
			}
		}
	}
	if found == 0 {
		t.Fatal("nothing is offered in the Local Zone")
	}
	key := large("on-demand", local)
	key.InstanceType = "c5d.large"
	result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, "g", key))
	if err != nil || len(result.Instances) != 1 || result.Instances[0].Zone != local {
		t.Errorf("launched %+v, %v", result, err)
	}
}

// TestSubnetsOfAnotherAccount selects shared subnets by their ids and launches into them with the permissions of
// deploy/iam.
func TestSubnetsOfAnotherAccount(t *testing.T) {
	t.Parallel()
	a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", SubnetOwner: "210987654321"})
	class := a.NodeClass()
	a.resolve(a.provider, class)
	if class.IsTrue("SubnetsReady") {
		t.Error("the tags of another account select subnets")
	}
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: "subnet-0a5e7e0000000001"}}
	a.resolve(a.provider, class)
	if !class.IsTrue("Ready") {
		t.Fatalf("%+v", class.Status.Conditions)
	}
	result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, "g", large("on-demand", "us-east-1a")))
	if err != nil || len(result.Instances) != 1 {
		t.Errorf("launched %+v, %v", result, err)
	}
}

// TestTheSubnetWithTheMostAddresses has two subnets in a zone. Launches use the one with more free addresses, until the
// CNI plugin of its instances has taken them.
func TestTheSubnetWithTheMostAddresses(t *testing.T) {
	t.Parallel()
	const small, medium = "subnet-0a5e7e0000000004", "subnet-0a5e7e0000000005"
	a := startAccount(t, ec2sim.Options{
		CatalogueFile: "testdata/catalogue.json", CNI: &ec2sim.CNI{WarmENIs: 1},
		Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", CIDR: "192.168.4.0/27"}, {Zone: "us-east-1a", CIDR: "192.168.5.0/26"}}})
	class := a.NodeClass()
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: small}, {ID: medium}}
	a.resolve(a.provider, class)
	launch := func(token string) (string, string) {
		t.Helper()
		result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, token, large("on-demand", "us-east-1a")))
		if err != nil || len(result.Instances) != 1 {
			t.Fatalf("%s: %+v, %v", token, result, err)
		}
		a.Advance(2 * time.Minute) // until the free addresses are read again
		return result.Instances[0].Subnet, result.Instances[0].ID
	}
	subnet, first := launch("first")
	if subnet != medium {
		t.Errorf("the first is in %s; want the larger subnet", subnet)
	}
	if err := a.sim.SetPods(29, first); err != nil { // 30 of 59 addresses
		t.Fatal(err)
	}
	a.Advance(2 * time.Minute)
	if subnet, _ = launch("second"); subnet != medium {
		t.Errorf("the second is in %s; want %s, where 29 addresses are free and not 27", subnet, medium)
	}
	if subnet, _ = launch("third"); subnet != small {
		t.Errorf("the third is in %s; want %s, where 27 addresses are free and not 9", subnet, small)
	}
}

// TestSubnetsWithIPv6AddressesAlone follows Karpenter, which knows nothing of them: they count as subnets with no free address, so
// another subnet of the zone is used, and they are if there is none.
func TestSubnetsWithIPv6AddressesAlone(t *testing.T) {
	t.Parallel()
	const ordinary, native = "subnet-0a5e7e0000000001", "subnet-0a5e7e0000000004"
	a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", IPv6Native: true}}})
	for _, tc := range []struct {
		reason, want string
		selected     []string
	}{
		{reason: "beside another subnet", selected: []string{native, ordinary}, want: ordinary},
		{reason: "alone", selected: []string{native}, want: native},
	} {
		class := a.NodeClass()
		class.Spec.SubnetSelectorTerms = nil
		for _, id := range tc.selected {
			class.Spec.SubnetSelectorTerms = append(class.Spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: id})
		}
		a.resolve(a.provider, class)
		result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, tc.reason, large("on-demand", "us-east-1a")))
		if err != nil || len(result.Instances) != 1 || result.Instances[0].Subnet != tc.want {
			t.Errorf("%s: %+v, %v; want an instance in %s", tc.reason, result, err, tc.want)
		}
	}
}

// TestAnExhaustedSubnet takes the last address of a zone's only subnet between preparing and launching. The launch
// lacks capacity in that zone, and the next one uses another zone.
func TestAnExhaustedSubnet(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	request := a.prepare(a.provider, class, "early", large("on-demand", "us-east-1a"))
	a.change(func(f *ec2sim.Faults) { f.FreeAddresses = map[string]int{"subnet-0a5e7e0000000001": 0} })
	if _, err := a.provider.Launch(t.Context(), request); cloud.ReasonOf(err) != "InsufficientFreeAddressesInSubnet" || cloud.KindOf(err) != cloud.InsufficientCapacity {
		t.Errorf("launching into an exhausted subnet: %v", err)
	}
	result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, "later", large("on-demand", "us-east-1a"), large("on-demand", "us-east-1b")))
	if err != nil || len(result.Instances) != 1 || result.Instances[0].Zone != "us-east-1b" {
		t.Errorf("launched %+v, %v; want us-east-1b", result, err)
	}
}

// TestASubnetWithoutPrefixes launches into a subnet that has free addresses, but not in one piece.
func TestASubnetWithoutPrefixes(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	class.Spec.IPPrefixCount = awssdk.Int32(1)
	a.resolve(a.provider, class)
	a.change(func(f *ec2sim.Faults) {
		f.Fleet = []ec2sim.FleetFault{{PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1a"}, Code: "InsufficientCidrBlocks"}}
	})
	request := a.prepare(a.provider, class, "early", large("on-demand", "us-east-1a"))
	if _, err := a.provider.Launch(t.Context(), request); cloud.ReasonOf(err) != "InsufficientFreeAddressesInSubnet" || cloud.KindOf(err) != cloud.InsufficientCapacity {
		t.Errorf("launching into a subnet without prefixes: %v", err)
	}
	result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, "later", large("on-demand", "us-east-1a"), large("on-demand", "us-east-1b")))
	if err != nil || len(result.Instances) != 1 || result.Instances[0].Zone != "us-east-1b" {
		t.Errorf("launched %+v, %v; want us-east-1b", result, err)
	}
}
