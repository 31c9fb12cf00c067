package aws

import (
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// defaultVolumeGiB is the size of the volume pods write to if nothing else is specified.
const defaultVolumeGiB = 20

// blockDevices returns the disks of a class's nodes: its own, or those of its AMI family.
func blockDevices(class *awsv1.EC2NodeClass) []*awsv1.BlockDeviceMapping {
	if len(class.Spec.BlockDeviceMappings) > 0 {
		return class.Spec.BlockDeviceMappings
	}
	var disks []*awsv1.BlockDeviceMapping
	for _, volume := range amifamily.Of(class.AMIFamily()).Volumes {
		disks = append(disks, defaultDisk(volume.Device, volume.GiB))
	}
	return disks
}

func defaultDisk(device string, gib int64) *awsv1.BlockDeviceMapping {
	return &awsv1.BlockDeviceMapping{DeviceName: aws.String(device), EBS: &awsv1.BlockDevice{
		Encrypted:           aws.Bool(true),
		DeleteOnTermination: aws.Bool(true),
		VolumeType:          aws.String(string(types.VolumeTypeGp3)),
		VolumeSize:          resource.NewQuantity(gib<<30, resource.BinarySI),
	}}
}

// rootVolumeSize returns the size in bytes of the volume that is a node's ephemeral storage: the one marked as root
// volume, else the one on the family's own device, which is the last one for a Custom image. The size of a volume that the
// class gives no size counts as the family's default.
func rootVolumeSize(class *awsv1.EC2NodeClass) int64 {
	family := amifamily.Of(class.AMIFamily())
	size := int64(defaultVolumeGiB) << 30
	for _, volume := range family.Volumes {
		if volume.Device == family.PodDevice {
			size = volume.GiB << 30
		}
	}
	for i, disk := range class.Spec.BlockDeviceMappings {
		if disk.EBS == nil || disk.EBS.VolumeSize == nil {
			continue
		}
		if disk.RootVolume {
			return disk.EBS.VolumeSize.Value()
		}
		last := i == len(class.Spec.BlockDeviceMappings)-1
		if family.PodDevice == "" && last || aws.ToString(disk.DeviceName) == family.PodDevice {
			size = disk.EBS.VolumeSize.Value()
		}
	}
	return size
}

// templateDisks renders the disks for a launch template. EC2 counts volumes in whole GiB.
func templateDisks(class *awsv1.EC2NodeClass) []types.LaunchTemplateBlockDeviceMappingRequest {
	var out []types.LaunchTemplateBlockDeviceMappingRequest
	for _, disk := range blockDevices(class) {
		mapping := types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: disk.DeviceName}
		if ebs := disk.EBS; ebs != nil {
			mapping.Ebs = &types.LaunchTemplateEbsBlockDeviceRequest{
				DeleteOnTermination:      ebs.DeleteOnTermination,
				Encrypted:                ebs.Encrypted,
				Iops:                     narrow(ebs.IOPS),
				KmsKeyId:                 ebs.KMSKeyID,
				SnapshotId:               ebs.SnapshotID,
				Throughput:               narrow(ebs.Throughput),
				VolumeInitializationRate: ebs.VolumeInitializationRate,
				VolumeType:               types.VolumeType(aws.ToString(ebs.VolumeType)),
			}
			if ebs.VolumeSize != nil {
				gib := math.Ceil(float64(ebs.VolumeSize.Value()) / (1 << 30))
				mapping.Ebs.VolumeSize = aws.Int32(int32(gib))
			}
		}
		out = append(out, mapping)
	}
	return out
}

// narrow converts an integer of the EC2NodeClass to EC2's width, which holds every value that EC2 accepts.
func narrow(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(*n))
}
