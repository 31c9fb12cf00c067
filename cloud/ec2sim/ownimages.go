package ec2sim

import (
	"fmt"
	"slices"
	"time"
)

// Images of the account itself and of others are rows: they are made, copied, tagged and deprecated. A row with the id of a
// seeded image stands in its place.

// allImages are the images of all accounts that the simulator knows.
func (s *Server) allImages() []*image {
	all := make([]*image, 0, len(s.images)+len(s.ownImages.rows))
	for _, im := range s.images {
		if s.ownImages.rows[im.ID] == nil {
			all = append(all, im)
		}
	}
	return append(all, s.ownImages.sorted()...)
}

func (s *Server) image(id string) *image {
	if im := s.ownImages.rows[id]; im != nil {
		return im
	}
	if at := slices.IndexFunc(s.images, func(im *image) bool { return im.ID == id }); at >= 0 {
		return s.images[at]
	}
	return nil
}

// imageTags are the tags that this account has put on an image. Those of its owner, if that is another account, nobody here
// sees (EC2 User Guide, "Tag your Amazon EC2 resources").
func (s *Server) imageTags(im *image) map[string]string {
	if changed := s.tags.rows[im.ID]; changed != nil {
		return changed.shown(s.now())
	}
	return im.Tags
}

// AddImage makes an image of this or another account, or replaces that of the same name, and returns its id.
func (s *Server) AddImage(i Image) (string, error) {
	if i.Name == "" || i.Arch != "x86_64" && i.Arch != "arm64" {
		return "", fmt.Errorf("an image needs a name and the architecture x86_64 or arm64, not %q and %q", i.Name, i.Arch)
	}
	im := i.add(s.opts.KubernetesVersion)
	return im.ID, s.locked(func(now time.Time) error {
		im.MadeAt = now
		if im.Created.IsZero() {
			im.Created = now
		}
		s.ownImages.put(im.ID, im)
		return nil
	})
}

type imageIDXML struct {
	ID string `xml:"imageId"`
}

// copyImage makes an image of this account out of one that it sees, in its own region. Tags of the user's are copied only on
// request, and only those that this account sees (API reference, CopyImage, CopyImageTags); the copy is not deprecated and has
// no parameter that leads to it.
func copyImage(s *Server, c *call) (any, error) {
	return s.idempotent(c, func() (any, error) {
		p := c.form
		from := s.image(p.str("SourceImageId"))
		if from == nil || !from.visible() {
			return nil, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", p.str("SourceImageId"))
		}
		if region := p.str("SourceRegion"); region != s.account.region {
			return nil, invalidValue("This simulator has the region %s only, not '%s'", s.account.region, region)
		}
		tags, err := parseTagSpecifications(p)
		if err != nil {
			return nil, err
		}
		copied := *from
		copied.ID, copied.Name, copied.Created, copied.MadeAt, copied.Deprecated = newID("ami"), p.str("Name"), c.at, c.at, time.Time{}
		copied.Owner, copied.Alias, copied.Public, copied.Shared, copied.Parameters = accountID, "", false, false, nil
		copied.Tags = tags["image"]
		if *orFalse(p.flag("CopyImageTags")) {
			copied.Tags = mergeTagSpecifications(map[string]map[string]string{"image": s.imageTags(from)}, tags)["image"]
		}
		if *orFalse(p.flag("DryRun")) {
			return nil, errDryRun
		}
		s.ownImages.put(copied.ID, &copied)
		return imageIDXML{copied.ID}, nil
	})
}

// ownImage is the image of a call that only its owner may make.
func (s *Server) ownImage(c *call) (*image, error) {
	id := c.form.str("ImageId")
	im := s.image(id)
	switch {
	case im == nil || !im.visible():
		return nil, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	case im.Owner != accountID:
		return nil, notAuthorized(im)
	case *orFalse(c.form.flag("DryRun")):
		return nil, errDryRun
	}
	copied := *im
	return &copied, nil
}

// enableImageDeprecation sets when an image is deprecated, in the future and to the minute (API reference,
// EnableImageDeprecation).
func enableImageDeprecation(s *Server, c *call) (any, error) {
	at, err := time.Parse(time.RFC3339, c.form.str("DeprecateAt"))
	if err != nil || !at.After(c.at) {
		return nil, invalidValue("The deprecation time '%s' is not in the future", c.form.str("DeprecateAt"))
	}
	im, err := s.ownImage(c)
	if err != nil {
		return nil, err
	}
	im.Deprecated = at.UTC().Truncate(time.Minute)
	s.ownImages.put(im.ID, im)
	return returnTrue, nil
}

func disableImageDeprecation(s *Server, c *call) (any, error) {
	im, err := s.ownImage(c)
	if err != nil {
		return nil, err
	}
	im.Deprecated = time.Time{}
	s.ownImages.put(im.ID, im)
	return returnTrue, nil
}

// deregisterImage takes an image away. Its instances live on, and so does what the simulator has to know of it: it is not seen
// any more.
func deregisterImage(s *Server, c *call) (any, error) {
	im, err := s.ownImage(c)
	if err != nil {
		return nil, err
	}
	im.Gone = true
	s.ownImages.put(im.ID, im)
	return returnTrue, nil
}
