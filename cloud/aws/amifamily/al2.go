package amifamily

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// al2 is Amazon Linux 2, for which AWS publishes no images for Kubernetes 1.33 and later. Images that are built from
// github.com/awslabs/amazon-eks-ami and have its bootstrap.sh work with it as well.
var al2 = Family{
	Name: awsv1.AMIFamilyAL2, OS: string(corev1.Linux), Volumes: []Volume{{"/dev/xvda", 20}}, PodDevice: "/dev/xvda",
	PodsByENI: true, ReservesByENI: true, PodsPerCore: true,
	images: al2Images, userData: al2UserData,
}

func al2Images(version, kubernetes string) []Image {
	path := func(kind string) string {
		name := "recommended"
		if version != awsv1.AliasVersionLatest {
			name = fmt.Sprintf("amazon-eks%s-node-%s-%s", kind, kubernetes, version)
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2%s/%s/image_id", kubernetes, kind, name)
	}
	return []Image{{path(""), runs(plainOnly)}, {path("-arm64"), runs(plainOnly)}, {path("-gpu"), runs(gpuOnly, neuronOnly)}}
}

// al2UserData returns the user's parts, then a script that calls the image's bootstrap.sh with the node's settings
// (https://github.com/awslabs/amazon-eks-ami, templates/al2/runtime/bootstrap.sh). The script's own output goes where AWS's
// documentation has people look for it. The kubelet takes flags over its configuration file, which bootstrap.sh writes.
func al2UserData(n *Node) (string, error) {
	parts, err := splitUserData(n.Custom, alwaysScript)
	if err != nil {
		return "", err
	}
	arguments := []string{
		shellQuote(n.Cluster.Name),
		"--apiserver-endpoint " + shellQuote(n.Cluster.Endpoint),
		"--b64-cluster-ca " + shellQuote(n.Cluster.Authority),
	}
	dns := n.clusterDNS()
	if isIPv6(dns) {
		arguments = append(arguments, "--ip-family ipv6")
	}
	if len(dns) > 0 {
		arguments = append(arguments, "--dns-cluster-ip "+shellQuote(strings.Join(dns, ",")))
	}
	arguments = append(arguments,
		"--use-max-pods false", // or bootstrap.sh sets the number that the image knows for the instance type
		"--kubelet-extra-args "+shellQuote(strings.Join(kubeletFlags(n), " ")))
	if n.RAID0 {
		arguments = append(arguments, "--local-disks raid0")
	}
	script := "#!/bin/bash -xe\n" +
		"exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n" +
		"/etc/eks/bootstrap.sh " + strings.Join(arguments, " \\\n  ") + "\n"
	return joinUserData(append(parts, newPart(shellScriptPart, script)))
}

// shellQuote quotes a word so that a shell leaves it as it is.
func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
