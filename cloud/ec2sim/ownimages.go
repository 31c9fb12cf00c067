package ec2sim

import "time"

type imageIDXML struct {
	ID string `xml:"imageId"`
}

// copy handles CopyImage: it copies an image that this account can see, within the region. User tags are copied only on
// request, and only those that this account can see (API reference, CopyImage, CopyImageTags); the copy is not deprecated
// and no parameter contains its id.
func (is *images) copy(c *call) (any, error) {
	return is.tokens.once(c, func() (any, error) {
		p := c.form
		from := is.find(p.str("SourceImageId"))
		if from == nil || !from.visible() {
			return nil, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", p.str("SourceImageId"))
		}
		if region := p.str("SourceRegion"); region != is.account.region {
			return nil, invalidValue("This simulator has the region %s only, not '%s'", is.account.region, region)
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
			copied.Tags = mergeTagSpecifications(map[string]map[string]string{"image": is.tagsOf(from)}, tags)["image"]
		}
		if *orFalse(p.flag("DryRun")) {
			return nil, errDryRun
		}
		is.own.put(copied.ID, &copied)
		return imageIDXML{copied.ID}, nil
	})
}

// ownOf returns a copy of the image of a call that only the image's owner may make.
func (is *images) ownOf(c *call) (*image, error) {
	id := c.form.str("ImageId")
	im := is.find(id)
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

// enableDeprecation sets when an image becomes deprecated. The time must be in the future and is rounded down to the
// minute (API reference, EnableImageDeprecation).
func (is *images) enableDeprecation(c *call) (any, error) {
	at, err := time.Parse(time.RFC3339, c.form.str("DeprecateAt"))
	if err != nil || !at.After(c.at) {
		return nil, invalidValue("The deprecation time '%s' is not in the future", c.form.str("DeprecateAt"))
	}
	im, err := is.ownOf(c)
	if err != nil {
		return nil, err
	}
	im.Deprecated = at.UTC().Truncate(time.Minute)
	is.own.put(im.ID, im)
	return returnTrue, nil
}

func (is *images) disableDeprecation(c *call) (any, error) {
	im, err := is.ownOf(c)
	if err != nil {
		return nil, err
	}
	im.Deprecated = time.Time{}
	is.own.put(im.ID, im)
	return returnTrue, nil
}

// deregister hides an image. Its instances continue to run, so the simulator keeps its data.
func (is *images) deregister(c *call) (any, error) {
	im, err := is.ownOf(c)
	if err != nil {
		return nil, err
	}
	im.Gone = true
	is.own.put(im.ID, im)
	return returnTrue, nil
}
