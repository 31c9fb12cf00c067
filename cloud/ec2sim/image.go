package ec2sim

import (
	"fmt"
	"time"
)

// image is an Amazon Machine Image. Amazon's own images have SSM parameters that contain their ids.
type image struct {
	ID         string
	Name       string
	Arch       string // in EC2's spelling
	Created    time.Time
	Parameters []string // names of the SSM parameters that contain its id
	Family     string
	Kubernetes string // version, "1.36"
	Owner      string // account id
	Alias      string // the owner's alias, "amazon" or empty
	Public     bool
	Shared     bool // by its owner with this account
	Tags       map[string]string
	Deprecated time.Time
	BootMode   string    // legacy-bios, uefi or uefi-preferred; empty if the image has none, as older ones
	NoENA      bool      // it does not support enhanced networking with ENA
	Root       string    // device name of its root volume
	RootGiB    int       // size of the root volume's snapshot
	Windows    bool      `json:",omitempty"`
	Gone       bool      `json:",omitempty"` // deregistered
	MadeAt     time.Time `json:",omitzero"`  // when the simulator got it; zero for seeded ones
}

// snapshot returns the id of the snapshot behind the image's root volume.
func (im *image) snapshot() string { return "snap" + im.ID[3:] }

// rootDevice is the root device of the Linux images, and rootSizeGiB the size of its snapshot; Bottlerocket's is smaller.
const (
	rootDevice      = "/dev/xvda"
	rootSizeGiB     = 20
	bottlerocketGiB = 2
)

// Image is an image that the account has besides Amazon's images.
type Image struct {
	Name string `json:"name"`
	// Family is what machines of the image read their user data as: AL2023, which is the default, AL2 or Bottlerocket.
	Family string `json:"family,omitempty"`
	// Arch is the architecture in EC2's spelling: x86_64 or arm64.
	Arch string `json:"arch"`
	// Owner is the id of the account that owns the image; empty for the simulated account.
	Owner string `json:"owner,omitempty"`
	// Public images are visible to everybody; Shared ones to this account, whoever owns them; others only to their owner.
	Public bool `json:"public,omitempty"`
	Shared bool `json:"shared,omitempty"`
	// Tags are the tags that this account has put on it: tags of another account are not visible (EC2 User Guide, "Tag
	// your Amazon EC2 resources").
	Tags map[string]string `json:"tags,omitempty"`
	// Created is when the image was created. Deprecated is when it became deprecated, if it is not zero.
	Created    time.Time `json:"created,omitzero"`
	Deprecated time.Time `json:"deprecated,omitzero"`
	// BootMode is legacy-bios, uefi or uefi-preferred; empty means that the image has none.
	BootMode string `json:"bootMode,omitempty"`
	// NoENA means that the image does not support enhanced networking with ENA, which Nitro requires.
	NoENA bool `json:"noENA,omitempty"`
	// RootGiB is the size of its root volume; 0 means that of Amazon's images.
	RootGiB int `json:"rootGiB,omitempty"`
}

// ImageID returns the id of the image with a name: one of Amazon's, of Options.Images or of AddImage.
func ImageID(name string) string { return imageID(name) }

// add converts i to an image of the simulator.
func (i Image) add(kubernetes string) *image {
	owner := i.Owner
	setDefault(&owner, accountID)
	setDefault(&i.Family, "AL2023")
	setDefault(&i.RootGiB, rootSizeGiB)
	return &image{
		BootMode: i.BootMode, NoENA: i.NoENA, Root: rootDevice, RootGiB: i.RootGiB,
		ID: imageID(i.Name), Name: i.Name, Arch: i.Arch, Created: i.Created, Family: i.Family, Kubernetes: kubernetes,
		Owner: owner, Public: i.Public, Shared: i.Shared, Tags: i.Tags, Deprecated: i.Deprecated,
	}
}

// visible reports whether this account may see the image and launch from it.
func (im *image) visible() bool {
	return !im.Gone && (im.Public || im.Shared || im.Owner == accountID)
}

// ownedBy reports whether the image matches an owner of DescribeImages: self, an alias, or an account id.
func (im *image) ownedBy(owner string) bool {
	return owner == im.Owner || owner != "" && owner == im.Alias || owner == "self" && im.Owner == accountID
}

func imageID(name string) string {
	return fmt.Sprintf("ami-0%016x", uint64(unit("image", name)*(1<<53)))
}

// deprecated returns when the image is or was deprecated: public images two years after their creation (EC2 User Guide,
// "Deprecate an Amazon EC2 AMI"), others at the time their owner sets; zero means never.
func (im *image) deprecated() time.Time {
	if im.Deprecated.IsZero() && im.Public {
		return im.Created.AddDate(2, 0, 0)
	}
	return im.Deprecated
}

// outdated reports whether the image is deprecated at an instant.
func (im *image) outdated(at time.Time) bool {
	end := im.deprecated()
	return !end.IsZero() && at.After(end)
}
