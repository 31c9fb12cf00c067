package admission

import "fmt"

// minimalEC2NodeClass is the shortest EC2NodeClass there can be.
const minimalEC2NodeClass = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: KarpenterNodeRole-dev
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: dev}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: dev}}]
`

func ec2NodeClassRefusals() []refusal {
	var refusals []refusal
	refusals = append(refusals, identityRefusals()...)
	refusals = append(refusals, amiRefusals()...)
	refusals = append(refusals, selectorRefusals()...)
	refusals = append(refusals, kubeletRefusals()...)
	return append(refusals, instanceRefusals()...)
}

func identityRefusals() []refusal {
	const exactlyOne = "must specify exactly one of ['role', 'instanceProfile']"
	refusals := []refusal{
		{reason: "both role and instance profile", patch: set("spec.instanceProfile", "nodes"), field: "spec", message: exactlyOne},
		{reason: "neither role nor instance profile", patch: set("spec.role", "null"), field: "spec", message: exactlyOne},
		{reason: "a role without name", patch: set("spec.role", `""`), field: "spec.role", message: "role cannot be empty"},
		{reason: "an instance profile without name", patch: set("spec", `{role: null, instanceProfile: ""}`), field: "spec.instanceProfile", message: "instanceProfile cannot be empty"},
		{reason: "a tag without key", patch: set("spec.tags", `{"": a}`), field: "spec.tags", message: "empty tag keys aren't supported"},
	}
	for key, pattern := range map[string]string{
		"eks:eks-cluster-name":           "eks:eks-cluster-name",
		"kubernetes.io/cluster/dev":      "kubernetes.io/cluster/",
		"karpenter.sh/nodepool":          "karpenter.sh/nodepool",
		"karpenter.sh/nodeclaim":         "karpenter.sh/nodeclaim",
		"karpenter.k8s.aws/ec2nodeclass": "karpenter.k8s.aws/ec2nodeclass",
	} {
		refusals = append(refusals, refusal{
			reason: "the tag " + key + " is set for every instance", patch: set("spec.tags", fmt.Sprintf(`{%q: a}`, key)),
			field: "spec.tags", message: "tag contains a restricted tag matching " + pattern,
		})
	}
	return refusals
}

func amiRefusals() []refusal {
	const terms = "spec.amiSelectorTerms"
	refusals := []refusal{
		{
			reason: "the family is needed without an alias", patch: set(terms, `[{id: ami-1}]`),
			field: "spec", message: "must specify amiFamily if amiSelectorTerms does not contain an alias",
		},
		{reason: "a family that does not exist", patch: set("spec.amiFamily", "Ubuntu"), field: "spec.amiFamily", message: `"Bottlerocket"`},
		{reason: "no terms", patch: set(terms, "[]"), field: terms, message: "at least 1 items"},
		{reason: "terms are needed", patch: set(terms, "null"), field: terms, message: "Required value"},
		{
			reason: "an empty term", patch: set(terms, `[{owner: self}]`),
			field: terms, message: "expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']",
		},
		{
			reason: "an id says everything", patch: set(terms, `[{id: ami-1, name: a}]`),
			field: terms, message: "'id' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
		},
		{
			reason: "an alias says everything", patch: set(terms, `[{alias: al2023@latest, owner: self}]`),
			field: terms, message: "'alias' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
		},
		{
			reason: "an alias stands alone", patch: set(terms, `[{alias: al2023@latest}, {id: ami-1}]`),
			field: terms, message: "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
		},
		{
			reason: "an alias without version", patch: set(terms, `[{alias: al2023}]`),
			field: terms + "[0].alias", message: "'alias' is improperly formatted, must match the format 'family@version'",
		},
		{
			reason: "an alias of no family", patch: set(terms, `[{alias: arch@latest}]`), field: terms + "[0].alias",
			message: "family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'",
		},
		{
			reason: "Windows has no versions", patch: set(terms, `[{alias: windows2022@v1}]`),
			field: terms + "[0].alias", message: "windows families may only specify version 'latest'",
		},
		{
			reason: "a tag without value", patch: set(terms, `[{tags: {a: ""}}]`),
			field: terms + "[0].tags", message: "empty tag keys or values aren't supported",
		},
		{reason: "an id of something else", patch: set(terms, `[{id: i-1}]`), field: terms + "[0].id", message: "should match"},
	}
	for _, family := range []struct{ alias, name, article string }{
		{"al2", "AL2", "an"}, {"al2023", "AL2023", "an"}, {"bottlerocket", "Bottlerocket", "a"},
		{"windows2019", "Windows2019", "a"}, {"windows2022", "Windows2022", "a"}, {"windows2025", "Windows2025", "a"},
	} {
		other := "Bottlerocket"
		if family.name == other {
			other = "AL2"
		}
		refusals = append(refusals, refusal{
			reason: "the alias " + family.alias + " implies its family",
			patch:  set("spec", fmt.Sprintf(`{amiFamily: %s, amiSelectorTerms: [{alias: %s@latest}]}`, other, family.alias)),
			field:  "spec",
			message: fmt.Sprintf("if set, amiFamily must be '%s' or 'Custom' when using %s %s alias",
				family.name, family.article, family.name),
		})
	}
	return refusals
}

func selectorRefusals() []refusal {
	const (
		subnets      = "spec.subnetSelectorTerms"
		groups       = "spec.securityGroupSelectorTerms"
		reservations = "spec.capacityReservationSelectorTerms"
		placement    = "spec.placementGroupSelector"
		emptyTag     = "empty tag keys or values aren't supported"
	)
	return []refusal{
		{reason: "no subnet terms", patch: set(subnets, "[]"), field: subnets, message: "subnetSelectorTerms cannot be empty"},
		{reason: "an empty subnet term", patch: set(subnets, "[{}]"), field: subnets, message: "expected at least one, got none, ['tags', 'id']"},
		{
			reason: "a subnet's id says everything", patch: set(subnets, "[{id: subnet-1, tags: {a: b}}]"),
			field: subnets, message: "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term",
		},
		{reason: "a subnet tag without value", patch: set(subnets, `[{tags: {a: ""}}]`), field: subnets + "[0].tags", message: emptyTag},
		{reason: "no security group terms", patch: set(groups, "[]"), field: groups, message: "securityGroupSelectorTerms cannot be empty"},
		{reason: "an empty security group term", patch: set(groups, "[{}]"), field: groups, message: "expected at least one, got none, ['tags', 'id', 'name']"},
		{
			reason: "a security group's id says everything", patch: set(groups, "[{id: sg-1, name: a}]"),
			field: groups, message: "'id' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
		},
		{
			reason: "a security group's name says everything", patch: set(groups, "[{name: a, tags: {a: b}}]"),
			field: groups, message: "'name' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
		},
		{reason: "a security group tag without value", patch: set(groups, `[{tags: {a: ""}}]`), field: groups + "[0].tags", message: emptyTag},
		{
			reason: "an empty reservation term", patch: set(reservations, `[{ownerID: "123456789012"}]`),
			field: reservations, message: "expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']",
		},
		{
			reason: "a reservation's id says everything", patch: set(reservations, "[{id: cr-1, tags: {a: b}}]"),
			field: reservations, message: "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
		},
		{reason: "a reservation tag without value", patch: set(reservations, `[{tags: {a: ""}}]`), field: reservations + "[0].tags", message: emptyTag},
		{reason: "an owner that is no account", patch: set(reservations, `[{tags: {a: b}, ownerID: me}]`), field: reservations + "[0].ownerID", message: "should match"},
		{reason: "a placement group of no name", patch: set(placement, "{}"), field: placement, message: "expected at least one, got none, ['name', 'id']"},
		{reason: "a placement group of two names", patch: set(placement, "{name: a, id: pg-1}"), field: placement, message: "'name' and 'id' are mutually exclusive"},
	}
}

func kubeletRefusals() []refusal {
	const kubelet = "spec.kubelet"
	refusals := []refusal{
		{
			reason: "images are collected from high to low", patch: set(kubelet, `{imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 60}`),
			field: kubelet, message: "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",
		},
		{
			reason: "a soft threshold needs a grace period", patch: set(kubelet, `{evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {}}`),
			field: kubelet, message: "evictionSoft OwnerKey does not have a matching evictionSoftGracePeriod",
		},
		{
			reason: "a grace period needs a soft threshold", patch: set(kubelet, `{evictionSoft: {}, evictionSoftGracePeriod: {memory.available: 1m}}`),
			field: kubelet, message: "evictionSoftGracePeriod OwnerKey does not have a matching evictionSoft",
		},
		{reason: "a threshold is a share or a quantity", patch: set(kubelet, `{evictionHard: {memory.available: 101%}}`), field: kubelet + ".evictionHard.memory.available", message: "should match"},
		{reason: "pods are not negative", patch: set(kubelet, `{maxPods: -1}`), field: kubelet + ".maxPods", message: "greater than or equal to 0"},
		{reason: "there is no such field", patch: set(kubelet, `{featureGates: {}}`), field: kubelet + ".featureGates", message: "unknown field"},
	}
	for _, name := range []string{"systemReserved", "kubeReserved"} {
		refusals = append(refusals,
			refusal{
				reason: "nothing else can be reserved", patch: set(kubelet, fmt.Sprintf(`{%s: {pods: "1"}}`, name)),
				field: kubelet + "." + name, message: "valid keys for " + name + " are ['cpu','memory','ephemeral-storage','pid']",
			},
			refusal{
				reason: "nothing negative can be reserved", patch: set(kubelet, fmt.Sprintf(`{%s: {cpu: "-1"}}`, name)),
				field: kubelet + "." + name, message: name + " value cannot be a negative resource quantity",
			},
		)
	}
	for name, value := range map[string]string{"evictionHard": "5%", "evictionSoft": "5%", "evictionSoftGracePeriod": "1m"} {
		refusals = append(refusals, refusal{
			reason: "kubelet knows no such signal", patch: set(kubelet, fmt.Sprintf(`{%s: {disk.available: %s}}`, name, value)),
			field: kubelet + "." + name,
			message: "valid keys for " + name +
				" are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']",
		})
	}
	return refusals
}

func instanceRefusals() []refusal {
	const (
		disks      = "spec.blockDeviceMappings"
		interfaces = "spec.networkInterfaces"
		tracking   = "spec.connectionTracking"
		pairs      = "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and can have at most one efa device per network card"
	)
	return []refusal{
		{
			reason: "one root volume", patch: set(disks, `[{rootVolume: true, ebs: {volumeSize: 1Gi}}, {rootVolume: true, ebs: {volumeSize: 1Gi}}]`),
			field: disks, message: "must have only one blockDeviceMappings with rootVolume",
		},
		{reason: "a volume of no size", patch: set(disks, `[{ebs: {volumeType: gp3}}]`), field: disks + "[0].ebs", message: "snapshotID or volumeSize must be defined"},
		{reason: "a size in MiB", patch: set(disks, `[{ebs: {volumeSize: 100Mi}}]`), field: disks + "[0].ebs.volumeSize", message: "should match"},
		{
			reason: "only snapshots are initialized", patch: set(disks, `[{ebs: {volumeSize: 1Gi, volumeInitializationRate: 100}}]`),
			field: disks + "[0].ebs", message: "snapshotID must be set when volumeInitializationRate is set",
		},
		{reason: "a size beyond EBS", patch: set(disks, `[{ebs: {volumeSize: 65T}}]`), field: disks + "[0].ebs.volumeSize", message: "should match"},
		{reason: "a volume type that does not exist", patch: set(disks, `[{ebs: {volumeSize: 1Gi, volumeType: ssd}}]`), field: disks + "[0].ebs.volumeType", message: `"gp3"`},
		{
			reason: "a primary interface", patch: set(interfaces, `[{networkCardIndex: 0, deviceIndex: 1, interfaceType: interface}]`),
			field: interfaces, message: "networkInterfaces must include a primary interface with interfaceType='interface'",
		},
		{
			reason: "two interfaces in one place", patch: set(interfaces, `[{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}]`),
			field: interfaces, message: pairs,
		},
		{
			reason: "two adapters on one card", patch: set(interfaces, `[{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 1, deviceIndex: 0, interfaceType: efa-only}, {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}]`),
			field: interfaces, message: pairs,
		},
		{
			reason: "a timeout is needed", patch: set(tracking, "{}"),
			field: tracking, message: "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
		},
		{reason: "a timeout within bounds", patch: set(tracking, "{udpTimeout: 61}"), field: tracking + ".udpTimeout", message: "less than or equal to 60"},
		{reason: "hops are bounded", patch: set("spec.metadataOptions.httpPutResponseHopLimit", "65"), field: "spec.metadataOptions.httpPutResponseHopLimit", message: "less than or equal to 64"},
		{reason: "tokens are required or optional", patch: set("spec.metadataOptions.httpTokens", "never"), field: "spec.metadataOptions.httpTokens", message: `"required", "optional"`},
		{reason: "one policy for instance stores", patch: set("spec.instanceStorePolicy", "RAID1"), field: "spec.instanceStorePolicy", message: `"RAID0"`},
		{reason: "nested virtualization is on or off", patch: set("spec.cpuOptions.nestedVirtualization", `"yes"`), field: "spec.cpuOptions.nestedVirtualization", message: `"enabled", "disabled"`},
		{reason: "prefixes are not negative", patch: set("spec.ipPrefixCount", "-1"), field: "spec.ipPrefixCount", message: "greater than or equal to 0"},
	}
}
