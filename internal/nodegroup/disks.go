package nodegroup

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// deviceFields and volumeFields are what becomes of a launch template's disks.
var (
	deviceFields = fields{carried: []string{"DeviceName", "Ebs"}, lost: map[string]string{
		"NoDevice": "a class cannot take away a disk of the image", "VirtualName": "a class has spec.instanceStorePolicy for the instance's own disks"}}
	volumeFields = fields{carried: []string{"DeleteOnTermination", "Encrypted", "Iops", "KmsKeyId", "SnapshotId", "Throughput", "VolumeInitializationRate",
		"VolumeSize", "VolumeType"}}
)

// disks carries over the disks of a launch template.
func (p *proposal) disks(path string, devices []ec2types.LaunchTemplateBlockDeviceMapping) {
	for i := range devices {
		at := fmt.Sprintf("%s[%d].", path, i)
		p.say(at, &devices[i], deviceFields)
		v := devices[i].Ebs
		if v == nil {
			continue
		}
		p.say(at+"ebs.", v, volumeFields)
		disk := &awsv1.BlockDevice{DeleteOnTermination: v.DeleteOnTermination, Encrypted: v.Encrypted, IOPS: wide(v.Iops), KMSKeyID: v.KmsKeyId,
			SnapshotID: v.SnapshotId, Throughput: wide(v.Throughput), VolumeInitializationRate: v.VolumeInitializationRate}
		if v.VolumeSize != nil {
			disk.VolumeSize = gibibytes(*v.VolumeSize)
		}
		if v.VolumeType != "" {
			disk.VolumeType = aws.String(string(v.VolumeType))
		}
		p.class.Spec.BlockDeviceMappings = append(p.class.Spec.BlockDeviceMappings, &awsv1.BlockDeviceMapping{DeviceName: devices[i].DeviceName, EBS: disk})
	}
}

func wide(n *int32) *int64 {
	if n == nil {
		return nil
	}
	return aws.Int64(int64(*n))
}

func gibibytes(n int32) *resource.Quantity {
	size := resource.MustParse(fmt.Sprintf("%dGi", n))
	return &size
}

// podDevices are the disks that pods write to, by AMI family; others have /dev/xvda.
var podDevices = map[string]string{awsv1.AMIFamilyBottlerocket: "/dev/xvdb", awsv1.AMIFamilyWindows2019: "/dev/sda1",
	awsv1.AMIFamilyWindows2022: "/dev/sda1", awsv1.AMIFamilyWindows2025: "/dev/sda1"}

// diskSize carries over the disk of a group without a launch template.
func (p *proposal) diskSize(size *int32) {
	if size == nil {
		return
	}
	device := "/dev/xvda"
	family := p.class.AMIFamily()
	if other := podDevices[family]; other != "" {
		device = other
	}
	disk := func(device string, size int32) *awsv1.BlockDeviceMapping {
		return &awsv1.BlockDeviceMapping{DeviceName: &device, EBS: &awsv1.BlockDevice{
			DeleteOnTermination: aws.Bool(true), VolumeType: aws.String("gp3"), VolumeSize: gibibytes(size)}}
	}
	if family == awsv1.AMIFamilyBottlerocket {
		p.class.Spec.BlockDeviceMappings = append(p.class.Spec.BlockDeviceMappings, disk("/dev/xvda", bottlerocketSystemGiB))
	}
	p.class.Spec.BlockDeviceMappings = append(p.class.Spec.BlockDeviceMappings, disk(device, *size))
	p.changed("diskSize", "is now the disk %s, of type gp3", device)
}

// bottlerocketSystemGiB is the size of the disk that Bottlerocket itself is on.
const bottlerocketSystemGiB = 4
