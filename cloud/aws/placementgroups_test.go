package aws_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// group makes a placement group and returns its id.
func (a *account) group(name string, strategy types.PlacementStrategy, partitions int32) string {
	a.t.Helper()
	in := &ec2.CreatePlacementGroupInput{GroupName: &name, Strategy: strategy}
	if partitions > 0 {
		in.PartitionCount = &partitions
	}
	out, err := a.ec2.CreatePlacementGroup(a.t.Context(), in)
	if err != nil {
		a.t.Fatal(err)
	}
	return awssdk.ToString(out.PlacementGroup.GroupId)
}

// placedClass returns a resolved class in a placement group.
func (a *account) placedClass(name string, selector awsv1.PlacementGroupSelector) *awsv1.EC2NodeClass {
	a.t.Helper()
	class := a.NodeClass()
	class.Name, class.Spec.PlacementGroupSelector = name, &selector
	a.resolve(a.provider, class)
	if !class.IsTrue("Ready") {
		a.t.Fatalf("the class %s is not ready: %+v", name, class.Status.Conditions)
	}
	return class
}

// launchIn launches count m5.large or m6g.large of a class in some zones.
func (a *account) launchIn(class *awsv1.EC2NodeClass, group, partition string, count int, zones ...string) (cloud.LaunchResult, error) {
	a.t.Helper()
	spec := cloud.LaunchSpec{Group: group, Count: count, Class: class, NodePool: "default", CapacityType: "on-demand", Partition: partition}
	for _, name := range []string{"m6g.large", "m5.large"} {
		for _, zone := range zones {
			spec.Offerings = append(spec.Offerings, cloud.OfferingKey{InstanceType: name, Zone: zone, CapacityType: "on-demand"})
		}
	}
	request, err := a.provider.PrepareLaunch(a.t.Context(), spec)
	if err != nil {
		return cloud.LaunchResult{}, err
	}
	request.Token = "token-" + group
	return a.provider.Launch(a.t.Context(), request)
}

