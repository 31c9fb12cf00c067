package aws

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

const (
	// publicParameterTTL is how long AWS's own image parameters are cached.
	publicParameterTTL = 24 * time.Hour
	// userParameterTTL is how long a user's own parameter is cached, and how long any parameter counts as missing.
	userParameterTTL = 5 * time.Minute
)

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
	builds := make(map[string]amifamily.Image)
	var ids []string
	for _, build := range amifamily.Of(alias.Family).Images(alias.Version, cluster.version) {
		id, err := f.parameter(ctx, build.Parameter, publicParameterTTL)
		if err != nil {
			return nil, err
		}
		if id == "" {
			continue
		}
		builds[id] = build
		ids = append(ids, id)
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
		for _, kind := range builds[i.id].Runs {
			special := i
			special.requirements = slices.Concat(i.requirements, kind)
			out = append(out, special)
		}
		if i.deprecated { // a newer image is to be expected
			f.parameters.remove(builds[i.id].Parameter)
		}
	}
	return out, nil
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
