package ec2sim

import "slices"

type imageXML struct {
	ID             string           `xml:"imageId"`
	Location       string           `xml:"imageLocation"`
	State          string           `xml:"imageState"`
	OwnerID        string           `xml:"imageOwnerId"`
	OwnerAlias     string           `xml:"imageOwnerAlias"`
	Created        string           `xml:"creationDate"`
	Deprecated     string           `xml:"deprecationTime"`
	Public         bool             `xml:"isPublic"`
	Arch           string           `xml:"architecture"`
	Type           string           `xml:"imageType"`
	Name           string           `xml:"name"`
	Description    string           `xml:"description"`
	RootDeviceType string           `xml:"rootDeviceType"`
	RootDeviceName string           `xml:"rootDeviceName"`
	Devices        []imageDeviceXML `xml:"blockDeviceMapping>item"`
	Virtualization string           `xml:"virtualizationType"`
	Hypervisor     string           `xml:"hypervisor"`
	ENA            bool             `xml:"enaSupport"`
	Platform       string           `xml:"platformDetails"`
}

type imageDeviceXML struct {
	Name string `xml:"deviceName"`
	EBS  ebsXML `xml:"ebs"`
}

func (im *image) xml() imageXML {
	yes := true
	return imageXML{
		ID: im.ID, Location: "amazon/" + im.Name, State: "available", OwnerID: amazonAccountID, OwnerAlias: "amazon",
		Created: timestamp(im.Created), Deprecated: timestamp(im.deprecated()), Public: true, Arch: im.Arch, Type: "machine", Name: im.Name,
		Description: "EKS-optimized Kubernetes node based on " + im.Family + ", (k8s: " + im.Kubernetes + ")", RootDeviceType: "ebs", RootDeviceName: rootDevice,
		Devices: []imageDeviceXML{{rootDevice, ebsXML{
			SizeGiB: rootSizeGiB, Type: "gp3", Snapshot: "snap" + im.ID[3:], DeleteOnTermination: &yes, Encrypted: new(bool), IOPS: 3000, Throughput: 125,
		}}},
		Virtualization: "hvm", Hypervisor: "xen", ENA: true, Platform: "Linux/UNIX",
	}
}

func (s *Server) image(id string) *image {
	at := slices.IndexFunc(s.images, func(im *image) bool { return im.ID == id })
	if at < 0 {
		return nil
	}
	return s.images[at]
}

type describeImagesXML struct {
	Images []imageXML `xml:"imagesSet>item"`
	Next   string     `xml:"nextToken,omitempty"`
}

func describeImages(s *Server, c *call) (any, error) {
	found, err := byID(s.images, func(im *image) string { return im.ID }, c.form.strings("ImageId"), func(id string) error {
		return refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	owners := c.form.strings("Owner")
	deprecatedToo := *orFalse(c.form.flag("IncludeDeprecated")) || c.form.has("ImageId")
	found = slices.DeleteFunc(slices.Clone(found), func(im *image) bool {
		foreign := len(owners) > 0 && !slices.Contains(owners, "amazon") && !slices.Contains(owners, amazonAccountID)
		return foreign || !deprecatedToo && c.at.After(im.deprecated())
	})
	found, err = sift(found, parseFilters(c.form), func(im *image) attributes {
		return tagged(nil, oneOf(map[string]string{
			"image-id": im.ID, "name": im.Name, "architecture": im.Arch, "owner-id": amazonAccountID, "owner-alias": "amazon",
			"state": "available", "is-public": "true", "image-type": "machine", "virtualization-type": "hvm", "root-device-type": "ebs",
			"root-device-name": rootDevice, "hypervisor": "xen", "ena-support": "true", "creation-date": timestamp(im.Created),
			"description": im.xml().Description, "platform-details": "Linux/UNIX",
		}))
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 1, 1000, func(im *image) string { return im.ID })
	if err != nil {
		return nil, err
	}
	out := describeImagesXML{Next: next}
	for _, im := range page {
		out.Images = append(out.Images, im.xml())
	}
	return out, nil
}