// openZones returns the zones in which a class has anything to launch at the moment.
func openZones(t *testing.T, provider *aws.Provider, class *awsv1.EC2NodeClass) []string {
	t.Helper()
	found, err := provider.InstanceTypes(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, typ := range found {
		for _, o := range typ.Offerings {
			open[o.Zone] = open[o.Zone] || o.Available
		}
	}
	var zones []string
	for zone, is := range open {
		if is {
			zones = append(zones, strings.TrimPrefix(zone, "us-east-1"))
		}
	}
	slices.Sort(zones)
	return zones
}

// TestLaunchesIntoPlacementGroups launches classes of every strategy, and reads what was launched from EC2.
func TestLaunchesIntoPlacementGroups(t *testing.T) {
	t.Parallel()
	a := newAccountWith(t, "")
	near, apart, parts := a.group("near", types.PlacementStrategyCluster, 0), a.group("apart", types.PlacementStrategySpread, 0), a.group("parts", types.PlacementStrategyPartition, 3)
	for _, test := range []struct {
		reason   string
		selector awsv1.PlacementGroupSelector
		group    string
		// partition is what the launch asks for, partitions what the class offers, and number the partition that results.
		partition  string
		partitions []string
		number     string
		// burstable says that t3.large is offered.
		burstable bool
		// want are parameters of the launch template. An empty value means that the parameter must not be there.
		want map[string]string
	}{
		{reason: "cluster", selector: awsv1.PlacementGroupSelector{Name: awssdk.String("near")}, group: near,
			want: map[string]string{"GroupId": near, "GroupName": "", "PartitionNumber": "", "Tenancy": "default"}},
		{reason: "spread", selector: awsv1.PlacementGroupSelector{ID: &apart}, group: apart, burstable: true,
			want: map[string]string{"GroupId": apart, "PartitionNumber": ""}},
		{reason: "partition", selector: awsv1.PlacementGroupSelector{ID: &parts}, group: parts, burstable: true, partitions: []string{"1", "2", "3"}, number: "1",
			want: map[string]string{"GroupId": parts, "PartitionNumber": ""}},
		{reason: "one partition", selector: awsv1.PlacementGroupSelector{Name: awssdk.String("parts")}, group: parts, burstable: true, partition: "3",
			partitions: []string{"1", "2", "3"}, number: "3", want: map[string]string{"GroupId": parts, "PartitionNumber": "3"}},
	} {
		class := a.placedClass("default", test.selector)
		found, err := a.provider.InstanceTypes(t.Context(), class)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range found {
			if typ.PlacementGroup != test.group || typ.Labels[awsv1.LabelPlacementGroupID] != test.group || !slices.Equal(typ.Partitions, test.partitions) {
				t.Fatalf("%s: %s is in the group %q, labelled %q, with the partitions %v", test.reason, typ.Name, typ.PlacementGroup, typ.Labels[awsv1.LabelPlacementGroupID], typ.Partitions)
			}
		}
		if burstable := slices.ContainsFunc(found, func(i *cloud.InstanceType) bool { return i.Name == "t3.large" }); burstable != test.burstable {
			t.Errorf("%s: t3.large is offered: %t, want %t", test.reason, burstable, test.burstable)
		}
		a.sim.KeepParameters("CreateLaunchTemplate")
		result, err := a.launchIn(class, strings.ReplaceAll(test.reason, " ", "-"), test.partition, 1, "us-east-1a")
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		calls := a.sim.Calls("CreateLaunchTemplate")
		for name, want := range test.want {
			if got := calls[len(calls)-1].Parameters["LaunchTemplateData.Placement."+name]; got != want {
				t.Errorf("%s: %s is %q, want %q", test.reason, name, got, want)
			}
		}
		if launched := result.Instances[0]; launched.PlacementGroup != test.group || launched.Partition != test.partition {
			t.Errorf("%s: launched into %q, partition %q", test.reason, launched.PlacementGroup, launched.Partition)
		}
		read, err := a.provider.Instances(t.Context(), cloud.Query{IDs: []string{result.Instances[0].ID}})
		if err != nil || len(read) != 1 || read[0].PlacementGroup != test.group || read[0].Partition != test.number {
			t.Errorf("%s: EC2 says %+v, %v; want the group %s and the partition %q", test.reason, read, err, test.group, test.number)
		}
	}
}

// TestFullPlacementGroups fills groups in one zone. Nothing more is offered there to classes of the group, whatever the type,
// and everything to others, until it may have changed.
func TestFullPlacementGroups(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		strategy types.PlacementStrategy
		// inA and then are how many are launched, into zone a and then into the zone that is refused.
		inA, then int
		refused   string
		code      string
		open      []string
	}{
		"seven of a spread group in a zone": {strategy: types.PlacementStrategySpread, inA: 7, then: 1, refused: "us-east-1a", code: "InsufficientInstanceCapacity", open: []string{"b", "c"}},
		"a cluster group in another zone":   {strategy: types.PlacementStrategyCluster, inA: 1, then: 1, refused: "us-east-1b", code: "InvalidPlacementGroup.InUse", open: []string{"a", "c"}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			group := a.group("ours", test.strategy, 0)
			class, other := a.placedClass("placed", awsv1.PlacementGroupSelector{ID: &group}), a.NodeClass()
			a.resolve(a.provider, other)
			if _, err := a.launchIn(class, "first", "", test.inA, "us-east-1a"); err != nil {
				t.Fatal(err)
			}
			if zones := openZones(t, a.provider, class); !slices.Equal(zones, []string{"a", "b", "c"}) {
				t.Errorf("before anything is refused, the zones are %v", zones)
			}
			result, err := a.launchIn(class, "second", "", test.then, test.refused)
			if cloud.KindOf(err) != cloud.InsufficientCapacity {
				t.Fatalf("the group is full: %+v, %v", result, err)
			}
			var types []string
			for _, refusal := range result.Refused {
				if refusal.Zone != test.refused || refusal.Code != test.code || refusal.PlacementGroup != group {
					t.Errorf("refused %+v", refusal)
				}
				types = append(types, refusal.InstanceType)
			}
			if slices.Sort(types); !slices.Equal(types, []string{"m5.large", "m6g.large"}) {
				t.Errorf("refused %v: the limit is the group's, not one type's", types)
			}
			if zones := openZones(t, a.provider, class); !slices.Equal(zones, test.open) {
				t.Errorf("zones %v, want %v", zones, test.open)
			}
			if zones := openZones(t, a.provider, other); !slices.Equal(zones, []string{"a", "b", "c"}) {
				t.Errorf("a class without the group has the zones %v", zones)
			}
			if _, err := a.launchIn(other, "third", "", 1, test.refused); err != nil {
				t.Errorf("a launch outside the group: %v", err)
			}
			a.Advance(4 * time.Minute)
			if zones := openZones(t, a.provider, class); !slices.Equal(zones, []string{"a", "b", "c"}) {
				t.Errorf("after a while, the zones are %v", zones)
			}
		})
	}
}

