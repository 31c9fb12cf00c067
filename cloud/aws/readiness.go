package aws

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// finding is the result for one part of a class.
type finding struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

var fine = finding{status: metav1.ConditionTrue}

func bad(reason, format string, args ...any) finding {
	return finding{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// judge turns an error that needs a person's action into a finding. It returns other errors, so that the class is
// resolved again.
func judge(err error) (finding, error) {
	switch cloud.KindOf(err) {
	case cloud.Forbidden, cloud.Invalid:
		return bad(cloud.ReasonOf(err), "%v", err), nil
	}
	return finding{}, err
}

// readiness resolves what node classes select and reports whether it exists.
type readiness struct {
	ec2          *calls.EC2
	isolated     bool // IAM cannot be reached
	cluster      *refreshed[clusterFacts]
	images       *imageFinder
	subnets      *subnetPool
	reservations *reservationPool
	profiles     *profiles
	groups       *placementGroups
}

// The messages for selectors without matches are Karpenter's, word for word, because alerts match on them.
func (r *readiness) resolveImages(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	class.Status.AMIs = nil
	if alias, ok := class.Alias(); ok {
		cluster, _, err := r.cluster.get(ctx)
		if err != nil {
			return finding{}, err
		}
		if why := unsupportedAlias(alias, cluster.version); why != "" {
			return bad(reasonUnsupportedAlias, "spec.amiSelectorTerms: %s", why), nil
		}
	}
	images, err := r.images.find(ctx, class)
	if err != nil {
		return finding{}, err
	}
	class.Status.AMIs = images
	if len(images) == 0 {
		return bad(reasonAMINotFound, "AMISelector did not match any AMIs"), nil
	}
	return fine, nil
}

// resolvePlacementGroup finds out whether the class's placement group is available. The status has no place for the group.
func (r *readiness) resolvePlacementGroup(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	if class.Spec.PlacementGroupSelector == nil {
		return fine, nil
	}
	name := nameOf(class.Spec.PlacementGroupSelector)
	field := "name"
	if name.id != "" {
		field = "id"
	}
	group, err := r.groups.find(ctx, name)
	switch {
	case err != nil:
		return finding{}, err
	case group == nil:
		return bad(reasonPlacementGroupNotFound, "Placement group %q not found: create it in this account and region, or correct spec.placementGroupSelector.%s", name, field), nil
	case group.state != types.PlacementGroupStateAvailable:
		return bad(reasonPlacementGroupNotFound, "Placement group %q not found among those that are available: it is %s; wait, or name another in spec.placementGroupSelector.%s",
			name, group.state, field), nil
	}
	return fine, nil
}

func (r *readiness) resolveSubnets(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	subnets, err := r.subnets.selectSubnets(ctx, class.Spec.SubnetSelectorTerms)
	class.Status.Subnets = subnets
	if err != nil {
		return finding{}, err
	}
	if len(subnets) == 0 {
		return bad(reasonSubnetsNotFound, "SubnetSelector did not match any Subnets"), nil
	}
	return fine, nil
}

func (r *readiness) resolveSecurityGroups(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	groups, err := selectSecurityGroups(ctx, r.ec2, class.Spec.SecurityGroupSelectorTerms)
	class.Status.SecurityGroups = groups
	if err != nil {
		return finding{}, err
	}
	if len(groups) == 0 {
		return bad(reasonSecurityGroupsNotFound, "SecurityGroupSelector did not match any SecurityGroups"), nil
	}
	return fine, nil
}

func (r *readiness) resolveProfile(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	class.Status.InstanceProfile = ""
	if given := class.Spec.InstanceProfile; given != nil && *given != "" {
		// IAM is not asked, because private clusters cannot reach it. The dry runs show whether the profile exists.
		class.Status.InstanceProfile = *given
		return fine, nil
	}
	if class.Spec.Role == "" {
		return bad(reasonProfileNotFound, "one of spec.role and spec.instanceProfile is required"), nil
	}
	if r.isolated {
		return bad(reasonIAMUnreachable, "spec.role: an isolated VPC does not reach IAM, which makes instance profiles; use spec.instanceProfile"), nil
	}
	name, err := r.profiles.ensure(ctx, class)
	if hasCode(err, "NoSuchEntity") {
		return bad(reasonRoleNotFound, "spec.role: there is no role %q", class.Spec.Role), nil
	}
	if err != nil {
		return finding{}, err
	}
	class.Status.InstanceProfile = name
	return fine, nil
}

// resolveReservations finds the class's capacity reservations. Classes that select none have no condition for them.
func (r *readiness) resolveReservations(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	found, err := r.reservations.selectReservations(ctx, class.Spec.CapacityReservationSelectorTerms)
	if err != nil {
		return finding{}, err
	}
	class.Status.CapacityReservations = found
	return fine, nil
}
