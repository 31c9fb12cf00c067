package ec2sim

import (
	"fmt"
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
	BootMode   string    // legacy-bios, uefi or uefi-preferred; empty where the image does not say, as older ones
	NoENA      bool      // it was not made for enhanced networking with ENA
	Root       string    // device name of its root volume
	RootGiB    int       // size of the root volume's snapshot
	Windows    bool      `json:",omitempty"`
	Gone       bool      `json:",omitempty"` // deregistered
	MadeAt     time.Time `json:",omitzero"`  // when it came to be here, whatever its creation date says; zero for seeded ones
}

// snapshot is the id of the snapshot behind the image's root volume.
func (im *image) snapshot() string { return "snap" + im.ID[3:] }

// rootDevice is the root device of the Linux images, and rootSizeGiB the size of its snapshot; Bottlerocket's is smaller.
const (
	rootDevice      = "/dev/xvda"
	rootSizeGiB     = 20
	bottlerocketGiB = 2
)

// Image is an image that the account has besides Amazon's, with Amazon Linux 2023 in it.
type Image struct {
	Name string `json:"name"`
	// Arch is the architecture as EC2 says it: x86_64 or arm64.
	Arch string `json:"arch"`
	// Owner is the account it belongs to; empty for the simulated one.
	Owner string `json:"owner,omitempty"`
	// Public images everybody sees; Shared ones this account sees, whoever owns them; others only their owner.
	Public bool `json:"public,omitempty"`
	Shared bool `json:"shared,omitempty"`
	// Tags are those this account has put on it: nobody sees the tags of another account (EC2 User Guide, "Tag your
	// Amazon EC2 resources").
	Tags map[string]string `json:"tags,omitempty"`
	// Created is when it was made; Deprecated, if it is not zero, when it became deprecated.
	Created    time.Time `json:"created,omitzero"`
	Deprecated time.Time `json:"deprecated,omitzero"`
	// BootMode is legacy-bios, uefi or uefi-preferred. Empty: the image does not say.
	BootMode string `json:"bootMode,omitempty"`
	// NoENA says that the image was not made for enhanced networking with ENA, which Nitro needs.
	NoENA bool `json:"noENA,omitempty"`
	// RootGiB is the size of its root volume; 0 means that of Amazon's images.
	RootGiB int `json:"rootGiB,omitempty"`
}

// ImageID is the id of an image with that name, Amazon's, one of Options.Images or of AddImage.
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
func (im *image) visible() bool {
	return !im.Gone && (im.Public || im.Shared || im.Owner == accountID)
}

// ownedBy matches an owner of DescribeImages: self, an alias, or an account id.
func (im *image) ownedBy(owner string) bool {
	return owner == im.Owner || owner != "" && owner == im.Alias || owner == "self" && im.Owner == accountID
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
