package ec2sim

import (
	"strconv"
	"strings"
)

// volumes handles the volumes of instances, which have no rows of their own.
type volumes struct {
	images    *images
	instances *table[instance]
}

// check refuses volumes that EC2 refuses: those smaller than their snapshot (EC2 reports "expect size>="; EBS User Guide,
// "Create an Amazon EBS volume": the size has to be at least that of the snapshot), and those without size and snapshot
// (API reference, EbsBlockDevice: "You must specify either a snapshot ID or a volume size"). The simulator knows only the
// snapshots of images; it accepts any size for others.
func (vs *volumes) check(spec *launchSpec, im *image) error {
	names := map[string]bool{}
	for _, d := range spec.Devices {
		if names[d.Name] {
			return refuse("InvalidBlockDeviceMapping", "The device '%s' is used in more than one block-device mapping", d.Name)
		}
		names[d.Name] = true
		if d.VirtualName != "" {
			continue
		}
		snapshot, least := d.Snapshot, 0
		if snapshot == "" && d.Name == im.Root {
			snapshot, least = im.snapshot(), im.RootGiB
		} else if from := vs.images.find("ami" + strings.TrimPrefix(snapshot, "snap")); snapshot != "" && from != nil {
			least = from.RootGiB
		}
		switch {
		case snapshot != "" && !strings.HasPrefix(snapshot, "snap-"):
			return refuse("InvalidSnapshotID.Malformed", "The snapshot ID '%s' is not valid", snapshot)
		case snapshot == "" && d.SizeGiB == 0:
			return missingParameter("size/snapshot")
		case d.SizeGiB != 0 && d.SizeGiB < least:
			return refuse("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot '%s', expect size>= %dGB", d.SizeGiB, snapshot, least)
		}
	}
	return nil
}

// newVolumes returns the volumes of an instance: the root volume is the image's unless a device mapping replaces it.
func newVolumes(spec *launchSpec, im *image) []volume {
	root := volume{ID: newID("vol"), Device: im.Root, SizeGiB: im.RootGiB, Type: "gp3"}
	volumes := []volume{root}
	for _, d := range spec.Devices {
		if d.VirtualName != "" {
			continue
		}
		v := volume{
			ID: newID("vol"), Device: d.Name, SizeGiB: d.SizeGiB, Type: d.Type, IOPS: d.IOPS, Throughput: d.Throughput,
			Encrypted: d.Encrypted != nil && *d.Encrypted, Keep: d.DeleteOnTermination != nil && !*d.DeleteOnTermination,
		}
		setDefault(&v.Type, "gp3")
		if d.Name == im.Root {
			setDefault(&v.SizeGiB, im.RootGiB)
			volumes[0] = v
			continue
		}
		volumes = append(volumes, v)
	}
	return volumes
}

type volumeXML struct {
	ID         string                `xml:"volumeId"`
	SizeGiB    int                   `xml:"size"`
	Zone       string                `xml:"availabilityZone"`
	State      string                `xml:"status"`
	CreatedAt  string                `xml:"createTime"`
	Type       string                `xml:"volumeType"`
	IOPS       int                   `xml:"iops,omitempty"`
	Throughput int                   `xml:"throughput,omitempty"`
	Encrypted  bool                  `xml:"encrypted"`
	Tags       []tagXML              `xml:"tagSet>item,omitempty"`
	Attached   []volumeAttachmentXML `xml:"attachmentSet>item"`
}

type volumeAttachmentXML struct {
	VolumeID            string `xml:"volumeId"`
	InstanceID          string `xml:"instanceId"`
	Device              string `xml:"device"`
	State               string `xml:"status"`
	AttachedAt          string `xml:"attachTime"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
}

type describeVolumesXML struct {
	Volumes []volumeXML `xml:"volumeSet>item"`
	Next    string      `xml:"nextToken,omitempty"`
}

// describe handles DescribeVolumes. It lists the volumes of instances; a volume that outlives its instance is forgotten.
func (vs *volumes) describe(c *call) (any, error) {
	var all []volumeXML
	for _, i := range vs.instances.rows {
		if i.ended() || !i.visible(c.at) {
			continue
		}
		at := timestamp(i.LaunchedAt)
		for _, v := range i.Volumes {
			all = append(all, volumeXML{
				ID: v.ID, SizeGiB: v.SizeGiB, Zone: i.Zone, State: "in-use", CreatedAt: at, Type: v.Type, IOPS: v.IOPS, Throughput: v.Throughput,
				Encrypted: v.Encrypted, Tags: tagsXML(i.VolumeTags), Attached: []volumeAttachmentXML{{v.ID, i.ID, v.Device, "attached", at, !v.Keep}},
			})
		}
	}
	all, err := byID(all, func(v volumeXML) string { return v.ID }, c.form.strings("VolumeId"), func(id string) error {
		return refuse("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	})
	if err != nil {
		return nil, err
	}
	all, err = sift(all, parseFilters(c.form), func(v volumeXML) attributes {
		tags := map[string]string{}
		for _, t := range v.Tags {
			tags[t.Key] = t.Value
		}
		return tagged(tags, oneOf(map[string]string{
			"volume-id": v.ID, "availability-zone": v.Zone, "status": v.State, "volume-type": v.Type, "size": strconv.Itoa(v.SizeGiB),
			"encrypted": strconv.FormatBool(v.Encrypted), "create-time": v.CreatedAt, "attachment.instance-id": v.Attached[0].InstanceID,
			"attachment.device": v.Attached[0].Device, "attachment.status": v.Attached[0].State,
		}))
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, all, 5, 1000, func(v volumeXML) string { return v.ID })
	return describeVolumesXML{page, next}, err
}
