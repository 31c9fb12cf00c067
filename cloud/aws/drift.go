package aws

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// The provider's further reasons for drift; they are Karpenter's.
const (
	// driftImage says that the node's image is none of those that the class selects now.
	driftImage = "AMIDrift"
	// driftSecurityGroup says that the instance's security groups are not those that the class selects now.
	driftSecurityGroup = "SecurityGroupDrift"
	// driftSubnet says that the instance's subnet is none of those that the class selects now.
	driftSubnet = "SubnetDrift"
	// driftReservation says that the instance runs in a capacity reservation that the class does not select.
	driftReservation = "CapacityReservationDrift"
	// driftGroup says that the instance is not in the placement group that the class names now.
	driftGroup = "PlacementGroupDrift"
)

// Drift implements cloud.Provider. It compares the parts in Karpenter's order: the class's static fields by their hash,
// image, security groups, subnet, capacity reservation, placement group.
func (p *Provider) Drift(ctx context.Context, given cloud.NodeClass, questions []cloud.DriftQuestion) ([]cloud.Drift, error) {
	class, err := ec2Class(given)
	if err != nil {
		return nil, err
	}
	facts := newDriftFacts(class)
	if len(class.Status.AMIs) > 0 && len(class.Status.Subnets) > 0 {
		resolved, err := p.catalogue.resolve(ctx, class)
		switch {
		case cloud.ReasonOf(err) == groupNotReady: // what it will be is not known, nor which types it takes
		case err != nil:
			return nil, err
		default:
			facts.types, facts.group = resolved.byName, resolved.group
		}
	}
	drifts := make([]cloud.Drift, len(questions))
	for i, question := range questions {
		drifts[i] = facts.drift(question)
	}
	return drifts, nil
}

// driftFacts is what the nodes of a class are compared with.
type driftFacts struct {
	class *awsv1.EC2NodeClass
	// types are the machines as nodes of the class, by name; nil while that is not known.
	types        map[string]*classNode
	group        *placementGroup // known if types are
	images       []string
	groups       []string
	subnets      []string
	reservations []string
}

func newDriftFacts(class *awsv1.EC2NodeClass) *driftFacts {
	facts := &driftFacts{class: class}
	for _, image := range class.Status.AMIs {
		facts.images = append(facts.images, image.ID)
	}
	for _, group := range class.Status.SecurityGroups {
		facts.groups = append(facts.groups, group.ID)
	}
	for _, subnet := range class.Status.Subnets {
		facts.subnets = append(facts.subnets, subnet.ID)
	}
	for _, reservation := range class.Status.CapacityReservations {
		facts.reservations = append(facts.reservations, reservation.ID)
	}
	slices.Sort(facts.groups)
	slices.Sort(facts.subnets)
	return facts
}

// drift compares one node.
func (f *driftFacts) drift(question cloud.DriftQuestion) cloud.Drift {
	claim, instance := question.Claim, question.Instance
	found := func(reason, format string, args ...any) cloud.Drift {
		return cloud.Drift{Reason: reason, Message: fmt.Sprintf("EC2NodeClass %s: ", f.class.Name) + fmt.Sprintf(format, args...)}
	}
	hash, version := claim.Annotations[awsv1.AnnotationEC2NodeClassHash], claim.Annotations[awsv1.AnnotationEC2NodeClassHashVersion]
	now, nowVersion := f.class.Annotations[awsv1.AnnotationEC2NodeClassHash], f.class.Annotations[awsv1.AnnotationEC2NodeClassHashVersion]
	if hash != "" && now != "" && version != "" && version == nowVersion && hash != now {
		return found(cloud.DriftNodeClass, "spec has changed since the claim was made (hash %s, now %s)", hash, now)
	}
	kind, image := f.types[claim.Labels[corev1.LabelInstanceTypeStable]], cmp.Or(instance.Image, claim.Status.ImageID)
	switch {
	case kind != nil && image != "" && image != kind.image:
		return found(driftImage, "status.amis names %s for %s, and the instance runs %s", kind.image, kind.machine.name, image)
	case kind == nil && image != "" && len(f.images) > 0 && !slices.Contains(f.images, image):
		return found(driftImage, "status.amis are [%s], and the instance runs %s", strings.Join(f.images, " "), image)
	case instance.ID == "":
	case len(f.groups) > 0 && !slices.Equal(slices.Sorted(slices.Values(instance.SecurityGroups)), f.groups):
		return found(driftSecurityGroup, "status.securityGroups are [%s], and the instance has [%s]",
			strings.Join(f.groups, " "), strings.Join(instance.SecurityGroups, " "))
	case len(f.subnets) > 0 && !slices.Contains(f.subnets, instance.Subnet):
		return found(driftSubnet, "status.subnets are [%s], and the instance is in %s", strings.Join(f.subnets, " "), instance.Subnet)
	case instance.Reservation != "" && !slices.Contains(f.reservations, instance.Reservation):
		return found(driftReservation, "status.capacityReservations do not name %s, which the instance runs in", instance.Reservation)
	case f.types != nil && claim.Labels[awsv1.LabelPlacementGroupID] != f.group.groupID():
		return found(driftGroup, "spec.placementGroupSelector names the placement group %q, and the instance was launched into %q",
			f.group.groupID(), claim.Labels[awsv1.LabelPlacementGroupID])
	}
	return cloud.Drift{}
}
