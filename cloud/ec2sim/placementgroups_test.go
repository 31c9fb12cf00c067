package ec2sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// placementGroup makes a placement group and returns its id.
func (a *account) placementGroup(t *testing.T, name string, strategy ec2types.PlacementStrategy, partitions int32) string {
	t.Helper()
	in := &ec2.CreatePlacementGroupInput{GroupName: aws.String(name), Strategy: strategy}
	if partitions > 0 {
		in.PartitionCount = aws.Int32(partitions)
	}
	out, err := a.ec2.CreatePlacementGroup(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.PlacementGroup.GroupId)
}

// place launches count instances of a type in a zone.
func (a *account) place(t *testing.T, itype, zone string, count int32, change func(*ec2.RunInstancesInput)) ([]ec2types.Instance, error) {
	t.Helper()
	in := &ec2.RunInstancesInput{
		MinCount: aws.Int32(count), MaxCount: aws.Int32(count), InstanceType: ec2types.InstanceType(itype),
		ImageId: aws.String(a.image(t, "x86_64")), SubnetId: aws.String(a.subnets(t)[zone]),
	}
	change(in)
	out, err := a.ec2.RunInstances(ctx(t), in)
	if err != nil {
		return nil, err
	}
	return out.Instances, nil
}

func into(group string) func(*ec2.RunInstancesInput) {
	return func(in *ec2.RunInstancesInput) { in.Placement = &ec2types.Placement{GroupId: aws.String(group)} }
}

// The rules of "Placement strategies for your placement groups" (EC2 User Guide) about single launches: for each, one that
// violates it and one that just complies.
func TestWhatAPlacementGroupTakes(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	cluster := a.placementGroup(t, "cluster", ec2types.PlacementStrategyCluster, 0)
	spread := a.placementGroup(t, "spread", ec2types.PlacementStrategySpread, 0)
	three := a.placementGroup(t, "three", ec2types.PlacementStrategyPartition, 3)
	two := a.placementGroup(t, "two", ec2types.PlacementStrategyPartition, 2)
	at := func(placement ec2types.Placement) func(*ec2.RunInstancesInput) {
		return func(in *ec2.RunInstancesInput) { in.Placement = &placement }
	}
	spot := func(group string, then ec2types.InstanceInterruptionBehavior) func(*ec2.RunInstancesInput) {
		return func(in *ec2.RunInstancesInput) {
			in.Placement = &ec2types.Placement{GroupId: aws.String(group)}
			in.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot,
				SpotOptions: &ec2types.SpotMarketOptions{InstanceInterruptionBehavior: then}}
		}
	}
	for reason, tc := range map[string]struct {
		itype  string
		change func(*ec2.RunInstancesInput)
		code   string // of the refusal; empty means that the launch is accepted
	}{
		"a cluster group by id":             {itype: "m5.large", change: into(cluster)},
		"a cluster group by name":           {itype: "m5.large", change: at(ec2types.Placement{GroupName: aws.String("cluster")})},
		"a group by id and by name":         {itype: "m5.large", change: at(ec2types.Placement{GroupName: aws.String("cluster"), GroupId: aws.String(cluster)}), code: "InvalidParameterCombination"},
		"a group that does not exist":       {itype: "m5.large", change: into("pg-0123456789abcdef0"), code: "InvalidPlacementGroup.Unknown"},
		"burstable in a cluster group":      {itype: "t3.large", change: into(cluster), code: "InvalidParameterCombination"},
		"M7i-flex in a cluster group":       {itype: "m7i-flex.large", change: into(cluster), code: "InvalidParameterCombination"},
		"burstable in a spread group":       {itype: "t3.large", change: into(spread)},
		"burstable in a partition group":    {itype: "t3.large", change: into(three)},
		"dedicated in a cluster group":      {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(cluster), Tenancy: ec2types.TenancyDedicated})},
		"dedicated in a spread group":       {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(spread), Tenancy: ec2types.TenancyDedicated}), code: "InvalidParameterCombination"},
		"dedicated in one of two partition": {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(two), Tenancy: ec2types.TenancyDedicated})},
		"dedicated in one of three":         {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(three), Tenancy: ec2types.TenancyDedicated}), code: "InvalidParameterCombination"},
		"a host in a group":                 {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(cluster), Tenancy: ec2types.TenancyHost}), code: "InvalidParameterCombination"},
		"the last partition":                {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(three), PartitionNumber: aws.Int32(3)})},
		"a partition too many":              {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(three), PartitionNumber: aws.Int32(4)}), code: "InvalidParameterValue"},
		"a partition of a spread group":     {itype: "m5.large", change: at(ec2types.Placement{GroupId: aws.String(spread), PartitionNumber: aws.Int32(1)}), code: "InvalidParameterCombination"},
		"a partition of nothing":            {itype: "m5.large", change: at(ec2types.Placement{PartitionNumber: aws.Int32(1)}), code: "InvalidParameterCombination"},
		"spot that is terminated":           {itype: "m5.large", change: spot(spread, ec2types.InstanceInterruptionBehaviorTerminate)},
		"spot that is stopped":              {itype: "m5.large", change: spot(spread, ec2types.InstanceInterruptionBehaviorStop), code: "InvalidParameterCombination"},
		"spot that is hibernated":           {itype: "m5.large", change: spot(cluster, ec2types.InstanceInterruptionBehaviorHibernate), code: "InvalidParameterCombination"},
	} {
		_, err := a.place(t, tc.itype, "us-east-1a", 1, func(in *ec2.RunInstancesInput) {
			tc.change(in)
			in.DryRun = aws.Bool(true)
		})
		want := tc.code
		if want == "" {
			want = "DryRunOperation"
		}
		t.Run(reason, func(t *testing.T) { wantCode(t, err, want) })
	}
}

