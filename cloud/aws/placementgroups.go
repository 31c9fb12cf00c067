package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/singleflight"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

const (
	// refreshPlacementGroup is how old what is known of a placement group may be. If EC2 cannot be asked, it is used for as
	// long as keepPlacementGroup. Both are Karpenter's (pkg/cache).
	refreshPlacementGroup, keepPlacementGroup = time.Minute, 24 * time.Hour

	// groupNotReady is the reason of a class whose placement group is not there.
	groupNotReady = "PlacementGroupNotReady"
	// spreadGroupFull is in the message of a launch into a spread placement group that has all the instances in the zone that
	// EC2 allows. The code is that of insufficient capacity (Karpenter, pkg/errors).
	spreadGroupFull = "limit of instances in this spread placement group"
)

// placementGroup is a placement group of EC2.
type placementGroup struct {
	id       string
	state    types.PlacementGroupState
	strategy types.PlacementStrategy
	count    int // of partitions
}

// groupID returns the id of a group, "" without one.
func (g *placementGroup) groupID() string {
	if g == nil {
		return ""
	}
	return g.id
}

// partitions returns the numbers of the partitions, as the values of their label; nil for other strategies.
func (g *placementGroup) partitions() []string {
	if g == nil || g.strategy != types.PlacementStrategyPartition {
		return nil
	}
	var numbers []string
	for i := range g.count {
		numbers = append(numbers, strconv.Itoa(i+1))
	}
	return numbers
}

// label returns the labels of a node in the group.
func (g *placementGroup) label(labels map[string]string) map[string]string {
	if g == nil {
		return labels // shared by all classes
	}
	labels = maps.Clone(labels)
	labels[awsv1.LabelPlacementGroupID] = g.id
	return labels
}

// supports reports whether an instance type can be launched into the group.
func (g *placementGroup) supports(strategies []types.PlacementGroupStrategy) bool {
	return g == nil || slices.Contains(strategies, types.PlacementGroupStrategy(g.strategy))
}

// key is everything about a group on which the nodes of a class depend.
func (g *placementGroup) key() string {
	if g == nil {
		return ""
	}
	return fmt.Sprint(g.id, g.strategy, g.count)
}

// groupName is how a class names its placement group: by one of the two.
type groupName struct{ id, name string }

func (n groupName) String() string { return n.id + n.name }

// placementGroups knows the placement groups that node classes name. EC2NodeClass has no place for them in its status, so
// they are looked up when they are needed, at most once a minute.
type placementGroups struct {
	api    *calls.EC2
	flight singleflight.Group
	// fresh has what EC2 said within the last minute, nil if it has no such group, and last the group that it had last.
	fresh, last *ttlCache[groupName, *placementGroup]
}

func newPlacementGroups(api *calls.EC2, now func() time.Time) *placementGroups {
	return &placementGroups{
		api:   api,
		fresh: newTTLCache[groupName, *placementGroup](refreshPlacementGroup, 256, now),
		last:  newTTLCache[groupName, *placementGroup](keepPlacementGroup, 256, now),
	}
}

// of returns the group that a class launches into, and nil if it names none. If EC2 cannot be asked, the group is the last one
// that is known. A class whose group does not exist, or is not available, is not ready.
func (p *placementGroups) of(ctx context.Context, class *awsv1.EC2NodeClass) (*placementGroup, error) {
	if class.Spec.PlacementGroupSelector == nil {
		return nil, nil
	}
	name := nameOf(class.Spec.PlacementGroupSelector)
	found, err := p.find(ctx, name)
	if err != nil {
		if last, known := p.last.get(name); known {
			return last, nil
		}
		return nil, err
	}
	if found == nil || found.state != types.PlacementGroupStateAvailable {
		return nil, notReady("DescribePlacementGroups", groupNotReady, fmt.Sprintf("spec.placementGroupSelector: no placement group %q is available", name))
	}
	return found, nil
}

// nameOf returns how a selector names its group.
func nameOf(selector *awsv1.PlacementGroupSelector) groupName {
	if id := aws.ToString(selector.ID); id != "" {
		return groupName{id: id}
	}
	return groupName{name: aws.ToString(selector.Name)}
}

// find returns the group with a name or id, whatever its state, and nil if EC2 has none.
func (p *placementGroups) find(ctx context.Context, name groupName) (*placementGroup, error) {
	if found, known := p.fresh.get(name); known {
		return found, nil
	}
	found, err, _ := p.flight.Do(name.id+"/"+name.name, func() (any, error) { return p.describe(ctx, name) })
	if err != nil {
		return nil, err
	}
	group := found.(*placementGroup)
	p.fresh.put(name, group)
	if group != nil {
		p.last.put(name, group)
	}
	return group, nil
}

func (p *placementGroups) describe(ctx context.Context, name groupName) (*placementGroup, error) {
	input := &ec2.DescribePlacementGroupsInput{GroupNames: []string{name.name}}
	if name.id != "" {
		input = &ec2.DescribePlacementGroupsInput{GroupIds: []string{name.id}}
	}
	out, err := p.api.DescribePlacementGroups(ctx, input)
	switch {
	case hasCode(err, "InvalidPlacementGroup.Unknown", "InvalidPlacementGroupId.Malformed"):
		return nil, nil
	case err != nil:
		return nil, classify("DescribePlacementGroups", err)
	case len(out.PlacementGroups) == 0:
		return nil, nil
	}
	group := out.PlacementGroups[0]
	return &placementGroup{
		id: aws.ToString(group.GroupId), state: group.State, strategy: group.Strategy,
		count: int(aws.ToInt32(group.PartitionCount)),
	}, nil
}
