package ec2sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// imageReleases are the two releases of each image line; the last is the recommended one. The releases of Amazon Linux 2
// are older: none were published after November 2025, nor for Kubernetes 1.33 and later (EKS User Guide, "Amazon EKS end
// of support for Amazon Linux 2").
var (
	imageReleases = []time.Time{
		time.Date(2026, time.September, 28, 0, 0, 0, 0, time.UTC),
		time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC),
	}
	al2Releases = []time.Time{
		time.Date(2025, time.October, 29, 0, 0, 0, 0, time.UTC),
		time.Date(2025, time.November, 12, 0, 0, 0, 0, time.UTC),
	}
)

const (
	lastAL2           = 32 // Kubernetes 1.32
	firstWindows2025  = 35 // Kubernetes 1.35 (Karpenter, pkg/providers/amifamily/ami.go)
	windowsGiB        = 50
	windowsRootDevice = "/dev/sda1"
	windowsOwner      = "801119661308" // Amazon's account for Windows images
)

// eksOwner returns the account that publishes the EKS images in a region (EKS User Guide, "View Amazon container image
// registries").
func eksOwner(region string) string {
	switch region {
	case "cn-north-1":
		return "918309763551"
	case "cn-northwest-1":
		return "961992271922"
	case "us-gov-west-1":
		return "013241004608"
	case "us-gov-east-1":
		return "151742754352"
	}
	return amazonAccountID
}

// bootMode returns the boot mode of the images of Amazon Linux 2023 and Bottlerocket: UEFI Preferred, or UEFI on arm64,
// which supports no other.
func bootMode(arch string) string {
	if arch == "arm64" {
		return "uefi"
	}
	return "uefi-preferred"
}

// newImages returns the images of Amazon Linux 2023, Amazon Linux 2, Bottlerocket and Windows for the Kubernetes minors
// 1.30 to 1.36 and for the given version.
func newImages(version, region string) []*image {
	minors := []string{"1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36"}
	if !slices.Contains(minors, version) {
		minors = append(minors, version)
	}
	l := imageLines{owner: eksOwner(region)}
	for _, minor := range minors {
		for _, arch := range []string{"x86_64", "arm64"} {
			for n, release := range imageReleases {
				l.latest = n == len(imageReleases)-1
				l.al2023(minor, arch, "standard", release)
				l.al2023(minor, arch, "nvidia", release)
				if arch == "x86_64" {
					l.al2023(minor, arch, "neuron", release)
				}
				l.bottlerocket(minor, "", arch, n, release)
				l.bottlerocket(minor, "-nvidia", arch, n, release)
			}
		}
		number, _ := strconv.Atoi(strings.TrimPrefix(minor, "1.")) // 0 if the version is not a minor of 1
		for n, release := range al2Releases {
			l.latest = n == len(al2Releases)-1
			if number <= lastAL2 {
				l.al2(minor, "", "x86_64", release)
				l.al2(minor, "-gpu", "x86_64", release)
				l.al2(minor, "-arm64", "arm64", release)
			}
		}
		for n, release := range imageReleases {
			l.latest = n == len(imageReleases)-1
			l.windows(minor, "2019", release)
			l.windows(minor, "2022", release)
			if number >= firstWindows2025 {
				l.windows(minor, "2025", release)
			}
		}
	}
	return l.images
}

// imageLines collects Amazon's images.
type imageLines struct {
	owner  string
	latest bool // the release is the recommended one
	images []*image
}

// add adds an image with its SSM parameters: its own one, and that of the latest image of its line if it is the latest.
func (l *imageLines) add(im *image, own, latest string) {
	im.ID, im.Alias, im.Public = imageID(im.Name), "amazon", true
	setDefault(&im.Owner, l.owner)
	setDefault(&im.Root, rootDevice)
	setDefault(&im.RootGiB, rootSizeGiB)
	if own != "" {
		im.Parameters = append(im.Parameters, own)
	}
	if l.latest {
		im.Parameters = append(im.Parameters, latest)
	}
	l.images = append(l.images, im)
}

func (l *imageLines) al2023(minor, arch, variant string, release time.Time) {
	name := fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-v%s", arch, variant, minor, release.Format("20060102"))
	base := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", minor, arch, variant)
	im := &image{Name: name, Arch: arch, Created: release, Family: "AL2023", Kubernetes: minor, BootMode: bootMode(arch)}
	l.add(im, base+name+"/image_id", base+"recommended/image_id")
}

func (l *imageLines) al2(minor, kind, arch string, release time.Time) {
	name := fmt.Sprintf("amazon-eks%s-node-%s-v%s", kind, minor, release.Format("20060102"))
	base := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2%s/", minor, kind)
	im := &image{Name: name, Arch: arch, Created: release, Family: "AL2", Kubernetes: minor}
	l.add(im, base+name+"/image_id", base+"recommended/image_id")
}

func (l *imageLines) bottlerocket(minor, kind, arch string, n int, release time.Time) {
	version := fmt.Sprintf("1.%d.0", 50+n)
	name := fmt.Sprintf("bottlerocket-aws-k8s-%s%s-%s-v%s", minor, kind, strings.ReplaceAll(arch, "arm64", "aarch64"), version)
	base := fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/", minor, kind, arch)
	im := &image{Name: name, Arch: arch, Created: release, Family: "Bottlerocket", Kubernetes: minor, BootMode: bootMode(arch), RootGiB: bottlerocketGiB}
	l.add(im, base+version+"/image_id", base+"latest/image_id")
}

func (l *imageLines) windows(minor, year string, release time.Time) {
	line := fmt.Sprintf("Windows_Server-%s-English-Core-EKS_Optimized-%s", year, minor)
	im := &image{
		Name: line + "-" + release.Format("2006.01.02"), Arch: "x86_64", Created: release, Family: "Windows" + year, Kubernetes: minor, Owner: windowsOwner,
		Windows: true, Root: windowsRootDevice, RootGiB: windowsGiB,
	}
	l.add(im, "", "/aws/service/ami-windows-latest/"+line+"/image_id")
}
