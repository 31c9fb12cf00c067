package amifamily

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// bottlerocket is Bottlerocket. Its operating system is on /dev/xvda, and what pods write on /dev/xvdb.
var bottlerocket = Family{
	Name: awsv1.AMIFamilyBottlerocket, OS: string(corev1.Linux), Volumes: []Volume{{"/dev/xvda", 4}, {"/dev/xvdb", 20}}, PodDevice: "/dev/xvdb",
	PodsByENI: true,
	images:    bottlerocketImages,
}

// bottlerocketImages accepts versions as in the names of releases, v1.50.0, and as in SSM, 1.50.0.
func bottlerocketImages(version, kubernetes string) []Image {
	path := func(kind, arch string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, kind, arch, strings.TrimPrefix(version, "v"))
	}
	return []Image{
		{path("", "x86_64"), runs(plainOnly, neuronOnly)}, {path("", "arm64"), runs(plainOnly)},
		{path("-nvidia", "x86_64"), runs(gpuOnly)}, {path("-nvidia", "arm64"), runs(gpuOnly)},
	}
}