// TestCapacityOfAPlacementGroup has a pool without capacity refuse a launch into a group, and one outside it.
func TestCapacityOfAPlacementGroup(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	group := a.group("ours", types.PlacementStrategySpread, 0)
	class, other := a.placedClass("placed", awsv1.PlacementGroupSelector{ID: &group}), a.NodeClass()
	a.resolve(a.provider, other)
	a.change(func(f *ec2sim.Faults) {
		f.Capacity = []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: "m*.large", Zone: "us-east-1a"}}}
	})
	open := func(class *awsv1.EC2NodeClass, zone string) bool {
		found, err := a.provider.InstanceTypes(t.Context(), class)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(found, func(i *cloud.InstanceType) bool { return i.Name == "m5.large" })
		return slices.ContainsFunc(found[at].Offerings, func(o cloud.Offering) bool {
			return o.Zone == zone && o.CapacityType == "on-demand" && o.Available
		})
	}
	if _, err := a.launchIn(class, "first", "", 1, "us-east-1a"); cloud.KindOf(err) != cloud.InsufficientCapacity {
		t.Fatal(err)
	}
	if open(class, "us-east-1a") || !open(class, "us-east-1b") || !open(other, "us-east-1a") {
		t.Error("what is refused in the group is refused there alone")
	}
	a.Advance(2 * time.Minute)
	if _, err := a.launchIn(other, "second", "", 1, "us-east-1a"); cloud.KindOf(err) != cloud.InsufficientCapacity {
		t.Fatal(err)
	}
	a.Advance(2 * time.Minute)
	if open(class, "us-east-1a") || open(other, "us-east-1a") {
		t.Error("what is refused outside the group is refused in it as well")
	}
	a.Advance(2 * time.Minute)
	if !open(class, "us-east-1a") || !open(other, "us-east-1a") {
		t.Error("three minutes later, both may ask again")
	}
}

// TestPlacementGroupsThatAreNotThere checks what a class says whose group is missing or not available, and that it recovers.
func TestPlacementGroupsThatAreNotThere(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		selector awsv1.PlacementGroupSelector
		pending  bool
		says     []string
	}{
		"an unknown name":  {selector: awsv1.PlacementGroupSelector{Name: awssdk.String("none")}, says: []string{`"none"`, "spec.placementGroupSelector.name", "create it"}},
		"an unknown id":    {selector: awsv1.PlacementGroupSelector{ID: awssdk.String("pg-0123456789abcdef0")}, says: []string{"pg-0123456789abcdef0", "spec.placementGroupSelector.id"}},
		"a malformed id":   {selector: awsv1.PlacementGroupSelector{ID: awssdk.String("pg-x")}, says: []string{"pg-x", "spec.placementGroupSelector.id"}},
		"a group too new":  {selector: awsv1.PlacementGroupSelector{Name: awssdk.String("new")}, pending: true, says: []string{`"new"`, "pending", "spec.placementGroupSelector.name"}},
		"one that belongs": {selector: awsv1.PlacementGroupSelector{Name: awssdk.String("new")}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			if test.pending {
				a.change(func(f *ec2sim.Faults) { f.PlacementGroupLag = ec2sim.Duration(30 * time.Second) })
			}
			a.group("new", types.PlacementStrategySpread, 0)
			class := a.NodeClass()
			class.Spec.PlacementGroupSelector = &test.selector
			a.resolve(a.provider, class)
			got := meta.FindStatusCondition(class.Status.Conditions, awsv1.ConditionTypePlacementGroupReady)
			if test.says == nil {
				if got == nil || got.Status != metav1.ConditionTrue || !class.IsTrue("Ready") {
					t.Errorf("condition %+v", got)
				}
				return
			}
			if got == nil || got.Status != metav1.ConditionFalse || got.Reason != "PlacementGroupNotFound" || class.IsTrue("Ready") {
				t.Fatalf("condition %+v", got)
			}
			for _, part := range test.says {
				if !strings.Contains(got.Message, part) {
					t.Errorf("the message %q does not name %s", got.Message, part)
				}
			}
			if _, err := a.provider.InstanceTypes(t.Context(), class); cloud.KindOf(err) != cloud.NodeClassNotReady {
				t.Errorf("instance types of such a class: %v", err)
			}
			if test.pending {
				a.Advance(2 * time.Minute)
				if a.resolve(a.provider, class); !class.IsTrue("Ready") {
					t.Errorf("the group is there: %+v", class.Status.Conditions)
				}
			}
		})
	}
}

