package amifamily

import (
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// custom is the family of images that only their user knows: they get the user's user data as they are.
var custom = Family{
	Name: awsv1.AMIFamilyCustom, OS: string(corev1.Linux), PodsByENI: true, ReservesByENI: true, PodsPerCore: true,
	images:   func(string, string) []Image { return nil },
	userData: func(n *Node) (string, error) { return n.Custom, nil },
}