// TestWherePlacementGroupsPutInstances fills groups, and reads from DescribeInstances where the instances are.
func TestWherePlacementGroupsPutInstances(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	cluster := a.placementGroup(t, "cluster", ec2types.PlacementStrategyCluster, 0)
	spread := a.placementGroup(t, "spread", ec2types.PlacementStrategySpread, 0)
	parts := a.placementGroup(t, "parts", ec2types.PlacementStrategyPartition, 3)

	if _, err := a.place(t, "m5.large", "us-east-1b", 1, into(cluster)); err != nil {
		t.Fatal(err)
	}
	_, err := a.place(t, "m5.large", "us-east-1a", 1, into(cluster))
	wantCode(t, err, "InvalidPlacementGroup.InUse")
	if _, err := a.place(t, "c5.large", "us-east-1b", 20, into(cluster)); err != nil {
		t.Errorf("more in the zone of a cluster group: %v", err)
	}

	seven, err := a.place(t, "m5.large", "us-east-1a", 7, into(spread))
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.place(t, "c5.large", "us-east-1a", 1, into(spread))
	wantCode(t, err, "InsufficientInstanceCapacity")
	if _, err := a.place(t, "m5.large", "us-east-1b", 7, into(spread)); err != nil {
		t.Errorf("seven in another zone: %v", err)
	}
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: []string{*seven[0].InstanceId}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.place(t, "m5.large", "us-east-1a", 1, into(spread)); err != nil {
		t.Errorf("the place of one that has ended: %v", err)
	}

	if _, err := a.place(t, "m5.large", "us-east-1a", 6, into(parts)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.place(t, "m5.large", "us-east-1c", 1, func(in *ec2.RunInstancesInput) {
		in.Placement = &ec2types.Placement{GroupName: aws.String("parts"), PartitionNumber: aws.Int32(2)}
	}); err != nil {
		t.Fatal(err)
	}
	out, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{filterOf("placement-group-name", "parts")}})
	if err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			if aws.ToString(i.Placement.GroupId) != parts || aws.ToString(i.Placement.GroupName) != "parts" {
				t.Errorf("%s is in %+v", *i.InstanceId, i.Placement)
			}
			numbers = append(numbers, fmt.Sprint(aws.ToInt32(i.Placement.PartitionNumber)))
		}
	}
	slices.Sort(numbers)
	if want := []string{"1", "1", "2", "2", "2", "3", "3"}; !slices.Equal(numbers, want) {
		t.Errorf("partitions %v, want %v", numbers, want)
	}
	one, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{filterOf("placement-partition-number", "3")}})
	if err != nil || len(one.Reservations) != 1 || len(one.Reservations[0].Instances) != 2 {
		t.Errorf("instances of partition 3: %+v, %v", one, err)
	}
}

