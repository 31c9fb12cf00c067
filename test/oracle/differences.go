package oracle

import "regexp"

// Allowed is an accepted difference. Empty patterns allow anything; all others must match the whole text.
type Allowed struct {
	Case, Action, Path string
	// Karpenter and Tenon match the values.
	Karpenter, Tenon string
	// Reason says why it is accepted.
	Reason string
}

// maxDifferences limits the list: beyond it, the two are no longer alike.
const maxDifferences = 25

func (a Allowed) covers(d Difference) bool {
	for _, field := range [][2]string{{a.Case, d.Case}, {a.Action, d.Action}, {a.Path, d.Path}, {a.Karpenter, d.Karpenter}, {a.Tenon, d.Tenon}} {
		if field[0] != "" && !regexp.MustCompile("(?s)^(?:"+field[0]+")$").MatchString(field[1]) {
			return false
		}
	}
	return true
}

// Differences is the list of accepted differences.
var Differences = []Allowed{
	{Path: `TagSpecification\[.*\]\.Tag\[tenon\.sh/launch-group\]`, Karpenter: `\(absent\)`, Tenon: "<launch group>|tenon-validation",
		Reason: "Tenon finds what a launch brought by this tag when the answer was lost"},
	{Action: ".* for validation", Path: `.*TagSpecification\[.*\]\.Tag\[karpenter\.sh/nodepool\]`, Karpenter: "", Tenon: "tenon-validation",
		Reason: "a dry run belongs to no NodePool: Karpenter leaves the name empty, Tenon gives one that policies can name"},
	{Action: ".* for validation", Path: `InstanceType|Overrides\[.*|LaunchTemplate\.LaunchTemplateName|UserData.*max-?[pP]ods\]?`,
		Reason: "Karpenter takes the dry runs' instance types from the NodePools, Tenon takes one ordinary type, so a class is validated before it has a pool"},
	{Case: "several network cards", Action: ".* for validation", Path: `(LaunchTemplateData\.)?(ImageId|NetworkInterface\[.*)`,
		Reason: "as above: the ordinary type has one network card and no accelerator"},
	{Case: "several network cards", Action: "RunInstances for validation", Path: `\(call\)`, Karpenter: "InstanceType=p4d.*", Tenon: `\(absent\)`,
		Reason: "as above: Karpenter also tries the pool's accelerated type"},
	{Action: "CreateFleet", Path: `Overrides\[.*\]\.AvailabilityZone`, Karpenter: "us-east-1[abc]", Tenon: `\(absent\)`, Reason: "the subnet says it"},
	{Action: "CreateFleet", Path: `Overrides\[.*\]\.ImageId`, Karpenter: "ami-.*", Tenon: `\(absent\)`, Reason: "the launch template says it, and it is the same image"},
	{Action: "CreateFleet", Path: `Overrides\[.*\]\.Priority`, Karpenter: "[0-9.e-]+", Tenon: `\(absent\)`,
		Reason: "EC2 reads priorities only with the prioritized strategies, and Tenon gives them with those"},
	{Case: "(dedicated|either) tenancy", Action: ".* for validation", Path: `LaunchTemplateData\.Placement\.Tenancy`, Karpenter: "dedicated", Tenon: "default",
		Reason: "Karpenter takes the tenancy of the dry runs from the NodePools as well"},
	{Case: "labels", Action: "CreateFleet", Path: `Overrides\[.*\.metal/.*\]\.(Template|Version)`, Karpenter: `ami-.*|\$Latest`, Tenon: `\(absent\)`,
		Reason: "where virtual machines have the label's value as well, Tenon leaves bare metal aside, which boots for minutes"},
	{Case: "labels", Action: "CreateLaunchTemplate", Path: `\(call\)`, Karpenter: "LaunchTemplateData.*", Tenon: `\(absent\)`,
		Reason: "as above: the template of the bare-metal types"},
	{Case: "labels", Action: "CreateFleet", Path: `Overrides\[.*/subnet-0a5e7e0000000003\]\.(Template|Version)`, Karpenter: `ami-.*|\$Latest`, Tenon: `\(absent\)`,
		Reason: "the cheapest type with this memory is offered in two zones, and Tenon buys in the zones of the type it has planned with"},
	{Path: `LaunchTemplateData\.(BlockDeviceMapping\[.*\]\.Ebs|NetworkInterface\[.*\])\.DeleteOnTermination`, Karpenter: `\(absent\)`, Tenon: "true",
		Reason: "what the image or EC2 does by default, said so that no volume or interface outlives its instance"},
	{Path: `LaunchTemplateData\.NetworkInterface\[.*\]\.InterfaceType`, Karpenter: `\(absent\)`, Tenon: "interface", Reason: "EC2's default"},
	{Action: "RunInstances for validation", Karpenter: `\(absent\)`, Tenon: "sg-.*|[0-9]+|true|false|interface",
		Path:   `NetworkInterface\[.*\]\.(SecurityGroupId|Ipv6AddressCount|PrimaryIpv6|Ipv[46]PrefixCount|InterfaceType|AssociatePublicIpAddress|ConnectionTrackingSpecification\..*)`,
		Reason: "an interface that the request names takes nothing from the template's, so Tenon repeats all that the class says of it"},
	{Path: `UserData.*\.clusterDNS`, Karpenter: `fd5e:7e00:0:a::a|10\.96\.0\.10`, Tenon: `\(absent\)`,
		Reason: "Karpenter reads the address of the service kube-dns; EKS gives it the tenth of the service range, and so does nodeadm where nothing else is said"},
	{Path: `UserData.*[[.]karpenter\.sh/capacity-type\]?`, Karpenter: "on-demand|spot|reserved", Tenon: `\(absent\)`,
		Reason: "registration sets the label, before the node takes pods"},
	{Case: "((AL2|Windows), )?every field", Path: `UserData.*max-?[pP]ods\]?`, Karpenter: "42", Tenon: "40",
		Reason: "with podsPerCore the kubelet takes the smaller of the two, which Tenon has worked out"},
}

// Judge compares what was found with the list. It returns the differences that no row allows, and the rows that allow
// nothing that occurred.
func Judge(found []Difference, list []Allowed) (unlisted []Difference, stale []Allowed) {
	used := make([]bool, len(list))
	for _, difference := range found {
		listed := false
		for i := range list {
			if list[i].covers(difference) {
				used[i], listed = true, true
			}
		}
		if !listed {
			unlisted = append(unlisted, difference)
		}
	}
	for i, allowed := range list {
		if !used[i] {
			stale = append(stale, allowed)
		}
	}
	return unlisted, stale
}
