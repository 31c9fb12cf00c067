package aws

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestPreferred(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	amd := []corev1.NodeSelectorRequirement{require(corev1.LabelArchStable, "amd64")}
	arm := []corev1.NodeSelectorRequirement{require(corev1.LabelArchStable, "arm64")}
	for _, tc := range []struct {
		why    string
		images []image
		want   []string
	}{
		{why: "the newest of each architecture", images: []image{
			{id: "a1", created: day(1), requirements: amd}, {id: "a2", created: day(2), requirements: amd}, {id: "b1", created: day(1), requirements: arm},
		}, want: []string{"a2", "b1"}},
		{why: "a deprecated one only where there is no other", images: []image{
			{id: "a1", created: day(1), requirements: amd}, {id: "a2", created: day(2), deprecated: true, requirements: amd},
			{id: "b1", created: day(3), deprecated: true, requirements: arm},
		}, want: []string{"b1", "a1"}},
		{why: "the last name decides between images of one second", images: []image{
			{id: "y", name: "a", created: day(1).Add(time.Millisecond), requirements: amd}, {id: "x", name: "b", created: day(1), requirements: amd},
		}, want: []string{"x"}},
		{why: "what is chosen is ordered by its own age, not by that of a deprecated one", images: []image{
			{id: "a1", created: day(1), requirements: amd}, {id: "a5", created: day(5), deprecated: true, requirements: amd},
			{id: "b3", created: day(3), requirements: arm},
		}, want: []string{"b3", "a1"}},
		{why: "the id orders images of one second", images: []image{
			{id: "b", name: "a", created: day(1), requirements: amd}, {id: "a", name: "b", created: day(1), requirements: arm},
		}, want: []string{"a", "b"}},
	} {
		var got []string
		for _, i := range preferred(tc.images) {
			got = append(got, i.id)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
	}
}

func TestReduceImage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	got, ok := reduceImage(&types.Image{
		ImageId: aws.String("ami-1"), Architecture: types.ArchitectureValuesArm64,
		CreationDate: aws.String("2026-01-01T00:00:00.000Z"), DeprecationTime: aws.String("2026-05-01T00:00:00.000Z"),
	}, now)
	if !ok || !got.deprecated || got.created.Year() != 2026 || got.requirements[0].Values[0] != "arm64" {
		t.Errorf("reduceImage = %+v, %v", got, ok)
	}
	if _, ok := reduceImage(&types.Image{Architecture: types.ArchitectureValuesI386}, now); ok {
		t.Error("took a 32-bit image")
	}
}

func TestImageFor(t *testing.T) {
	t.Parallel()
	gpus := func(operator corev1.NodeSelectorOperator) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceGPUCount, Operator: operator}
	}
	plain := func(arch string) []corev1.NodeSelectorRequirement {
		return []corev1.NodeSelectorRequirement{require(corev1.LabelArchStable, arch), gpus(corev1.NodeSelectorOpDoesNotExist)}
	}
	images := imageSelectors([]awsv1.AMI{
		{ID: "ami-amd", Requirements: plain("amd64")},
		{ID: "ami-arm", Requirements: plain("arm64")},
		{ID: "ami-gpu", Requirements: []corev1.NodeSelectorRequirement{require(corev1.LabelArchStable, "amd64"), gpus(corev1.NodeSelectorOpExists)}},
	})
	for _, tc := range []struct {
		labels map[string]string
		want   string
	}{
		{map[string]string{corev1.LabelArchStable: "amd64"}, "ami-amd"},
		{map[string]string{corev1.LabelArchStable: "arm64"}, "ami-arm"},
		{map[string]string{corev1.LabelArchStable: "amd64", awsv1.LabelInstanceGPUCount: "1"}, "ami-gpu"},
		{map[string]string{corev1.LabelArchStable: "arm64", awsv1.LabelInstanceGPUCount: "1"}, ""},
	} {
		if got, _ := images.imageFor(tc.labels); got != tc.want {
			t.Errorf("image for %v is %q; want %q", tc.labels, got, tc.want)
		}
	}
}

func TestUnsupportedAlias(t *testing.T) {
	t.Parallel()
	for text, tc := range map[string]struct {
		first, last string // versions of Kubernetes with images; one of them
	}{
		"al2@latest":         {last: "1.32"},
		"windows2025@latest": {first: "1.35"},
	} {
		alias, err := awsv1.ParseAlias(text)
		if err != nil {
			t.Fatal(err)
		}
		for kubernetes, has := range map[string]bool{"1.32": tc.last != "", "1.33": false, "1.34": false, "1.35": tc.first != "", "1.36": tc.first != ""} {
			if why := unsupportedAlias(alias, kubernetes); (why == "") != has {
				t.Errorf("%s for Kubernetes %s: %q, want images: %t", text, kubernetes, why, has)
			}
		}
	}
}

// require returns a requirement that a label has one of these values.
func require(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}
