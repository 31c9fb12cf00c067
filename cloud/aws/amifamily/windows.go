package amifamily

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// The releases of Windows Server with their builds, which are the values of the label node.kubernetes.io/windows-build. Of
// each there is the Core installation only, for amd64.
var (
	windows2019 = windows(awsv1.AMIFamilyWindows2019, "2019", "10.0.17763")
	windows2022 = windows(awsv1.AMIFamilyWindows2022, "2022", "10.0.20348")
	windows2025 = windows(awsv1.AMIFamilyWindows2025, "2025", "10.0.26100")
)

// windows returns the family of a release. The VPC CNI gives addresses to Windows pods in another way, so the number of
// network interfaces does not limit them.
func windows(name, year, build string) Family {
	return Family{
		Name: name, OS: string(corev1.Windows), WindowsBuild: build, Volumes: []Volume{{"/dev/sda1", 50}}, PodDevice: "/dev/sda1", PodsPerCore: true,
		userData: windowsUserData, unsupported: windowsUnsupported,
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

// windowsUnsupported: the images set up no instance store, and their script takes one address of the DNS (EKS User Guide,
// "Bootstrap script configuration parameters"). The user's commands are put within the tags of the script's own.
func windowsUnsupported(class *awsv1.EC2NodeClass) field.ErrorList {
	var errs field.ErrorList
	if class.Spec.InstanceStorePolicy != nil {
		errs = append(errs, field.Forbidden(instanceStorePath, "Windows nodes do not use the instance store"))
	}
	if k := class.Spec.Kubelet; k != nil && len(k.ClusterDNS) > 1 {
		errs = append(errs, field.TooMany(kubeletPath.Child("clusterDNS"), len(k.ClusterDNS), 1))
	}
	if custom := class.Spec.UserData; custom != nil && strings.Contains(strings.ToLower(*custom), "powershell>") {
		errs = append(errs, field.Invalid(userDataPath, "<powershell>", "the tags are added to it: it must have the commands only"))
	}
	return errs
}

// windowsUserData returns the user's PowerShell commands, then a call of the image's bootstrap script with the node's
// settings (EKS User Guide, "Create nodes with optimized Windows AMIs"). EC2Launch runs what is between the tags at the first
// boot.
func windowsUserData(n *Node) (string, error) {
	arguments := []string{
		"-EKSClusterName " + powershellQuote(n.Cluster.Name),
		"-APIServerEndpoint " + powershellQuote(n.Cluster.Endpoint),
		"-Base64ClusterCA " + powershellQuote(n.Cluster.Authority),
		"-KubeletExtraArgs " + powershellQuote(strings.Join(kubeletFlags(n), " ")),
	}
	if dns := n.clusterDNS(); len(dns) > 0 {
		arguments = append(arguments, "-DNSClusterIP "+powershellQuote(dns[0]))
	}
	lines := []string{
		"<powershell>",
		`[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"`,
		"& $EKSBootstrapScriptFile " + strings.Join(arguments, " "),
		"</powershell>",
	}
	if n.Custom != "" {
		lines = append(lines[:1:1], append([]string{n.Custom}, lines[1:]...)...)
	}
	return strings.Join(lines, "\n"), nil
}

// powershellQuote quotes a word so that PowerShell leaves it as it is.
func powershellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", "''") + "'" }
