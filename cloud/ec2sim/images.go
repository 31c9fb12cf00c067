package ec2sim

import (
	"slices"
	"strings"
	"time"
)

// images holds the images of all accounts that the simulator knows. Amazon's and those of the options are seeded. The
// account's own and other accounts' further images are rows, since they are created, copied, tagged and deprecated. A row
// replaces the seeded image with the same id.
type images struct {
	account    *account
	faults     *injector
	tags       *tagSets
	tokens     *clientTokens
	kubernetes string // the cluster's version, for which the images are built
	seeded     []*image
	own        *table[image]
}

// all returns the images of all accounts.
func (is *images) all() []*image {
	all := make([]*image, 0, len(is.seeded)+len(is.own.rows))
	for _, im := range is.seeded {
		if is.own.rows[im.ID] == nil {
			all = append(all, im)
		}
	}
	return append(all, is.own.sorted()...)
}

// find returns the image with an id, or nil.
func (is *images) find(id string) *image {
	if im := is.own.rows[id]; im != nil {
		return im
	}
	if at := slices.IndexFunc(is.seeded, func(im *image) bool { return im.ID == id }); at >= 0 {
		return is.seeded[at]
	}
	return nil
}

// tagsOf returns the tags that this account has put on an image. Tags of an owner that is another account are not visible
// here (EC2 User Guide, "Tag your Amazon EC2 resources").
func (is *images) tagsOf(im *image) map[string]string {
	return is.tags.shownOf(im.ID, im.Tags)
}

// add adds an image of this or another account, or replaces the one with the same name.
func (is *images) add(im *image, now time.Time) {
	im.MadeAt = now
	if im.Created.IsZero() {
		im.Created = now
	}
	is.own.put(im.ID, im)
}

// forLaunch returns the image of a launch. It fails if the instance type cannot be launched from it.
func (is *images) forLaunch(id string, t *InstanceType) (*image, error) {
	if id == "" {
		return nil, missingParameter("ImageId")
	}
	if !strings.HasPrefix(id, "ami-") {
		return nil, refuse("InvalidAMIID.Malformed", "Invalid id: \"%s\"", id)
	}
	im := is.find(id)
	if im == nil || is.faults.late(is.faults.current().ImageLag, im.MadeAt) {
		return nil, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	if im.Gone {
		return nil, refuse("InvalidAMIID.Unavailable", "The image ID '%s' is no longer available", id)
	}
	if !im.visible() {
		return nil, notAuthorized(im)
	}
	if im.Arch != t.EC2Arch() {
		return nil, invalidValue("The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.", t.EC2Arch(), im.Arch)
	}
	return im, im.checkBoot(t)
}

func notAuthorized(im *image) error {
	return refuse("AuthFailure", "Not authorized for images: [%s]", im.ID)
}
