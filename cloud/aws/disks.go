package aws

import (
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// defaultVolumeGiB is the size of the volume pods write to if nothing else is specified.
const defaultVolumeGiB = 20

// ephemeralDevice returns the device whose volume is the node's ephemeral storage, or "" for Custom images, whose
// devices only their maker knows.
func ephemeralDevice(family string) string {
	switch family {
	case awsv1.AMIFamilyBottlerocket:
		return "/dev/xvdb"
	case awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023:
		return "/dev/xvda"
	case awsv1.AMIFamilyCustom:
		return ""
	default:
		return "/dev/sda1"
	}
}

// blockDevices returns the disks of a class's nodes: its own, or those of its AMI family.
func blockDevices(class *awsv1.EC2NodeClass) []*awsv1.BlockDeviceMapping {
	if len(class.Spec.BlockDeviceMappings) > 0 {
		return class.Spec.BlockDeviceMappings
	}
	family := class.AMIFamily()
	switch family {
	case awsv1.AMIFamilyCustom:
		return nil
	case awsv1.AMIFamilyBottlerocket:
		return []*awsv1.BlockDeviceMapping{defaultDisk("/dev/xvda", 4), defaultDisk("/dev/xvdb", defaultVolumeGiB)}
	case awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023:
		return []*awsv1.BlockDeviceMapping{defaultDisk("/dev/xvda", defaultVolumeGiB)}
	default:
		return []*awsv1.BlockDeviceMapping{defaultDisk("/dev/sda1", 50)}
	}
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
// volume, else the one on the family's own device, else, for a Custom image, the last one.
func rootVolumeSize(class *awsv1.EC2NodeClass) int64 {
	disks := blockDevices(class)
	device := ephemeralDevice(class.AMIFamily())
	var chosen *awsv1.BlockDeviceMapping
	for _, disk := range disks {
		switch {
		case disk.RootVolume:
			chosen = disk
		case chosen != nil && chosen.RootVolume:
		case device == "" || aws.ToString(disk.DeviceName) == device:
			chosen = disk
		}
	}
	if chosen == nil || chosen.EBS == nil || chosen.EBS.VolumeSize == nil {
		return defaultVolumeGiB << 30
	}
	return chosen.EBS.VolumeSize.Value()
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
