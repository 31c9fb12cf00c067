package aws

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

const stateFilter = "instance-state-name"

// liveStates are the states of instances that are neither shutting down nor terminated.
var liveStates = []string{
	string(types.InstanceStateNamePending), string(types.InstanceStateNameRunning),
	string(types.InstanceStateNameStopping), string(types.InstanceStateNameStopped),
}

// instanceReader asks EC2 about instances.
type instanceReader struct {
	api     *calls.EC2
	subnets *subnetPool
	// launched holds the ids of instances that this worker launched lately and that EC2 has not listed since.
	launched *ttlCache[string, struct{}]
	batch    *batcher[cloud.Instance] // of describeIDs
}

// Instances implements cloud.Provider. It looks ids up together with those of concurrent callers. It passes them as a
// filter and not as the call's list of ids, because a call with a list fails as a whole if EC2 does not know one of its
// ids yet.
func (p *Provider) Instances(ctx context.Context, query cloud.Query) ([]cloud.Instance, error) {
	var found []cloud.Instance
	var err error
	if len(query.IDs) > 0 {
		found, err = p.instances.byID(ctx, query.IDs)
	} else {
		filters := ownershipFilters(p.options.Cluster)
		if query.LaunchGroup != "" {
			filters = append(filters, filter("tag:"+launchGroupTag, query.LaunchGroup))
		}
		states := liveStates
		if query.Terminating {
			states = append(slices.Clone(states), string(types.InstanceStateNameShuttingDown), string(types.InstanceStateNameTerminated))
		}
		found, err = p.instances.describe(ctx, append(filters, filter(stateFilter, states...))...)
	}
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(i cloud.Instance) bool { return !wanted(p.options.Cluster, query, i) })
	slices.SortFunc(found, func(a, b cloud.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// wanted reports whether an instance that EC2 returned is owned by the cluster and matches the query.
func wanted(cluster string, query cloud.Query, i cloud.Instance) bool {
	switch types.InstanceStateName(i.State) {
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
		if !query.Terminating {
			return false
		}
	}
	return isOwned(cluster, i.Tags) && (query.LaunchGroup == "" || i.LaunchGroup == query.LaunchGroup)
}

// byID looks instances up, whoever owns them.
func (r *instanceReader) byID(ctx context.Context, ids []string) ([]cloud.Instance, error) {
	answers, err := r.batch.do(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make([]cloud.Instance, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if instance, ok := answers[id]; ok {
			found = append(found, instance)
		}
	}
	return found, nil
}

// describeIDs looks up the instances of a batch, by id.
func (r *instanceReader) describeIDs(ctx context.Context, ids []string) (map[string]cloud.Instance, error) {
	found := make(map[string]cloud.Instance, len(ids))
	for chunk := range slices.Chunk(ids, maxFilterValues) {
		instances, err := r.describe(ctx, filter("instance-id", chunk...))
		if err != nil {
			return nil, err
		}
		for _, instance := range instances {
			found[instance.ID] = instance
			r.launched.remove(instance.ID)
		}
	}
	return found, nil
}

// describe returns the instances that the filters select, from all pages.
func (r *instanceReader) describe(ctx context.Context, filters ...types.Filter) ([]cloud.Instance, error) {
	var out []cloud.Instance
	pages := ec2.NewDescribeInstancesPaginator(r.api.DescribeInstances, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(500)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeInstances", err)
		}
		for _, reservation := range page.Reservations {
			for i := range reservation.Instances {
				out = append(out, r.read(&reservation.Instances[i]))
			}
		}
	}
	return out, nil
}

// read reduces EC2's description.
func (r *instanceReader) read(in *types.Instance) cloud.Instance {
	out := cloud.Instance{
		ID:           aws.ToString(in.InstanceId),
		InstanceType: string(in.InstanceType),
		CapacityType: karpv1.CapacityTypeOnDemand,
		Image:        aws.ToString(in.ImageId),
		LaunchTime:   aws.ToTime(in.LaunchTime).UTC(),
		Subnet:       aws.ToString(in.SubnetId),
		Tags:         tagMap(in.Tags),
	}
	if in.IamInstanceProfile != nil {
		arn := aws.ToString(in.IamInstanceProfile.Arn)
		out.Profile = arn[strings.LastIndexByte(arn, '/')+1:]
	}
	if in.State != nil {
		out.State = string(in.State.Name)
	}
	if in.InstanceLifecycle == types.InstanceLifecycleTypeSpot || aws.ToString(in.SpotInstanceRequestId) != "" {
		out.CapacityType = karpv1.CapacityTypeSpot
	}
	// An instance that was not launched for a reservation may still run in an open one, but then nothing guarantees its
	// place there. EC2's documentation does not say whether target or preference is reported for an instance that was;
	// Karpenter uses the preference.
	if use := in.CapacityReservationSpecification; use != nil && aws.ToString(in.CapacityReservationId) != "" &&
		(use.CapacityReservationTarget != nil || use.CapacityReservationPreference == types.CapacityReservationPreferenceCapacityReservationsOnly) {
		out.CapacityType, out.Reservation = karpv1.CapacityTypeReserved, aws.ToString(in.CapacityReservationId)
	}
	if in.Placement != nil {
		out.Zone = aws.ToString(in.Placement.AvailabilityZone)
		out.ZoneID = aws.ToString(in.Placement.AvailabilityZoneId)
		out.PlacementGroup = aws.ToString(in.Placement.GroupId)
		if number := aws.ToInt32(in.Placement.PartitionNumber); number > 0 {
			out.Partition = strconv.Itoa(int(number))
		}
	}
	if out.ZoneID == "" {
		out.ZoneID = r.subnets.zoneID(out.Subnet)
	}
	for _, group := range in.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, aws.ToString(group.GroupId))
	}
	slices.Sort(out.SecurityGroups)
	out.ProviderID = providerID(out.Zone, out.ID)
	out.LaunchGroup, out.NodePool = out.Tags[launchGroupTag], out.Tags[awsv1.NodePoolTagKey]
	return out
}

// justLaunched reports whether this worker launched an instance lately and EC2 has not listed it since.
func (r *instanceReader) justLaunched(id string) bool {
	_, ok := r.launched.get(id)
	return ok
}

// providerID returns the Node's spec.providerID for an instance, as AWS's cloud controller writes it.
func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }
