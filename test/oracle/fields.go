package oracle

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Place is where something can be seen: the path of a value in the document of an action. A * in the path stands for any
// text. Besides the actions of AWS there is Planned, which nobody sends.
type Place struct {
	Action, Path string
	// As is how documents for people write the path, if not as it is.
	As string
}

// Planned is the action of a place in the size that the planner expects of a node: its capacity, and what pods can have.
const Planned = "planned"

// Covers reports whether the place is that of a difference.
func (p Place) Covers(d Difference) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(p.Path), `\*`, ".*")
	return p.Action == d.Action && regexp.MustCompile("(?s)^"+pattern+"$").MatchString(d.Path)
}

// nodeConfig is the path of the NodeConfig in the user data of nodes of Amazon Linux 2023, which the table's classes launch.
const nodeConfig = "UserData[application/node.eks.aws 0]"

// Kind says, for people, in which kind of thing the place is.
func (p Place) Kind() string {
	switch {
	case p.Action == Planned:
		return "planned size"
	case p.Action == "CreateFleet":
		return "fleet"
	case p.Action == "DescribeInstances":
		return "instance"
	case p.Action == "DescribeInstanceTypes":
		return "instance type"
	case p.Action == "DescribeImages":
		return "image"
	case strings.HasPrefix(p.Path, "UserData"):
		return "user data"
	case p.Action == "CreateLaunchTemplate":
		return "launch template"
	}
	return p.Action
}

// anInterface is how paths name a network interface.
var anInterface = regexp.MustCompile(`NetworkInterfaces?\[[0-9*]/[0-9*]\]`)

// Name names the place within its kind, for people, in Markdown.
func (p Place) Name() string {
	name := cmp.Or(p.As, strings.TrimPrefix(strings.TrimPrefix(p.Path, "LaunchTemplateData."), nodeConfig+"."))
	if strings.Contains(name, " ") {
		return name // a description
	}
	return "`" + anInterface.ReplaceAllString(name, "NetworkInterfaces[]") + "`"
}

// Shorter ways to write places.
func inTemplate(path string) Place {
	return Place{Action: "CreateLaunchTemplate", Path: "LaunchTemplateData." + path}
}
func inFleet(path string) Place    { return Place{Action: "CreateFleet", Path: path} }
func ofInstance(path string) Place { return Place{Action: "DescribeInstances", Path: path} }
func inPlan(path string) Place     { return Place{Action: Planned, Path: path} }
func inUserData(path string) Place {
	return Place{Action: "CreateLaunchTemplate", Path: nodeConfig + ".spec." + path}
}
func (p Place) as(text string) Place { p.As = text; return p }

// Field is a row of the table of all fields of an EC2NodeClass: what changes where when the field changes. Tests prove each
// row on the simulated EC2, and check that its scene sets the field.
type Field struct {
	// Path is the path of the field below spec. [] are the items of a list of objects.
	Path string
	// From and To are two specifications that differ in this field only, in YAML. They are put over one with a role, images of
	// Amazon Linux 2023, and subnets and security groups by tags. The account of the test has the cluster blue, the images
	// own-a and own-b, the image other-a of the account 210987654321, a targeted reservation with the id ${RESERVATION}, and the
	// placement group group-a with the id ${PLACEMENT_GROUP}.
	From, To string
	// Type is the instance type that is launched; m5.large if empty.
	Type string
	// Seen are all places that differ, and none if the field is refused.
	Seen []Place
	// Condition and Reason say how the field is refused.
	Condition, Reason string
	// Scene is the scene that sets the field, in which Karpenter is asked the same; none if the field is refused.
	Scene string
	// Karpenter says what Karpenter does, if not the same and no row of Differences says it.
	Karpenter string
}

// Topic is a part of the table with a heading.
type Topic struct {
	Title  string
	Fields []Field
}

// Places that several rows have.
var (
	image    = []Place{inTemplate("ImageId"), ofInstance("ImageId")}
	groups   = []Place{inTemplate("NetworkInterface[0/0].SecurityGroupId").as("SecurityGroupIds"), ofInstance("SecurityGroups"), ofInstance("NetworkInterfaces[0/0].Groups")}
	subnet   = []Place{inFleet("Overrides[*].*").as("Overrides[].SubnetId"), ofInstance("SubnetId"), ofInstance("NetworkInterfaces[0/0].SubnetId"), ofInstance("Placement.AvailabilityZone*").as("Placement.AvailabilityZone")}
	reserved = []Place{
		inTemplate("CapacityReservationSpecification.*").as("CapacityReservationSpecification"), ofInstance("CapacityReservationId"), ofInstance("CapacityReservationSpecification.*").as("CapacityReservationSpecification"),
	}
	group     = []Place{inTemplate("Placement.GroupId"), ofInstance("Placement.GroupId"), ofInstance("Placement.GroupName")}
	maxPods   = []Place{inUserData("kubelet.config.maxPods"), inPlan("capacity.pods"), inPlan("allocatable.pods")}
	leftSpace = inPlan("allocatable.ephemeral-storage")
	space     = []Place{inPlan("capacity.ephemeral-storage"), leftSpace}
)