// TestPlacementGroupsOutliveAnOutage uses the last known group while EC2 cannot be asked.
func TestPlacementGroupsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	group := a.group("ours", types.PlacementStrategySpread, 0)
	class := a.placedClass("default", awsv1.PlacementGroupSelector{Name: awssdk.String("ours")})
	a.change(func(f *ec2sim.Faults) {
		f.Errors = []ec2sim.ErrorFault{{Action: "DescribePlacementGroups", Code: "InternalError"}}
	})
	a.Advance(time.Hour)
	found, err := a.provider.InstanceTypes(t.Context(), class)
	if err != nil || found[0].PlacementGroup != group {
		t.Errorf("during an outage: %v", err)
	}
	if _, err := a.newProvider().InstanceTypes(t.Context(), class); cloud.KindOf(err) != cloud.Transient {
		t.Errorf("a new worker, which knows no group: %v", err)
	}
}

// TestPlacementGroupDrift compares a running instance with its class's group, which somebody replaces by another of its name.
func TestPlacementGroupDrift(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	group := a.group("ours", types.PlacementStrategySpread, 0)
	class := a.placedClass("default", awsv1.PlacementGroupSelector{Name: awssdk.String("ours")})
	node := a.launched(class, a.spec(class, "g", 1))
	node.Claim.Labels[awsv1.LabelPlacementGroupID] = group
	plain := a.NodeClass()
	a.resolve(a.provider, plain)
	outside := a.launched(plain, a.spec(plain, "h", 1))
	drift := func(class *awsv1.EC2NodeClass, node cloud.DriftQuestion) cloud.Drift {
		t.Helper()
		drifts, err := a.newProvider().Drift(t.Context(), class, []cloud.DriftQuestion{node})
		if err != nil {
			t.Fatal(err)
		}
		return drifts[0]
	}
	for reason, test := range map[string]struct {
		class *awsv1.EC2NodeClass
		node  cloud.DriftQuestion
		want  string
	}{
		"in its class's group":           {class: class, node: node},
		"outside, where its class is":    {class: plain, node: outside},
		"outside its class's group":      {class: class, node: outside, want: "PlacementGroupDrift"},
		"in a group that nobody selects": {class: plain, node: node, want: "PlacementGroupDrift"},
	} {
		if got := drift(test.class, test.node); got.Reason != test.want || test.want != "" && !strings.Contains(got.Message, group) {
			t.Errorf("%s: %+v, want %q", reason, got, test.want)
		}
	}
	for _, i := range []cloud.DriftQuestion{node, outside} {
		if err := a.provider.Terminate(t.Context(), []string{i.Instance.ID}); err != nil {
			t.Fatal(err)
		}
	}
	a.Advance(10 * time.Minute)
	if _, err := a.ec2.DeletePlacementGroup(t.Context(), &ec2.DeletePlacementGroupInput{GroupName: awssdk.String("ours")}); err != nil {
		t.Fatal(err)
	}
	if got := drift(class, node); got.Reason != "" {
		t.Errorf("a group that is not there says nothing: %+v", got)
	}
	again := a.group("ours", types.PlacementStrategyCluster, 0)
	if got := drift(class, node); got.Reason != "PlacementGroupDrift" || !strings.Contains(got.Message, group) || !strings.Contains(got.Message, again) {
		t.Errorf("another group of that name: %+v, want drift from %s to %s", got, group, again)
	}
}

// TestTypesThatThePlacementGroupDoesNotTake checks that a class for which there is no type at all names the placement group as
// the reason for some.
func TestTypesThatThePlacementGroupDoesNotTake(t *testing.T) {
	t.Parallel()
	a := newAccountWith(t, "")
	a.group("near", types.PlacementStrategyCluster, 0)
	class := a.NodeClass()
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: awssdk.String("near")}
	class.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{
		{InterfaceType: awsv1.InterfaceTypeInterface}, {NetworkCardIndex: 99, DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeInterface}}
	a.resolve(a.provider, class)
	condition := class.Condition(awsv1.ConditionTypeValidationSucceeded)
	if condition == nil || condition.Status != metav1.ConditionFalse ||
		!strings.Contains(condition.Message, "types cannot be in a placement group of the strategy cluster, which spec.placementGroupSelector names") {
		t.Errorf("the class says %+v; want the field that burstable types do not suit", condition)
	}
}
