package amifamily

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// The releases of Windows Server with their builds, which are the values of the label node.kubernetes.io/windows-build.
var (
	windows2019 = windows(awsv1.AMIFamilyWindows2019, "2019", "10.0.17763")
	windows2022 = windows(awsv1.AMIFamilyWindows2022, "2022", "10.0.20348")
	windows2025 = windows(awsv1.AMIFamilyWindows2025, "2025", "10.0.26100")
)

func windows(name, year, build string) Family {
	return Family{
		Name: name, OS: string(corev1.Windows), WindowsBuild: build, Volumes: []Volume{{"/dev/sda1", 50}}, PodDevice: "/dev/sda1", PodsPerCore: true,
		images: func(_, kubernetes string) []Image {
			return []Image{{
				fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id", year, kubernetes),
				runs([]corev1.NodeSelectorRequirement{
					{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{string(corev1.Windows)}},
					{Key: corev1.LabelWindowsBuild, Operator: corev1.NodeSelectorOpIn, Values: []string{build}},
				}),
			}}
		},
	}
}
