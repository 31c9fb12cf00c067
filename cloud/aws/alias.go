package aws

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

const (
	// publicParameterTTL is how long AWS's own image parameters are cached.
	publicParameterTTL = 24 * time.Hour
	// userParameterTTL is how long a user's own parameter is cached, and how long any parameter counts as missing.
	userParameterTTL = 5 * time.Minute
)

// variant is one build of a family's image.
type variant struct {
	parameter    string
	requirements []corev1.NodeSelectorRequirement
}

var (
	noGPU       = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpDoesNotExist}
	gpu         = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpExists}
	noNeuron    = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpDoesNotExist}
	neuron      = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpExists}
	plainOnly   = []corev1.NodeSelectorRequirement{noGPU, noNeuron}
	gpuOnly     = []corev1.NodeSelectorRequirement{gpu}
	neuronOnly  = []corev1.NodeSelectorRequirement{neuron}
	windowsName = strings.NewReplacer(awsv1.AMIFamilyWindows2019, "2019", awsv1.AMIFamilyWindows2022, "2022", awsv1.AMIFamilyWindows2025, "2025")
)

// aliasVariants returns the SSM parameters of an alias for a Kubernetes version.
func aliasVariants(alias awsv1.Alias, kubernetes string) []variant {
	switch alias.Family {
	case awsv1.AMIFamilyAL2023:
		return al2023Variants(alias.Version, kubernetes)
	case awsv1.AMIFamilyAL2:
		name := func(kind string) string {
			if alias.Version == awsv1.AliasVersionLatest {
				return "recommended"
			}
			return fmt.Sprintf("amazon-eks%s-node-%s-%s", kind, kubernetes, alias.Version)
		}
		path := "/aws/service/eks/optimized-ami/" + kubernetes + "/amazon-linux-2%s/%s/image_id"
		gpuImage := fmt.Sprintf(path, "-gpu", name("-gpu"))
		return []variant{
			{fmt.Sprintf(path, "", name("")), plainOnly},
			{fmt.Sprintf(path, "-arm64", name("-arm64")), plainOnly},
			{gpuImage, gpuOnly}, {gpuImage, neuronOnly},
		}
	case awsv1.AMIFamilyBottlerocket:
		version := strings.TrimPrefix(alias.Version, "v")
		path := "/aws/service/bottlerocket/aws-k8s-" + kubernetes + "%s/%s/" + version + "/image_id"
		return []variant{
			{fmt.Sprintf(path, "", "x86_64"), []corev1.NodeSelectorRequirement{noGPU}},
			{fmt.Sprintf(path, "", "arm64"), []corev1.NodeSelectorRequirement{noGPU}},
			{fmt.Sprintf(path, "-nvidia", "x86_64"), gpuOnly},
			{fmt.Sprintf(path, "-nvidia", "arm64"), gpuOnly},
		}
	default:
		return []variant{{
			fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id",
				windowsName.Replace(alias.Family), kubernetes), nil,
		}}
	}
}

func al2023Variants(version, kubernetes string) []variant {
	var out []variant
	for _, build := range []struct {
		arch, kind   string
		requirements []corev1.NodeSelectorRequirement
	}{
		{"x86_64", "standard", plainOnly}, {"arm64", "standard", plainOnly},
		{"x86_64", "nvidia", gpuOnly}, {"arm64", "nvidia", gpuOnly}, {"x86_64", "neuron", neuronOnly},
	} {
		name := "recommended"
		if version != awsv1.AliasVersionLatest {
			name = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", build.arch, build.kind, kubernetes, version)
		}
		out = append(out, variant{fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id",
			kubernetes, build.arch, build.kind, name), build.requirements})
	}
	return out
}

// unsupportedAlias returns why an alias has no images for a Kubernetes version, "" if it has some.
func unsupportedAlias(alias awsv1.Alias, kubernetes string) string {
	switch {
	case alias.Family == awsv1.AMIFamilyAL2 && minor(kubernetes) >= 33:
		return "there are no Amazon Linux 2 images for Kubernetes 1.33 and later"
	case alias.Family == awsv1.AMIFamilyWindows2025 && minor(kubernetes) < 35:
		return "there are no Windows Server 2025 images for Kubernetes before 1.35"
	}
	return ""
}

// minor returns the minor version of a Kubernetes version such as 1.34, 0 when it cannot be read.
func minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return n
}

// ofAlias returns the images of an alias. Builds without a parameter do not exist for this Kubernetes version.
func (f *imageFinder) ofAlias(ctx context.Context, text string) ([]image, error) {
	alias, err := awsv1.ParseAlias(text)
	if err != nil {
		return nil, err
	}
	cluster, _, err := f.cluster.get(ctx)
	if err != nil {
		return nil, err
	}
	kinds := make(map[string][]variant)
	var ids []string
	for _, v := range aliasVariants(alias, cluster.version) {
		id, err := f.parameter(ctx, v.parameter, publicParameterTTL)
		if err != nil {
			return nil, err
		}
		if id == "" {
			continue
		}
		if len(kinds[id]) == 0 {
			ids = append(ids, id)
		}
		kinds[id] = append(kinds[id], v)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	described, err := f.describe(ctx, nil, filter("image-id", ids...))
	if err != nil {
		return nil, err
	}
	var out []image
	for _, i := range described {
		for _, kind := range kinds[i.id] {
			special := i
			special.requirements = append(append([]corev1.NodeSelectorRequirement(nil), i.requirements...), kind.requirements...)
			out = append(out, special)
		}
		if i.deprecated {
			f.forgetParameters(kinds[i.id])
		}
	}
	return out, nil
}

// forgetParameters drops the cached parameters of a deprecated image, because a newer image is to be expected.
func (f *imageFinder) forgetParameters(variants []variant) {
	for _, v := range variants {
		f.parameters.remove(v.parameter)
	}
}

// parameter returns the value of an SSM parameter, "" when there is none of that name.
func (f *imageFinder) parameter(ctx context.Context, name string, ttl time.Duration) (string, error) {
	if value, ok := f.parameters.get(name); ok {
		return value, nil
	}
	out, err := f.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	if hasCode(err, "ParameterNotFound", "ParameterVersionNotFound") {
		f.parameters.putFor(name, "", userParameterTTL)
		return "", nil
	}
	if err != nil {
		return "", classify("GetParameter", err)
	}
	value := ""
	if out.Parameter != nil {
		value = aws.ToString(out.Parameter.Value)
	}
	f.parameters.putFor(name, value, ttl)
	return value, nil
}