// TestAFleetIntoAPlacementGroup has a fleet fill a spread group over all zones, and keep a cluster group in one.
func TestAFleetIntoAPlacementGroup(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for name, tc := range map[string]struct {
		strategy  ec2types.PlacementStrategy
		made      int
		zones     int
		errorCode string
	}{
		"spread":  {strategy: ec2types.PlacementStrategySpread, made: 21, zones: 3, errorCode: "InsufficientInstanceCapacity"},
		"cluster": {strategy: ec2types.PlacementStrategyCluster, made: 30, zones: 1, errorCode: "InvalidPlacementGroup.InUse"},
	} {
		group := a.placementGroup(t, name, tc.strategy, 0)
		if _, err := a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name),
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String(a.image(t, "x86_64")), Placement: &ec2types.LaunchTemplatePlacementRequest{GroupId: aws.String(group)}}}); err != nil {
			t.Fatal(err)
		}
		out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 30, ec2types.DefaultTargetCapacityTypeOnDemand,
			a.override(t, "m5.large", "us-east-1a"), a.override(t, "m5.large", "us-east-1b"), a.override(t, "m5.large", "us-east-1c")))
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for _, set := range out.Instances {
			made += len(set.InstanceIds)
		}
		if made != tc.made || len(out.Instances) != tc.zones {
			t.Errorf("%s: %d instances in %d zones, want %d in %d", name, made, len(out.Instances), tc.made, tc.zones)
		}
		for _, e := range out.Errors {
			if aws.ToString(e.ErrorCode) != tc.errorCode {
				t.Errorf("%s: error %s: %s", name, *e.ErrorCode, *e.ErrorMessage)
			}
		}
		if len(out.Errors) == 0 {
			t.Errorf("%s: no error says where there was no room", name)
		}
	}
}

// TestPlacementOfAnOverride has overrides of a fleet name what its launch template may name: EC2 takes the group alone.
func TestPlacementOfAnOverride(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	parts := a.placementGroup(t, "parts", ec2types.PlacementStrategyPartition, 3)
	template := func(name string, placement *ec2types.LaunchTemplatePlacementRequest) {
		t.Helper()
		if _, err := a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name),
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String(a.image(t, "x86_64")), Placement: placement}}); err != nil {
			t.Fatal(err)
		}
	}
	template("plain", nil)
	template("second", &ec2types.LaunchTemplatePlacementRequest{GroupId: aws.String(parts), PartitionNumber: aws.Int32(2)})
	for reason, tc := range map[string]struct {
		template  string
		placement *ec2types.Placement
		// partition is that of the instance if it is the only one possible, and code that of the refusal.
		partition int32
		code      string
	}{
		"the template names the partition":    {template: "second", partition: 2},
		"the override names the group":        {template: "plain", placement: &ec2types.Placement{GroupId: aws.String(parts)}},
		"the override names the partition":    {template: "plain", placement: &ec2types.Placement{GroupId: aws.String(parts), PartitionNumber: aws.Int32(2)}, code: "InvalidParameterCombination"},
		"the override names another one":      {template: "second", placement: &ec2types.Placement{PartitionNumber: aws.Int32(3)}, code: "InvalidParameterCombination"},
		"the override names the tenancy":      {template: "plain", placement: &ec2types.Placement{Tenancy: ec2types.TenancyDedicated}, code: "InvalidParameterCombination"},
		"the override names a Dedicated Host": {template: "plain", placement: &ec2types.Placement{HostId: aws.String("h-0")}, code: "InvalidParameterCombination"},
	} {
		override := a.override(t, "m5.large", "us-east-1a")
		override.Placement = tc.placement
		out, err := a.ec2.CreateFleet(ctx(t), fleetInput(tc.template, 1, ec2types.DefaultTargetCapacityTypeOnDemand, override))
		if tc.code != "" {
			wantCode(t, err, tc.code)
			continue
		}
		if err != nil || len(out.Instances) != 1 {
			t.Fatalf("%s: %v, %+v", reason, err, out)
		}
		found, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{InstanceIds: out.Instances[0].InstanceIds})
		if err != nil {
			t.Fatal(err)
		}
		placed := found.Reservations[0].Instances[0].Placement
		if aws.ToString(placed.GroupId) != parts || tc.partition > 0 && aws.ToInt32(placed.PartitionNumber) != tc.partition {
			t.Errorf("%s: it is in %+v", reason, placed)
		}
	}
}

