package ec2sim

import (
	"fmt"
	"strings"
	"time"
)

// image is one Amazon Machine Image of Amazon's own account, found through its SSM parameters.
type image struct {
	ID         string
	Name       string
	Arch       string // as EC2 says it
	Created    time.Time
	Parameters []string // SSM parameter names that lead to it
	Family     string
	Kubernetes string // version, "1.36"
}

// imageReleases are the two releases each image line has; the last is the recommended one.
var imageReleases = []time.Time{
	time.Date(2026, time.September, 28, 0, 0, 0, 0, time.UTC),
	time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC),
}

// newImages lists the AL2023 and Bottlerocket images of the Kubernetes minors 1.30 to 1.36 and of the given version.
func newImages(version string) []*image {
	minors := []string{"1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36"}
	known := false
	for _, m := range minors {
		known = known || m == version
	}
	if !known {
		minors = append(minors, version)
	}
	var images []*image
	for _, minor := range minors {
		for _, arch := range []string{"x86_64", "arm64"} {
			variants := []string{"standard", "nvidia", "neuron"}
			if arch == "arm64" {
				variants = variants[:2]
			}
			for n, release := range imageReleases {
				latest := n == len(imageReleases)-1
				for _, variant := range variants {
					images = append(images, newAL2023Image(minor, arch, variant, release, latest))
				}
				images = append(images, newBottlerocketImage(minor, arch, n, release, latest))
			}
		}
	}
	return images
}

func newAL2023Image(minor, arch, variant string, release time.Time, latest bool) *image {
	name := fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-v%s", arch, variant, minor, release.Format("20060102"))
	base := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", minor, arch, variant)
	im := &image{
		ID: imageID(name), Name: name, Arch: arch, Created: release, Family: "AL2023", Kubernetes: minor,
		Parameters: []string{base + name + "/image_id"},
	}
	if latest {
		im.Parameters = append(im.Parameters, base+"recommended/image_id")
	}
	return im
}

func newBottlerocketImage(minor, arch string, n int, release time.Time, latest bool) *image {
	version := fmt.Sprintf("1.%d.0", 50+n)
	name := fmt.Sprintf("bottlerocket-aws-k8s-%s-%s-v%s", minor, strings.ReplaceAll(arch, "arm64", "aarch64"), version)
	base := fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s/%s/", minor, arch)
	im := &image{
		ID: imageID(name), Name: name, Arch: arch, Created: release, Family: "Bottlerocket", Kubernetes: minor,
		Parameters: []string{base + version + "/image_id"},
	}
	if latest {
		im.Parameters = append(im.Parameters, base+"latest/image_id")
	}
	return im
}

func imageID(name string) string {
	return fmt.Sprintf("ami-0%016x", uint64(unit("image", name)*(1<<53)))
}

func (im *image) deprecated() time.Time { return im.Created.AddDate(2, 0, 0) }
