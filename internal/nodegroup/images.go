package nodegroup

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// imageKind is what an AMI type of EKS means here.
type imageKind struct {
	family, arch string
	// accelerated are images that Tenon chooses by the instance type.
	accelerated bool
	// parameter is the SSM parameter of images that no alias has, with a %s for the version of Kubernetes.
	parameter string
}

// imageKinds are the AMI types of EKS (EKS API reference, "Nodegroup") but CUSTOM.
var imageKinds = map[ekstypes.AMITypes]imageKind{
	ekstypes.AMITypesAl2X8664:                    {family: awsv1.AMIFamilyAL2, arch: karpv1.ArchitectureAmd64},
	ekstypes.AMITypesAl2X8664Gpu:                 {family: awsv1.AMIFamilyAL2, arch: karpv1.ArchitectureAmd64, accelerated: true},
	ekstypes.AMITypesAl2Arm64:                    {family: awsv1.AMIFamilyAL2, arch: karpv1.ArchitectureArm64},
	ekstypes.AMITypesAl2023X8664Standard:         {family: awsv1.AMIFamilyAL2023, arch: karpv1.ArchitectureAmd64},
	ekstypes.AMITypesAl2023Arm64Standard:         {family: awsv1.AMIFamilyAL2023, arch: karpv1.ArchitectureArm64},
	ekstypes.AMITypesAl2023X8664Neuron:           {family: awsv1.AMIFamilyAL2023, arch: karpv1.ArchitectureAmd64, accelerated: true},
	ekstypes.AMITypesAl2023X8664Nvidia:           {family: awsv1.AMIFamilyAL2023, arch: karpv1.ArchitectureAmd64, accelerated: true},
	ekstypes.AMITypesAl2023Arm64Nvidia:           {family: awsv1.AMIFamilyAL2023, arch: karpv1.ArchitectureArm64, accelerated: true},
	ekstypes.AMITypesBottlerocketX8664:           {family: awsv1.AMIFamilyBottlerocket, arch: karpv1.ArchitectureAmd64},
	ekstypes.AMITypesBottlerocketArm64:           {family: awsv1.AMIFamilyBottlerocket, arch: karpv1.ArchitectureArm64},
	ekstypes.AMITypesBottlerocketX8664Nvidia:     {family: awsv1.AMIFamilyBottlerocket, arch: karpv1.ArchitectureAmd64, accelerated: true},
	ekstypes.AMITypesBottlerocketArm64Nvidia:     {family: awsv1.AMIFamilyBottlerocket, arch: karpv1.ArchitectureArm64, accelerated: true},
	ekstypes.AMITypesBottlerocketX8664Fips:       bottlerocketFIPS("", "x86_64"),
	ekstypes.AMITypesBottlerocketArm64Fips:       bottlerocketFIPS("", "arm64"),
	ekstypes.AMITypesBottlerocketX8664NvidiaFips: bottlerocketFIPS("-nvidia", "x86_64"),
	ekstypes.AMITypesBottlerocketArm64NvidiaFips: bottlerocketFIPS("-nvidia", "arm64"),
	ekstypes.AMITypesWindowsCore2019X8664:        {family: awsv1.AMIFamilyWindows2019, arch: karpv1.ArchitectureAmd64},
	ekstypes.AMITypesWindowsCore2022X8664:        {family: awsv1.AMIFamilyWindows2022, arch: karpv1.ArchitectureAmd64},
	ekstypes.AMITypesWindowsCore2025X8664:        {family: awsv1.AMIFamilyWindows2025, arch: karpv1.ArchitectureAmd64},
	ekstypes.AMITypesWindowsFull2019X8664:        windowsFull(awsv1.AMIFamilyWindows2019, "2019"),
	ekstypes.AMITypesWindowsFull2022X8664:        windowsFull(awsv1.AMIFamilyWindows2022, "2022"),
	ekstypes.AMITypesWindowsFull2025X8664:        windowsFull(awsv1.AMIFamilyWindows2025, "2025"),
}

// bottlerocketFIPS returns a variant for which there is no alias (Bottlerocket's documentation, "Variants").
func bottlerocketFIPS(variant, arch string) imageKind {
	kind := imageKind{family: awsv1.AMIFamilyBottlerocket, arch: karpv1.ArchitectureAmd64,
		parameter: "/aws/service/bottlerocket/aws-k8s-%s" + variant + "-fips/" + arch + "/latest/image_id"}
	if arch == "arm64" {
		kind.arch = karpv1.ArchitectureArm64
	}
	return kind
}

