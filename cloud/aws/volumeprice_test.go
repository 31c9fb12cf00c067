package aws

import (
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// volume returns a disk of this kind and size. Zero values are left out.
func volume(kind, size string, iops, throughput int64) *awsv1.BlockDeviceMapping {
	ebs := &awsv1.BlockDevice{}
	if kind != "" {
		ebs.VolumeType = aws.String(kind)
	}
	if size != "" {
		parsed := resource.MustParse(size)
		ebs.VolumeSize = &parsed
	}
	if iops > 0 {
		ebs.IOPS = aws.Int64(iops)
	}
	if throughput > 0 {
		ebs.Throughput = aws.Int64(throughput)
	}
	return &awsv1.BlockDeviceMapping{DeviceName: aws.String("/dev/xvda"), EBS: ebs}
}

func TestVolumePrice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, family string
		disks          []*awsv1.BlockDeviceMapping
		month          float64
	}{
		"AL2023":        {reason: "the family's disk is 20 GiB of gp3", family: awsv1.AMIFamilyAL2023, month: 1.60},
		"Bottlerocket":  {reason: "the family has a second disk of 4 GiB", family: awsv1.AMIFamilyBottlerocket, month: 24 * 0.08},
		"Custom":        {reason: "the image's disk is not known, and costs what most do", family: awsv1.AMIFamilyCustom, month: 1.60},
		"GP3":           {reason: "3,000 IOPS and 125 MiB/s are in the price", disks: []*awsv1.BlockDeviceMapping{volume("gp3", "100Gi", 3000, 125)}, month: 8},
		"GP3Faster":     {reason: "what is above them is not", disks: []*awsv1.BlockDeviceMapping{volume("gp3", "100Gi", 4000, 225)}, month: 8 + 5 + 4},
		"GP2":           {reason: "its IOPS come with its size", disks: []*awsv1.BlockDeviceMapping{volume("gp2", "100Gi", 0, 0)}, month: 10},
		"NoType":        {reason: "EC2 makes it gp2", disks: []*awsv1.BlockDeviceMapping{volume("", "100Gi", 0, 0)}, month: 10},
		"IO1":           {reason: "each I/O operation is paid for", disks: []*awsv1.BlockDeviceMapping{volume("io1", "100Gi", 1000, 0)}, month: 12.5 + 65},
		"IO2":           {reason: "as with io1 up to 32,000", disks: []*awsv1.BlockDeviceMapping{volume("io2", "100Gi", 1000, 0)}, month: 12.5 + 65},
		"IO2Tiers":      {reason: "what is above 32,000 and 64,000 is cheaper", disks: []*awsv1.BlockDeviceMapping{volume("io2", "100Gi", 70000, 0)}, month: 12.5 + 2080 + 1472 + 192},
		"Magnetic":      {reason: "every type the field allows has a price", disks: []*awsv1.BlockDeviceMapping{volume("standard", "100Gi", 0, 0), volume("st1", "1Ti", 0, 0), volume("sc1", "1Ti", 0, 0)}, month: 5 + 1024*0.06},
		"SeveralDisks":  {reason: "all of them are paid for", disks: []*awsv1.BlockDeviceMapping{volume("gp3", "50Gi", 0, 0), volume("gp3", "50Gi", 0, 0)}, month: 8},
		"Snapshot":      {reason: "only the snapshot knows the size", disks: []*awsv1.BlockDeviceMapping{volume("gp3", "", 0, 0)}, month: 1.60},
		"WholeGiB":      {reason: "EC2 counts whole GiB", disks: []*awsv1.BlockDeviceMapping{volume("gp3", "10G", 0, 0)}, month: 0.80},
		"InstanceStore": {reason: "what is no volume costs nothing", disks: []*awsv1.BlockDeviceMapping{{DeviceName: aws.String("/dev/sdb")}}, month: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := &awsv1.EC2NodeClass{}
			class.Spec.BlockDeviceMappings = test.disks
			if test.family != "" {
				class.Spec.AMIFamily = aws.String(test.family)
			}
			if got := VolumePrice(class) * hoursPerMonth; math.Abs(got-test.month) > 1e-9 {
				t.Errorf("%s: %g $ a month, want %g", test.reason, got, test.month)
			}
		})
	}
}
