package ec2sim

import (
	"slices"
	"strconv"
)

type imageXML struct {
	ID              string           `xml:"imageId"`
	Location        string           `xml:"imageLocation"`
	State           string           `xml:"imageState"`
	OwnerID         string           `xml:"imageOwnerId"`
	OwnerAlias      string           `xml:"imageOwnerAlias,omitempty"`
	Created         string           `xml:"creationDate"`
	Deprecated      string           `xml:"deprecationTime,omitempty"`
	Public          bool             `xml:"isPublic"`
	Arch            string           `xml:"architecture"`
	Type            string           `xml:"imageType"`
	Name            string           `xml:"name"`
	Description     string           `xml:"description"`
	RootDeviceType  string           `xml:"rootDeviceType"`
	RootDeviceName  string           `xml:"rootDeviceName"`
	Devices         []imageDeviceXML `xml:"blockDeviceMapping>item"`
	Virtualization  string           `xml:"virtualizationType"`
	Hypervisor      string           `xml:"hypervisor"`
	ENA             bool             `xml:"enaSupport"`
	BootMode        string           `xml:"bootMode,omitempty"`
	Platform        string           `xml:"platform,omitempty"`
	PlatformDetails string           `xml:"platformDetails"`
	Tags            []tagXML         `xml:"tagSet>item,omitempty"`
}

type imageDeviceXML struct {
	Name string `xml:"deviceName"`
	EBS  ebsXML `xml:"ebs"`
}

func (is *images) xml(im *image) imageXML {
	yes := true
	x := imageXML{
		ID: im.ID, Location: im.Owner + "/" + im.Name, State: "available", OwnerID: im.Owner, OwnerAlias: im.Alias,
		Created: timestamp(im.Created), Public: im.Public, Tags: tagsXML(is.tagsOf(im)), Arch: im.Arch, Type: "machine", Name: im.Name,
		Description: im.description(), RootDeviceType: "ebs", RootDeviceName: im.Root,
		Devices: []imageDeviceXML{{im.Root, ebsXML{
			SizeGiB: im.RootGiB, Type: "gp3", Snapshot: im.snapshot(), DeleteOnTermination: &yes, Encrypted: new(bool), IOPS: 3000, Throughput: 125,
		}}},
		Virtualization: "hvm", Hypervisor: "xen", ENA: !im.NoENA, BootMode: im.BootMode, PlatformDetails: im.platform(),
	}
	if im.Windows {
		x.Platform = "windows"
	}
	if end := im.deprecated(); !end.IsZero() {
		x.Deprecated = timestamp(end)
	}
	return x
}

func (im *image) description() string {
	return "EKS-optimized Kubernetes node based on " + im.Family + ", (k8s: " + im.Kubernetes + ")"
}

// platform returns the platform's name for billing.
func (im *image) platform() string {
	if im.Windows {
		return "Windows"
	}
	return "Linux/UNIX"
}

type describeImagesXML struct {
	Images []imageXML `xml:"imagesSet>item"`
	Next   string     `xml:"nextToken,omitempty"`
}

func (is *images) describe(c *call) (any, error) {
	found, err := byID(is.all(), func(im *image) string { return im.ID }, c.form.strings("ImageId"), func(id string) error {
		return refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	// EC2 User Guide, "Troubleshoot EC2 AMIs": a request that names an image which is not shared is not authorized.
	for _, im := range found {
		if c.form.has("ImageId") && !im.visible() {
			return nil, notAuthorized(im)
		}
	}
	owners := c.form.strings("Owner")
	deprecatedToo := *orFalse(c.form.flag("IncludeDeprecated")) || c.form.has("ImageId")
	found = slices.DeleteFunc(slices.Clone(found), func(im *image) bool {
		foreign := len(owners) > 0 && !slices.ContainsFunc(owners, im.ownedBy)
		// An owner always sees its deprecated images (API reference, DescribeImages, IncludeDeprecated).
		return foreign || !im.visible() || !deprecatedToo && im.Owner != accountID && im.outdated(c.at)
	})
	found, err = sift(found, parseFilters(c.form), func(im *image) attributes {
		return tagged(is.tagsOf(im), oneOf(map[string]string{
			"image-id": im.ID, "name": im.Name, "architecture": im.Arch, "owner-id": im.Owner, "owner-alias": im.Alias,
			"state": "available", "is-public": strconv.FormatBool(im.Public), "image-type": "machine", "virtualization-type": "hvm", "root-device-type": "ebs",
			"root-device-name": im.Root, "hypervisor": "xen", "ena-support": strconv.FormatBool(!im.NoENA), "creation-date": timestamp(im.Created),
			"description": im.description(), "platform-details": im.platform(),
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
		out.Images = append(out.Images, is.xml(im))
	}
	return out, nil
}