// TestPlacementGroupsAreDescribed makes, finds and deletes placement groups.
func TestPlacementGroupsAreDescribed(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Faults: ec2sim.Faults{PlacementGroupLag: ec2sim.Duration(time.Minute)}})
	create := func(in *ec2.CreatePlacementGroupInput) error { return second(a.ec2.CreatePlacementGroup(ctx(t), in)) }
	named := func(name string, strategy ec2types.PlacementStrategy) *ec2.CreatePlacementGroupInput {
		return &ec2.CreatePlacementGroupInput{GroupName: aws.String(name), Strategy: strategy}
	}
	tagged := named("parts", ec2types.PlacementStrategyPartition)
	tagged.TagSpecifications = []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypePlacementGroup, Tags: []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}}}
	if err := create(tagged); err != nil {
		t.Fatal(err)
	}
	spread := a.placementGroup(t, "spread", ec2types.PlacementStrategySpread, 0)
	eight, counted, leveled := named("eight", ec2types.PlacementStrategyPartition), named("counted", ec2types.PlacementStrategyCluster), named("leveled", ec2types.PlacementStrategyCluster)
	eight.PartitionCount, counted.PartitionCount, leveled.SpreadLevel = aws.Int32(8), aws.Int32(2), ec2types.SpreadLevelRack
	for reason, tc := range map[string]struct {
		in   *ec2.CreatePlacementGroupInput
		code string
	}{
		"a name twice":                 {in: named("parts", ec2types.PlacementStrategyCluster), code: "InvalidPlacementGroup.Duplicate"},
		"eight partitions":             {in: eight, code: "InvalidParameterValue"},
		"partitions of a cluster":      {in: counted, code: "InvalidParameterCombination"},
		"a spread level of a cluster":  {in: leveled, code: "InvalidParameterCombination"},
		"a strategy that is not there": {in: named("x", "scatter"), code: "InvalidParameterValue"},
	} {
		err := create(tc.in)
		t.Run(reason, func(t *testing.T) { wantCode(t, err, tc.code) })
	}
	for reason, tc := range map[string]struct {
		in   *ec2.DescribePlacementGroupsInput
		want []string
		code string
	}{
		"all":                {in: &ec2.DescribePlacementGroupsInput{}, want: []string{"parts", "spread"}},
		"by name":            {in: &ec2.DescribePlacementGroupsInput{GroupNames: []string{"parts"}}, want: []string{"parts"}},
		"by id":              {in: &ec2.DescribePlacementGroupsInput{GroupIds: []string{spread}}, want: []string{"spread"}},
		"by strategy":        {in: &ec2.DescribePlacementGroupsInput{Filters: []ec2types.Filter{filterOf("strategy", "spread")}}, want: []string{"spread"}},
		"by spread level":    {in: &ec2.DescribePlacementGroupsInput{Filters: []ec2types.Filter{filterOf("spread-level", "rack")}}, want: []string{"spread"}},
		"by tag":             {in: &ec2.DescribePlacementGroupsInput{Filters: []ec2types.Filter{filterOf("tag:team", "blue")}}, want: []string{"parts"}},
		"those that are new": {in: &ec2.DescribePlacementGroupsInput{Filters: []ec2types.Filter{filterOf("state", "available")}}},
		"an unknown name":    {in: &ec2.DescribePlacementGroupsInput{GroupNames: []string{"none"}}, code: "InvalidPlacementGroup.Unknown"},
		"an unknown id":      {in: &ec2.DescribePlacementGroupsInput{GroupIds: []string{"pg-0123456789abcdef0"}}, code: "InvalidPlacementGroup.Unknown"},
	} {
		out, err := a.ec2.DescribePlacementGroups(ctx(t), tc.in)
		if tc.code != "" {
			wantCode(t, err, tc.code)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		var names []string
		for _, g := range out.PlacementGroups {
			names = append(names, aws.ToString(g.GroupName))
		}
		slices.Sort(names)
		if !slices.Equal(names, tc.want) {
			t.Errorf("%s: %v, want %v", reason, names, tc.want)
		}
	}
	_, err := a.place(t, "m5.large", "us-east-1a", 1, into(spread))
	wantCode(t, err, "InvalidPlacementGroup.Unknown") // it is pending
	a.clock.Advance(time.Minute)
	made, err := a.place(t, "m5.large", "us-east-1a", 1, into(spread))
	if err != nil {
		t.Fatal(err)
	}
	remove := func() error {
		return second(a.ec2.DeletePlacementGroup(ctx(t), &ec2.DeletePlacementGroupInput{GroupName: aws.String("spread")}))
	}
	wantCode(t, remove(), "InvalidPlacementGroup.InUse")
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: []string{*made[0].InstanceId}}); err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(10 * time.Minute)
	if err := remove(); err != nil {
		t.Error(err)
	}
	wantCode(t, remove(), "InvalidPlacementGroup.Unknown")
}
