// Package amifamily knows the AMI families: which images an alias means, what user data makes an instance join the cluster,
// which volumes it has, and how many pods its kubelet takes. It calls nothing.
//
// Each family has a file, and Of returns it by the name that an EC2NodeClass uses. All families get the same Node and bring
// its settings to the kubelet in their own way: AL2023 as a NodeConfig for nodeadm, AL2 as arguments of bootstrap.sh,
// Bottlerocket as settings in TOML, and Windows as arguments of a PowerShell script. What the user's own user data says is
// kept, and what a node needs to join has the last word. Where a family has no way to do what a class asks for,
// Family.Unsupported says so: nothing is left out in silence.
//
// The user data are compared with those that Karpenter writes for the same classes (cloud/aws/testdata/families).
//
// Reading order: node, mime, kubeletflags, family, al2023, al2, custom, bottlerocket, windows, amifamily.
package amifamily

import awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

// Of returns a family by its name in spec.amiFamily. The API server admits no other names.
func Of(name string) *Family {
	switch name {
	case awsv1.AMIFamilyAL2:
		return &al2
	case awsv1.AMIFamilyAL2023:
		return &al2023
	case awsv1.AMIFamilyBottlerocket:
		return &bottlerocket
	case awsv1.AMIFamilyWindows2019:
		return &windows2019
	case awsv1.AMIFamilyWindows2022:
		return &windows2022
	case awsv1.AMIFamilyWindows2025:
		return &windows2025
	default:
		return &custom
	}
}
