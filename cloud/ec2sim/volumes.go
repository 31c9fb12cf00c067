package ec2sim

import "strings"

// rootDevice is the root device of the Linux images, and rootSizeGiB the size of its snapshot; Bottlerocket's is smaller.
const (
	rootDevice      = "/dev/xvda"
	rootSizeGiB     = 20
	bottlerocketGiB = 2
)

// checkDevices refuses volumes that EC2 refuses: smaller than their snapshot (EC2 reports "expect size>="; EBS User Guide,
// "Create an Amazon EBS volume": the size has to be at least that of the snapshot), and of no size without one (API reference,
// EbsBlockDevice: "You must specify either a snapshot ID or a volume size"). Of the snapshots of this and other accounts only
// those of images exist; of others nothing is known, and they fit.
func (s *Server) checkDevices(spec *launchSpec, im *image) error {
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
		} else if from := s.image("ami" + strings.TrimPrefix(snapshot, "snap")); snapshot != "" && from != nil {
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

// newVolumes makes the volumes of an instance: the root volume is the image's unless a device mapping replaces it.
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