// windowsFull returns images with the desktop: an alias has those of Server Core (EKS user guide, "Retrieve recommended
// Microsoft Windows AMI IDs").
func windowsFull(family, year string) imageKind {
	return imageKind{family: family, arch: karpv1.ArchitectureAmd64,
		parameter: "/aws/service/ami-windows-latest/Windows_Server-" + year + "-English-Full-EKS_Optimized-%s/image_id"}
}

// windows reports whether an AMI family is one of Windows.
func windows(family string) bool { return strings.HasPrefix(family, "Windows") }

// amazonImage makes the class use the images of an AMI type. It returns false for types that it does not know.
func (p managed) amazonImage() bool {
	group := p.of
	kind, known := imageKinds[group.AmiType]
	if !known {
		p.fail("amiType", "%q is not an AMI type that this command knows: leave the group out by naming the others", group.AmiType)
		return false
	}
	p.system(kind.family, kind.arch)
	spec := &p.class.Spec
	if kind.parameter != "" {
		spec.AMIFamily = &kind.family
		spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{SSMParameter: fmt.Sprintf(kind.parameter, p.source.Cluster.Version)}}
		p.changed("amiType", "is now the SSM parameter %s, since no alias has these images. It names the version of Kubernetes: change it when you upgrade the cluster",
			spec.AMISelectorTerms[0].SSMParameter)
		if version := aws.ToString(group.ReleaseVersion); version != "" {
			p.lost("releaseVersion", "the parameter follows the newest image instead of %s", version)
		}
		return true
	}
	alias := awsv1.Alias{Family: kind.family, Version: p.aliasVersion(kind.family)}
	spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: alias.String()}}
	if kind.family == awsv1.AMIFamilyAL2 {
		p.changed("amiType", "is now the alias %s. There are no AL2 images from Kubernetes 1.33 on: move to al2023@latest before", alias)
	}
	if kind.accelerated {
		p.changed("amiType", "is now the alias %s, of which nodes with accelerators get the images for these, and others the standard ones", alias)
	}
	return true
}

// aliasVersion returns the version that pins an alias to the image a group has.
func (p managed) aliasVersion(family string) string {
	group := p.of
	release, version := aws.ToString(group.ReleaseVersion), ""
	kubernetes := aws.ToString(group.Version)
	first, second, _ := strings.Cut(release, "-")
	switch family {
	case awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023: // such as 1.33.3-20250821
		version = "v" + second
	case awsv1.AMIFamilyBottlerocket: // such as 1.44.0-5d9ac849
		version, second = "v"+first, first
	default: // aliases of Windows have no versions
		second = ""
	}
	switch {
	case release == "":
	case kubernetes != "" && kubernetes != p.source.Cluster.Version:
		p.lost("version", "the group has Kubernetes %s and the cluster %s: new nodes get the version of the cluster, with its newest image instead of %s",
			kubernetes, p.source.Cluster.Version, release)
	case second == "":
		p.lost("releaseVersion", "aliases of %s have no versions: nodes follow the newest image instead of %s", family, release)
	default:
		p.changed("releaseVersion", "pins the alias to the image that the group has. Nodes get another when you write another version; @latest follows the newest")
		return version
	}
	return awsv1.AliasVersionLatest
}

// system requires the operating system and the processor architecture of an image.
func (p *proposal) system(family, arch string) {
	system := string(corev1.Linux)
	if windows(family) {
		system = string(corev1.Windows)
	}
	p.require(corev1.LabelOSStable, corev1.NodeSelectorOpIn, system)
	if arch != "" {
		p.require(corev1.LabelArchStable, corev1.NodeSelectorOpIn, arch)
	}
}

// customImage makes the class use the image of a launch template, which gets the user data as it is, unless they are of a
// kind that Tenon can merge its own with.
func (p *proposal) customImage(field, image string, userData string) {
	family := familyOf(userData)
	p.class.Spec.AMIFamily = &family
	p.class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: image}}
	arch := ""
	for _, name := range p.group.InstanceTypes() {
		arch = p.source.Types[name].Arch
	}
	p.system(family, arch)
	if family == awsv1.AMIFamilyCustom {
		p.changed(field, "is the image of an EC2NodeClass of the family Custom, whose nodes get the user data unchanged: they have to join the cluster by themselves, as before")
		return
	}
	p.changed(field, "is now an image of the family %s, because of the user data: Tenon adds to these what nodes need to join", family)
}