// Fields is the table of all fields of an EC2NodeClass.
var Fields = []Topic{
	{"Subnets, security groups and placement", []Field{
		{Path: "subnetSelectorTerms[].tags", Scene: "every field", Seen: subnet,
			From: "subnetSelectorTerms: [{tags: {Name: blue-private-a}}]", To: "subnetSelectorTerms: [{tags: {Name: blue-private-b}}]"},
		{Path: "subnetSelectorTerms[].id", Scene: "subnet and security group by id", Seen: subnet,
			From: "subnetSelectorTerms: [{id: subnet-0a5e7e0000000001}]", To: "subnetSelectorTerms: [{id: subnet-0a5e7e0000000002}]"},
		{Path: "securityGroupSelectorTerms[].tags", Scene: "every field", Seen: groups,
			From: "securityGroupSelectorTerms: [{tags: {Name: blue-node}}]", To: "securityGroupSelectorTerms: [{tags: {Name: eks-cluster-sg-blue}}]"},
		{Path: "securityGroupSelectorTerms[].id", Scene: "subnet and security group by id", Seen: groups,
			From: "securityGroupSelectorTerms: [{id: sg-0a5e7e0000000001}]", To: "securityGroupSelectorTerms: [{id: sg-0a5e7e0000000003}]"},
		{Path: "securityGroupSelectorTerms[].name", Scene: "security group by name", Seen: groups,
			From: "securityGroupSelectorTerms: [{name: blue-node}]", To: "securityGroupSelectorTerms: [{name: eks-cluster-sg-blue}]"},
		{Path: "placementGroupSelector.name", Scene: "cluster placement group by name", Seen: group, To: "placementGroupSelector: {name: group-a}"},
		{Path: "placementGroupSelector.id", Scene: "spread placement group by id", Seen: group, To: "placementGroupSelector: {id: \"${PLACEMENT_GROUP}\"}"},
	}},
	{"Capacity reservations", []Field{
		{Path: "capacityReservationSelectorTerms[].tags", Scene: "reserved", Seen: reserved, To: "capacityReservationSelectorTerms: [{tags: {for: oracle}}]"},
		{Path: "capacityReservationSelectorTerms[].id", Scene: "reservation by id", Seen: reserved, To: "capacityReservationSelectorTerms: [{id: \"${RESERVATION}\"}]"},
		{Path: "capacityReservationSelectorTerms[].ownerID", Scene: "open reservation by owner and criteria", Seen: reserved,
			From: `capacityReservationSelectorTerms: [{ownerID: "210987654321", instanceMatchCriteria: targeted}]`,
			To:   `capacityReservationSelectorTerms: [{ownerID: "123456789012", instanceMatchCriteria: targeted}]`},
		{Path: "capacityReservationSelectorTerms[].instanceMatchCriteria", Scene: "open reservation by owner and criteria", Seen: reserved,
			From: "capacityReservationSelectorTerms: [{instanceMatchCriteria: open}]", To: "capacityReservationSelectorTerms: [{instanceMatchCriteria: targeted}]"},
	}},
	{"Images and user data", []Field{
		{Path: "amiSelectorTerms[].alias", Scene: "every field", Seen: image,
			From: "amiSelectorTerms: [{alias: al2023@latest}]", To: "amiSelectorTerms: [{alias: al2023@v20260928}]"},
		{Path: "amiSelectorTerms[].id", Scene: "image by id", Seen: image,
			From: "{amiFamily: AL2023, amiSelectorTerms: [{id: \"${OWN_A}\"}]}", To: "{amiFamily: AL2023, amiSelectorTerms: [{id: \"${OWN_B}\"}]}"},
		{Path: "amiSelectorTerms[].name", Scene: "image by name", Seen: image,
			From: "{amiFamily: AL2023, amiSelectorTerms: [{name: own-a}]}", To: "{amiFamily: AL2023, amiSelectorTerms: [{name: own-b}]}"},
		{Path: "amiSelectorTerms[].owner", Scene: "image by name", Seen: image,
			From: "{amiFamily: AL2023, amiSelectorTerms: [{name: '*-a', owner: self}]}", To: "{amiFamily: AL2023, amiSelectorTerms: [{name: '*-a', owner: '210987654321'}]}"},
		{Path: "amiSelectorTerms[].tags", Scene: "image by tags", Seen: image,
			From: "{amiFamily: AL2023, amiSelectorTerms: [{tags: {for: a}}]}", To: "{amiFamily: AL2023, amiSelectorTerms: [{tags: {for: b}}]}"},
		{Path: "amiSelectorTerms[].ssmParameter", Scene: "image by parameter", Seen: image,
			From: "{amiFamily: AL2023, amiSelectorTerms: [{ssmParameter: /own/a}]}", To: "{amiFamily: AL2023, amiSelectorTerms: [{ssmParameter: /own/b}]}"},
		{Path: "amiFamily", Scene: "image by name",
			Seen: []Place{{Action: "CreateLaunchTemplate", Path: "UserData*", As: "in another form"}},
			From: "{amiFamily: AL2023, amiSelectorTerms: [{name: own-a}]}", To: "{amiFamily: AL2, amiSelectorTerms: [{name: own-a}]}"},
		{Path: "userData", Scene: "every field", Seen: []Place{{Action: "CreateLaunchTemplate", Path: "UserData[text/x-shellscript 0]", As: "as a part before the node's own"}},
			From: `userData: "#!/bin/bash\necho one"`, To: `userData: "#!/bin/bash\necho two"`},
	}},
	{"IAM, tags and monitoring", []Field{
		{Path: "role", Scene: "every field", Seen: []Place{{Action: "AddRoleToInstanceProfile", Path: "RoleName"}}, To: "role: another-role"},
		{Path: "instanceProfile", Scene: "own profile", Seen: []Place{inTemplate("IamInstanceProfile.Name"), ofInstance("IamInstanceProfile.Arn")},
			From: "{role: null, instanceProfile: one}", To: "{role: null, instanceProfile: two}"},
		{Path: "tags", Scene: "every field",
			Seen: []Place{
				{Action: "CreateFleet", Path: "TagSpecification[*].Tag[team]", As: "TagSpecifications"}, inTemplate("TagSpecification[network-interface].Tag[team]").as("TagSpecifications"),
				{Action: "CreateLaunchTemplate", Path: "TagSpecification[launch-template].Tag[team]", As: "TagSpecifications"},
				{Action: "CreateInstanceProfile", Path: "Tags[team]", As: "Tags"}, ofInstance("Tags[team]").as("Tags"),
			},
			From: "tags: {team: blue}", To: "tags: {team: red}"},
		{Path: "context", Scene: "every field", Seen: []Place{inFleet("Context")}, From: "context: one", To: "context: two"},
		{Path: "detailedMonitoring", Scene: "every field", Seen: []Place{inTemplate("Monitoring.Enabled"), ofInstance("Monitoring.State")},
			From: "detailedMonitoring: false", To: "detailedMonitoring: true"},
	}},
	{"Instance metadata and processors", []Field{
		{Path: "metadataOptions.httpEndpoint", Scene: "every field", Seen: []Place{inTemplate("MetadataOptions.HttpEndpoint"), ofInstance("MetadataOptions.HttpEndpoint")},
			From: "metadataOptions: {httpEndpoint: enabled}", To: "metadataOptions: {httpEndpoint: disabled}"},
		{Path: "metadataOptions.httpProtocolIPv6", Scene: "every field", Seen: []Place{inTemplate("MetadataOptions.HttpProtocolIpv6"), ofInstance("MetadataOptions.HttpProtocolIpv6")},
			From: "metadataOptions: {httpProtocolIPv6: disabled}", To: "metadataOptions: {httpProtocolIPv6: enabled}"},
		{Path: "metadataOptions.httpPutResponseHopLimit", Scene: "every field",
			Seen: []Place{inTemplate("MetadataOptions.HttpPutResponseHopLimit"), ofInstance("MetadataOptions.HttpPutResponseHopLimit")},
			From: "metadataOptions: {httpPutResponseHopLimit: 1}", To: "metadataOptions: {httpPutResponseHopLimit: 2}"},
		{Path: "metadataOptions.httpTokens", Scene: "every field", Seen: []Place{inTemplate("MetadataOptions.HttpTokens"), ofInstance("MetadataOptions.HttpTokens")},
			From: "metadataOptions: {httpTokens: required}", To: "metadataOptions: {httpTokens: optional}"},
		{Path: "cpuOptions.nestedVirtualization", Scene: "nested virtualization", Type: "m8i.large", Seen: []Place{inTemplate("CpuOptions.NestedVirtualization")},
			From: "cpuOptions: {nestedVirtualization: disabled}", To: "cpuOptions: {nestedVirtualization: enabled}"},
	}},
	{"Network interfaces", []Field{
		{Path: "associatePublicIPAddress", Scene: "every field",
			Seen: []Place{inTemplate("NetworkInterface[0/0].AssociatePublicIpAddress"), ofInstance("PublicIpAddress")},
			From: "associatePublicIPAddress: false", To: "associatePublicIPAddress: true"},
		{Path: "ipPrefixCount", Scene: "every field", Seen: []Place{inTemplate("NetworkInterface[0/0].Ipv4PrefixCount")}, From: "ipPrefixCount: 1", To: "ipPrefixCount: 2"},
		{Path: "connectionTracking.tcpEstablishedTimeout", Scene: "every field",
			Seen: []Place{inTemplate("NetworkInterface[0/0].ConnectionTrackingSpecification.TcpEstablishedTimeout")},
			From: "connectionTracking: {tcpEstablishedTimeout: 600}", To: "connectionTracking: {tcpEstablishedTimeout: 700}"},
		{Path: "connectionTracking.udpStreamTimeout", Scene: "every field",
			Seen: []Place{inTemplate("NetworkInterface[0/0].ConnectionTrackingSpecification.UdpStreamTimeout")},
			From: "connectionTracking: {udpStreamTimeout: 90}", To: "connectionTracking: {udpStreamTimeout: 120}"},
		{Path: "connectionTracking.udpTimeout", Scene: "every field",
			Seen: []Place{inTemplate("NetworkInterface[0/0].ConnectionTrackingSpecification.UdpTimeout")},
			From: "connectionTracking: {udpTimeout: 40}", To: "connectionTracking: {udpTimeout: 50}"},
		{Path: "networkInterfaces[].networkCardIndex", Scene: "several network cards", Type: "c6in.32xlarge",
			Seen: []Place{inTemplate("NetworkInterface[*/1].*").as("NetworkInterfaces[].NetworkCardIndex"), ofInstance("NetworkInterfaces[*/1].*").as("NetworkInterfaces[].Attachment.NetworkCardIndex")},
			From: "networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 0, deviceIndex: 1, interfaceType: interface}]",
			To:   "networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 1, deviceIndex: 1, interfaceType: interface}]"},
		{Path: "networkInterfaces[].deviceIndex", Scene: "several network cards", Type: "c6in.32xlarge",
			Seen: []Place{inTemplate("NetworkInterface[0/*].*").as("NetworkInterfaces[].DeviceIndex"), ofInstance("NetworkInterfaces[0/*].*").as("NetworkInterfaces[].Attachment.DeviceIndex")},
			From: "networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 0, deviceIndex: 1, interfaceType: interface}]",
			To:   "networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 0, deviceIndex: 2, interfaceType: interface}]"},
		{Path: "networkInterfaces[].interfaceType", Scene: "several network cards", Type: "c6in.32xlarge",
			Seen: []Place{inTemplate("NetworkInterface[1/1].InterfaceType"), ofInstance("NetworkInterfaces[1/1].InterfaceType"),
				inPlan("capacity.vpc.amazonaws.com/efa"), inPlan("allocatable.vpc.amazonaws.com/efa")},
			From: "networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 1, deviceIndex: 1, interfaceType: interface}]",
			To:   "networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}]"},
	}},
	{"Disks", []Field{
		{Path: "blockDeviceMappings[].deviceName", Scene: "every field",
			Seen: []Place{inTemplate("BlockDeviceMapping[*].*").as("BlockDeviceMappings[].DeviceName"), ofInstance("BlockDeviceMappings[*].*").as("BlockDeviceMappings[].DeviceName")},
			From: volumes("", "{deviceName: /dev/xvdb, ebs: {volumeSize: 10Gi}}"), To: volumes("", "{deviceName: /dev/xvdc, ebs: {volumeSize: 10Gi}}")},
		{Path: "blockDeviceMappings[].rootVolume", Scene: "every field", Seen: space,
			From: "blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 30Gi}}, {deviceName: /dev/xvdb, rootVolume: false, ebs: {volumeSize: 50Gi}}]",
			To:   "blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: false, ebs: {volumeSize: 30Gi}}, {deviceName: /dev/xvdb, rootVolume: true, ebs: {volumeSize: 50Gi}}]"},
		{Path: "blockDeviceMappings[].ebs.volumeSize", Scene: "every field", Seen: append([]Place{disk("VolumeSize")}, space...),
			From: "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 30Gi}}]", To: "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 40Gi}}]"},
		{Path: "blockDeviceMappings[].ebs.volumeType", Scene: "every field", Seen: []Place{disk("VolumeType")}, From: volumes("volumeType: gp2"), To: volumes("volumeType: gp3")},
		{Path: "blockDeviceMappings[].ebs.iops", Scene: "every field", Seen: []Place{disk("Iops")}, From: volumes("volumeType: gp3, iops: 4000"), To: volumes("volumeType: gp3, iops: 5000")},
		{Path: "blockDeviceMappings[].ebs.throughput", Scene: "every field", Seen: []Place{disk("Throughput")},
			From: volumes("volumeType: gp3, throughput: 200"), To: volumes("volumeType: gp3, throughput: 250")},
		{Path: "blockDeviceMappings[].ebs.encrypted", Scene: "every field", Seen: []Place{disk("Encrypted")}, From: volumes("encrypted: false"), To: volumes("encrypted: true")},
		{Path: "blockDeviceMappings[].ebs.kmsKeyID", Scene: "every field", Seen: []Place{disk("KmsKeyId")},
			From: volumes("encrypted: true, kmsKeyID: 1234abcd-12ab-34cd-56ef-1234567890ab"), To: volumes("encrypted: true, kmsKeyID: alias/nodes")},
		{Path: "blockDeviceMappings[].ebs.snapshotID", Scene: "volume of a snapshot", Seen: []Place{disk("SnapshotId")},
			From: volumes("snapshotID: snap-0123456789abcdef0"), To: volumes("snapshotID: snap-0123456789abcdef1")},
		{Path: "blockDeviceMappings[].ebs.volumeInitializationRate", Scene: "volume of a snapshot", Seen: []Place{disk("VolumeInitializationRate")},
			From: volumes("snapshotID: snap-0123456789abcdef0, volumeInitializationRate: 150"), To: volumes("snapshotID: snap-0123456789abcdef0, volumeInitializationRate: 200")},
		{Path: "blockDeviceMappings[].ebs.deleteOnTermination", Scene: "every field",
			Seen: []Place{disk("DeleteOnTermination"), ofInstance("BlockDeviceMappings[/dev/xvda].Ebs.DeleteOnTermination").as("BlockDeviceMappings[].Ebs.DeleteOnTermination")},
			From: volumes("deleteOnTermination: true"), To: volumes("deleteOnTermination: false")},
		{Path: "instanceStorePolicy", Scene: "every field", Type: "m5d.large", Seen: append([]Place{inUserData("instance.localStorage.strategy")}, space...),
			To: "instanceStorePolicy: RAID0"},
	}},
	{"Kubelet", []Field{
		{Path: "kubelet.clusterDNS", Scene: "every field", Seen: []Place{inUserData("kubelet.config.clusterDNS")},
			From: "kubelet: {clusterDNS: [10.96.0.10]}", To: "kubelet: {clusterDNS: [10.96.0.11]}"},
		{Path: "kubelet.maxPods", Scene: "every field", Seen: maxPods, From: "kubelet: {maxPods: 20}", To: "kubelet: {maxPods: 21}"},
		{Path: "kubelet.podsPerCore", Scene: "every field", Seen: append([]Place{inUserData("kubelet.config.podsPerCore")}, maxPods...),
			From: "kubelet: {podsPerCore: 5}", To: "kubelet: {podsPerCore: 6}"},
		{Path: "kubelet.kubeReserved", Scene: "every field", Seen: []Place{inUserData("kubelet.config.kubeReserved.memory"), inPlan("allocatable.memory")},
			From: "kubelet: {kubeReserved: {memory: 300Mi}}", To: "kubelet: {kubeReserved: {memory: 400Mi}}"},
		{Path: "kubelet.systemReserved", Scene: "every field", Seen: []Place{inUserData("kubelet.config.systemReserved.memory"), inPlan("allocatable.memory")},
			From: "kubelet: {systemReserved: {memory: 100Mi}}", To: "kubelet: {systemReserved: {memory: 200Mi}}"},
		{Path: "kubelet.evictionHard", Scene: "every field", Seen: []Place{inUserData("kubelet.config.evictionHard.nodefs.available"), leftSpace},
			From: "kubelet: {evictionHard: {nodefs.available: 5%}}", To: "kubelet: {evictionHard: {nodefs.available: 6%}}"},
		{Path: "kubelet.evictionSoft", Scene: "every field", Seen: []Place{inUserData("kubelet.config.evictionSoft.memory.available"), inPlan("allocatable.memory")},
			From: "kubelet: {evictionSoft: {memory.available: 500Mi}, evictionSoftGracePeriod: {memory.available: 1m}}",
			To:   "kubelet: {evictionSoft: {memory.available: 600Mi}, evictionSoftGracePeriod: {memory.available: 1m}}"},
		{Path: "kubelet.evictionSoftGracePeriod", Scene: "every field", Seen: []Place{inUserData("kubelet.config.evictionSoftGracePeriod.memory.available")},
			From: "kubelet: {evictionSoft: {memory.available: 500Mi}, evictionSoftGracePeriod: {memory.available: 1m}}",
			To:   "kubelet: {evictionSoft: {memory.available: 500Mi}, evictionSoftGracePeriod: {memory.available: 2m}}"},
		{Path: "kubelet.evictionMaxPodGracePeriod", Scene: "every field", Seen: []Place{inUserData("kubelet.config.evictionMaxPodGracePeriod")},
			From: "kubelet: {evictionMaxPodGracePeriod: 30}", To: "kubelet: {evictionMaxPodGracePeriod: 60}"},
		{Path: "kubelet.imageGCHighThresholdPercent", Scene: "every field", Seen: []Place{inUserData("kubelet.config.imageGCHighThresholdPercent")},
			From: "kubelet: {imageGCHighThresholdPercent: 80}", To: "kubelet: {imageGCHighThresholdPercent: 85}"},
		{Path: "kubelet.imageGCLowThresholdPercent", Scene: "every field", Seen: []Place{inUserData("kubelet.config.imageGCLowThresholdPercent")},
			From: "kubelet: {imageGCLowThresholdPercent: 60}", To: "kubelet: {imageGCLowThresholdPercent: 70}"},
		{Path: "kubelet.cpuCFSQuota", Scene: "every field", Seen: []Place{inUserData("kubelet.config.cpuCFSQuota")},
			From: "kubelet: {cpuCFSQuota: true}", To: "kubelet: {cpuCFSQuota: false}"},
	}},
}

