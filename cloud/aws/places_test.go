package aws_test

import (
	"testing"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestALocalZone offers what a Local Zone has, on-demand alone, and launches there.
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

// TestSubnetsOfAnotherAccount selects shared subnets by their ids and launches into them, with the rights of deploy/iam.
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
