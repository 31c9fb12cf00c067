package aws

import (
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// hoursPerMonth is what AWS divides a month into (https://calculator.aws).
const hoursPerMonth = 730

// volumeRate is what a kind of volume costs per month, in US dollars.
type volumeRate struct {
	gib float64 // for each GiB
	// iops and throughput are for each I/O operation per second above iopsFree, and each MiB/s above throughputFree.
	iops, iopsFree             float64
	throughput, throughputFree float64
}

// volumeRates are the list prices of us-east-1 (https://aws.amazon.com/ebs/pricing). Other regions cost up to twice as
// much, and so do their machines, so the ratio of the two is much the same everywhere. Requests to magnetic volumes,
// which are billed by the million, are left out.
var volumeRates = map[types.VolumeType]volumeRate{
	types.VolumeTypeGp3:      {gib: 0.08, iops: 0.005, iopsFree: 3000, throughput: 0.04, throughputFree: 125},
	types.VolumeTypeGp2:      {gib: 0.10},
	types.VolumeTypeIo1:      {gib: 0.125, iops: 0.065},
	types.VolumeTypeIo2:      {gib: 0.125}, // see io2IOPS
	types.VolumeTypeSt1:      {gib: 0.045},
	types.VolumeTypeSc1:      {gib: 0.015},
	types.VolumeTypeStandard: {gib: 0.05},
}

// io2Tiers are the monthly prices of one I/O operation per second of an io2 volume. Each applies up to a number of
// them.
var io2Tiers = []struct{ upTo, price float64 }{{32_000, 0.065}, {64_000, 0.046}, {math.Inf(1), 0.032}}

// VolumePrice returns what the volumes of one node of a class cost, in US dollars per hour: those of its
// blockDeviceMappings, or of its AMI family if it has none. A volume whose size only a snapshot or an image knows
// counts as one of 20 GiB.
func VolumePrice(class *awsv1.EC2NodeClass) float64 {
	disks := blockDevices(class)
	if len(disks) == 0 {
		disks = []*awsv1.BlockDeviceMapping{defaultDisk("", defaultVolumeGiB)}
	}
	month := 0.0
	for _, disk := range disks {
		if disk.EBS != nil {
			month += volumeMonth(disk.EBS)
		}
	}
	return month / hoursPerMonth
}

// VolumePrice implements cloud.Provider.
func (p *Provider) VolumePrice(given cloud.NodeClass) float64 {
	class, err := ec2Class(given)
	if err != nil {
		return 0
	}
	return VolumePrice(class) * priceLevel(p.region)
}

// volumeMonth returns what a volume costs per month, in US dollars. A volume without a type has EC2's default, gp2.
func volumeMonth(volume *awsv1.BlockDevice) float64 {
	kind := types.VolumeTypeGp2
	if given := aws.ToString(volume.VolumeType); given != "" {
		kind = types.VolumeType(given)
	}
	rate := volumeRates[kind]
	gib := float64(defaultVolumeGiB)
	if volume.VolumeSize != nil {
		gib = math.Ceil(volume.VolumeSize.AsApproximateFloat64() / (1 << 30))
	}
	iops, throughput := float64(aws.ToInt64(volume.IOPS)), float64(aws.ToInt64(volume.Throughput))
	month := gib*rate.gib + max(0, iops-rate.iopsFree)*rate.iops + max(0, throughput-rate.throughputFree)*rate.throughput
	if kind == types.VolumeTypeIo2 {
		month += io2IOPS(iops)
	}
	return month
}

// io2IOPS returns what the I/O operations per second of an io2 volume cost per month, in US dollars.
func io2IOPS(iops float64) float64 {
	month, below := 0.0, 0.0
	for _, tier := range io2Tiers {
		month += max(0, min(iops, tier.upTo)-below) * tier.price
		below = tier.upTo
	}
	return month
}