// LeftToUserData are the fields that a node learns from its user data alone. With amiFamily Custom the user data are the
// user's, so Tenon, as Karpenter, leaves it to them to say the same.
var LeftToUserData = []string{
	"kubelet.clusterDNS", "kubelet.evictionSoftGracePeriod", "kubelet.evictionMaxPodGracePeriod", "kubelet.imageGCHighThresholdPercent",
	"kubelet.imageGCLowThresholdPercent", "kubelet.cpuCFSQuota",
}

// volumes returns a specification with a root volume of 30 GiB that has further fields, and further volumes.
func volumes(fields string, others ...string) string {
	ebs := "volumeSize: 30Gi"
	if fields != "" {
		ebs += ", " + fields
	}
	return "blockDeviceMappings: [" + strings.Join(append([]string{"{deviceName: /dev/xvda, rootVolume: true, ebs: {" + ebs + "}}"}, others...), ", ") + "]"
}

// disk is a field of the root volume in the launch template.
func disk(field string) Place {
	return inTemplate("BlockDeviceMapping[/dev/xvda].Ebs." + field).as("BlockDeviceMappings[].Ebs." + field)
}

// Reasons returns why Tenon differs from Karpenter at places, in a scene, according to Differences: always, or only where one
// of the two sends nothing.
func Reasons(scene string, places ...Place) (always, absence []string) {
	for _, allowed := range Differences {
		here := Allowed{Case: allowed.Case, Action: allowed.Action, Path: allowed.Path}
		concerns := func(p Place) bool { return here.covers(Difference{Case: scene, Action: p.Action, Path: p.Path}) }
		switch nothing := regexp.QuoteMeta(absent); {
		case !slices.ContainsFunc(places, concerns):
		case allowed.Karpenter == nothing || allowed.Tenon == nothing:
			absence = append(absence, allowed.Reason)
		default:
			always = append(always, allowed.Reason)
		}
	}
	return always, absence
}
