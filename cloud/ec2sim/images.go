package ec2sim

import (
	"fmt"
	"strings"
	"time"
)

// image is one Amazon Machine Image. Those of Amazon's own account are found through their SSM parameters.
type image struct {
	ID         string
	Name       string
	Arch       string // as EC2 says it
	Created    time.Time
	Parameters []string // SSM parameter names that lead to it
	Family     string
	Kubernetes string // version, "1.36"
	Owner      string // account id
	Alias      string // the owner's alias, "amazon" or empty
	Public     bool
	Shared     bool // with this account by its owner
	Tags       map[string]string
	Deprecated time.Time
	BootMode   string // legacy-bios, uefi or uefi-preferred; empty where the image does not say, as older ones
	NoENA      bool   // it was not made for enhanced networking with ENA
	Root       string // device name of its root volume
	RootGiB    int    // size of the root volume's snapshot
}

// snapshot is the id of the snapshot behind the image's root volume.
func (im *image) snapshot() string { return "snap" + im.ID[3:] }

// Image is an image that the account has besides Amazon's, with Amazon Linux 2023 in it.
type Image struct {
	Name string
	// Arch is the architecture as EC2 says it: x86_64 or arm64.
	Arch string
	// Owner is the account it belongs to; empty for the simulated one.
	Owner string
	// Public images everybody sees; Shared ones this account sees, whoever owns them; others only their owner.
	Public, Shared bool
	// Tags are those this account has put on it: nobody sees the tags of another account (EC2 User Guide, "Tag your
	// Amazon EC2 resources").
	Tags map[string]string
	// Created is when it was made; Deprecated, if it is not zero, when it became deprecated.
	Created, Deprecated time.Time
	// BootMode is legacy-bios, uefi or uefi-preferred. Empty: the image does not say.
	BootMode string
	// NoENA says that the image was not made for enhanced networking with ENA, which Nitro needs.
	NoENA bool
	// RootGiB is the size of its root volume; 0 means that of Amazon's images.
	RootGiB int
}

// ImageID is the id of an image with that name, Amazon's or one of Options.Images.
func ImageID(name string) string { return imageID(name) }

// add makes an image of the account's options.
func (i Image) add(kubernetes string) *image {
	owner := i.Owner
	setDefault(&owner, accountID)
	setDefault(&i.RootGiB, rootSizeGiB)
	return &image{
		BootMode: i.BootMode, NoENA: i.NoENA, Root: rootDevice, RootGiB: i.RootGiB,
		ID: imageID(i.Name), Name: i.Name, Arch: i.Arch, Created: i.Created, Family: "AL2023", Kubernetes: kubernetes,
		Owner: owner, Public: i.Public, Shared: i.Shared, Tags: i.Tags, Deprecated: i.Deprecated,
	}
}

// visible says whether this account may see the image and launch from it.
func (im *image) visible() bool { return im.Public || im.Shared || im.Owner == accountID }

// ownedBy matches an owner of DescribeImages: self, an alias, or an account id.
func (im *image) ownedBy(owner string) bool {
	return owner == im.Owner || owner != "" && owner == im.Alias || owner == "self" && im.Owner == accountID
}

// bootMode is that of the images of Amazon Linux 2023 and Bottlerocket ("UEFI Preferred" and, on arm64, UEFI; AL2023 User
// Guide, "UEFI Preferred", and the images' descriptions).
func bootMode(arch string) string {
	if arch == "arm64" {
		return "uefi"
	}
	return "uefi-preferred"
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
		ID: imageID(name), Name: name, Arch: arch, Created: release, Owner: amazonAccountID, Alias: "amazon", Public: true, Family: "AL2023", Kubernetes: minor,
		BootMode: bootMode(arch), Root: rootDevice, RootGiB: rootSizeGiB,
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
		ID: imageID(name), Name: name, Arch: arch, Created: release, Owner: amazonAccountID, Alias: "amazon", Public: true, Family: "Bottlerocket", Kubernetes: minor,
		BootMode: bootMode(arch), Root: rootDevice, RootGiB: bottlerocketGiB,
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

// deprecated is when the image is or was deprecated: public images two years after they were made (EC2 User Guide,
// "Deprecate an Amazon EC2 AMI"), others when their owner says so; zero means never.
func (im *image) deprecated() time.Time {
	if im.Deprecated.IsZero() && im.Public {
		return im.Created.AddDate(2, 0, 0)
	}
	return im.Deprecated
}

// outdated says whether the image is deprecated at an instant.
func (im *image) outdated(at time.Time) bool {
	end := im.deprecated()
	return !end.IsZero() && at.After(end)
}
