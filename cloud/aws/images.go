package aws

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// image is an EC2 image that a class's terms select.
type image struct {
	id, name   string
	created    time.Time
	deprecated bool
	// requirements are those of the instance types it runs on.
	requirements []corev1.NodeSelectorRequirement
}

// imageFinder finds the images that the terms of node classes select.
type imageFinder struct {
	ec2        *calls.EC2
	ssm        *calls.SSM
	cluster    *refreshed[clusterFacts]
	parameters *ttlCache[string, string] // of SSM
	now        func() time.Time
}

// find returns the images that a class's terms select, one for each set of requirements, the newest first.
func (f *imageFinder) find(ctx context.Context, class *awsv1.EC2NodeClass) ([]awsv1.AMI, error) {
	var found []image
	for _, term := range class.Spec.AMISelectorTerms {
		images, err := f.ofTerm(ctx, term)
		if err != nil {
			return nil, err
		}
		found = append(found, images...)
	}
	var out []awsv1.AMI
	for _, i := range preferred(found) {
		out = append(out, awsv1.AMI{ID: i.id, Name: i.name, Deprecated: i.deprecated, Requirements: i.requirements})
	}
	return out, nil
}

// ofTerm returns the images of one term.
func (f *imageFinder) ofTerm(ctx context.Context, term awsv1.AMISelectorTerm) ([]image, error) {
	switch {
	case term.Alias != "":
		return f.ofAlias(ctx, term.Alias)
	case term.SSMParameter != "":
		id, err := f.parameter(ctx, term.SSMParameter, userParameterTTL)
		if err != nil || id == "" {
			return nil, err
		}
		return f.describe(ctx, nil, filter("image-id", id))
	case term.ID != "":
		return f.describe(ctx, nil, filter("image-id", term.ID))
	default:
		// Anybody may publish an image under any name, so a name selects only images of this account and of Amazon.
		// Tags alone also select images that other accounts share: only this account's own tags on an image are visible
		// to it.
		filters := tagFilters(term.Tags)
		var owners []string
		if term.Name != "" {
			filters = append(filters, filter("name", term.Name))
			owners = []string{"self", "amazon"}
		}
		if term.Owner != "" {
			owners = []string{term.Owner}
		}
		return f.describe(ctx, owners, filters...)
	}
}

// describe reads available images; their only requirement is their architecture.
func (f *imageFinder) describe(ctx context.Context, owners []string, filters ...types.Filter) ([]image, error) {
	var out []image
	pages := ec2.NewDescribeImagesPaginator(f.ec2.DescribeImages, &ec2.DescribeImagesInput{
		Owners:            owners,
		Filters:           append(filters, filter("state", "available")),
		IncludeDeprecated: aws.Bool(true),
		MaxResults:        aws.Int32(500),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeImages", err)
		}
		for i := range page.Images {
			if reduced, ok := reduceImage(&page.Images[i], f.now()); ok {
				out = append(out, reduced)
			}
		}
	}
	return out, nil
}

// reduceImage keeps what matters of an image. It returns false if no supported instance type runs the image.
func reduceImage(in *types.Image, now time.Time) (image, bool) {
	var arch string
	switch in.Architecture {
	case types.ArchitectureValuesX8664:
		arch = "amd64"
	case types.ArchitectureValuesArm64:
		arch = "arm64"
	default:
		return image{}, false
	}
	out := image{
		id:           aws.ToString(in.ImageId),
		name:         aws.ToString(in.Name),
		requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}}},
	}
	// EC2 writes these times in ISO 8601; one that cannot be parsed counts as missing.
	out.created, _ = time.Parse(time.RFC3339, aws.ToString(in.CreationDate))
	if ends, err := time.Parse(time.RFC3339, aws.ToString(in.DeprecationTime)); err == nil {
		out.deprecated = !now.Before(ends)
	}
	return out, true
}

// preferred returns the newest image of each set of requirements, a deprecated one only if there is no other, sorted by
// age, the newest first. Of images created in the same second it chooses the one with the last name, and it sorts those
// it has chosen by id, as Karpenter does (its pkg/providers/amifamily, compareAMI and AMIs.Sort).
func preferred(images []image) []image {
	best := make(map[string]image)
	for _, i := range images {
		key := requirementsKey(i.requirements)
		if chosen, ok := best[key]; !ok || i.before(chosen) {
			best[key] = i
		}
	}
	out := slices.Collect(maps.Values(best))
	slices.SortFunc(out, func(a, b image) int {
		return cmp.Or(cmp.Compare(b.created.Unix(), a.created.Unix()), cmp.Compare(a.id, b.id), cmp.Compare(requirementsKey(a.requirements), requirementsKey(b.requirements)))
	})
	return out
}

// before reports whether the image is preferred to another with the same requirements.
func (i image) before(other image) bool {
	if i.deprecated != other.deprecated {
		return other.deprecated
	}
	return cmp.Or(cmp.Compare(i.created.Unix(), other.created.Unix()), cmp.Compare(i.name, other.name), cmp.Compare(other.id, i.id)) > 0
}

func requirementsKey(requirements []corev1.NodeSelectorRequirement) string {
	lines := make([]string, len(requirements))
	for i, r := range requirements {
		lines[i] = r.Key + " " + string(r.Operator) + " " + strings.Join(r.Values, ",")
	}
	slices.Sort(lines)
	return strings.Join(lines, ";")
}

// runsOn holds the images of a status with their requirements as label selectors.
type runsOn []struct {
	id       string
	selector labels.Selector
}

// imageSelectors reads the images of a class's status. A requirement that cannot be read excludes its image.
func imageSelectors(images []awsv1.AMI) runsOn {
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn:           selection.In,
		corev1.NodeSelectorOpNotIn:        selection.NotIn,
		corev1.NodeSelectorOpExists:       selection.Exists,
		corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
		corev1.NodeSelectorOpGt:           selection.GreaterThan,
		corev1.NodeSelectorOpLt:           selection.LessThan,
	}
	out := make(runsOn, 0, len(images))
	for _, image := range images {
		selector := labels.NewSelector()
		for _, r := range image.Requirements {
			requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
			if err != nil {
				selector = labels.Nothing()
				break
			}
			selector = selector.Add(*requirement)
		}
		out = append(out, struct {
			id       string
			selector labels.Selector
		}{image.ID, selector})
	}
	return out
}

// imageFor returns the first image that runs on machines with these labels.
func (r runsOn) imageFor(machine map[string]string) (string, bool) {
	for _, image := range r {
		if image.selector.Matches(labels.Set(machine)) {
			return image.id, true
		}
	}
	return "", false
}
