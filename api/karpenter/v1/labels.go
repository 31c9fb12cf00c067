package v1

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Labels that belong to Karpenter's own domain.
const (
	// NodePoolLabelKey names the NodePool a node or claim belongs to.
	NodePoolLabelKey = Group + "/nodepool"
	// CapacityTypeLabelKey says how the instance is paid for: one of the CapacityType values.
	CapacityTypeLabelKey = Group + "/capacity-type"
	// NodeRegisteredLabelKey is "true" on a Node once labels and taints of its claim have been brought onto it.
	NodeRegisteredLabelKey = Group + "/registered"
	// NodeInitializedLabelKey is "true" on a Node once it is ready for ordinary pods.
	NodeInitializedLabelKey = Group + "/initialized"
	// NodeDoNotSyncTaintsLabelKey set to "true" on a Node keeps the claim's taints from being brought onto it at
	// registration, because whatever booted the node has set them already.
	NodeDoNotSyncTaintsLabelKey = Group + "/do-not-sync-taints"
)

// Values of CapacityTypeLabelKey.
const (
	CapacityTypeOnDemand = "on-demand"
	CapacityTypeSpot     = "spot"
	CapacityTypeReserved = "reserved"
)

// Values of the label kubernetes.io/arch.
const (
	ArchitectureAmd64 = "amd64"
	ArchitectureArm64 = "arm64"
)

// ExcludeFromLoadBalancersValue is the value that draining nodes carry in the label
// node.kubernetes.io/exclude-from-external-load-balancers.
const ExcludeFromLoadBalancersValue = "karpenter"

// AWSLabelDomain is the label domain of the AWS provider; its keys are in AWSWellKnownLabels.
const AWSLabelDomain = "karpenter.k8s.aws"

// WellKnownLabels returns the keys whose values a provider knows for every instance type or offering, so that a
// requirement on them narrows what is launched. Any other key is a custom label, which exists only where a NodePool
// defines it. The set is a copy; who asks for one key alone calls WellKnownLabel.
func WellKnownLabels() sets.Set[string] { return wellKnownLabels.Clone() }

// WellKnownLabel says whether a key is one of WellKnownLabels.
func WellKnownLabel(key string) bool { return wellKnownLabels.Has(key) }

// wellKnownLabels is made once: every label of every claim is looked up in it, again and again.
var wellKnownLabels = makeWellKnownLabels()

func makeWellKnownLabels() sets.Set[string] {
	return sets.New(
		NodePoolLabelKey,
		CapacityTypeLabelKey,
		corev1.LabelTopologyZone,
		corev1.LabelTopologyRegion,
		corev1.LabelInstanceTypeStable,
		corev1.LabelArchStable,
		corev1.LabelOSStable,
		corev1.LabelWindowsBuild,
		"topology.k8s.aws/zone-id",
	).Union(AWSWellKnownLabels())
}

// AWSWellKnownLabels returns the keys in the domain karpenter.k8s.aws that may be used in NodePools and pods. The list
// is the one in the CEL rules of the NodePool and NodeClaim schemas. The set is a copy.
func AWSWellKnownLabels() sets.Set[string] {
	keys := sets.New[string]()
	for _, name := range []string{
		"capacity-reservation-id", "capacity-reservation-interruptible", "capacity-reservation-type", "ec2nodeclass",
		"instance-accelerator-count", "instance-accelerator-manufacturer", "instance-accelerator-name",
		"instance-capability-flex", "instance-category", "instance-cpu", "instance-cpu-manufacturer",
		"instance-cpu-sustained-clock-speed-mhz", "instance-ebs-bandwidth",
		"instance-encryption-in-transit-supported", "instance-family", "instance-generation", "instance-gpu-count",
		"instance-gpu-manufacturer", "instance-gpu-memory", "instance-gpu-name", "instance-hypervisor",
		"instance-local-nvme", "instance-memory", "instance-network-bandwidth", "instance-size", "instance-tenancy",
		"placement-group-id", "placement-group-partition",
	} {
		keys.Insert(AWSLabelDomain + "/" + name)
	}
	return keys
}

// NormalizedLabelKey translates label keys that Kubernetes has deprecated, and those of other projects that mean the
// same, into the well-known key; any other key is returned as it is.
func NormalizedLabelKey(key string) string {
	switch key {
	case corev1.LabelFailureDomainBetaZone, "topology.ebs.csi.aws.com/zone":
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	}
	return key
}

// DeprecatedLabelKeys returns the keys that NormalizedLabelKey translates.
func DeprecatedLabelKeys() []string {
	return []string{
		corev1.LabelFailureDomainBetaZone, "topology.ebs.csi.aws.com/zone", corev1.LabelFailureDomainBetaRegion,
		corev1.LabelInstanceType, "beta.kubernetes.io/arch", "beta.kubernetes.io/os",
	}
}

// LabelDomain returns the part of a label key before the slash, or "" for a key without one.
func LabelDomain(key string) string {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return domain
}

// NodeClassLabelKey returns the label under which claims and nodes carry the name of their node class, such as
// karpenter.k8s.aws/ec2nodeclass.
func NodeClassLabelKey(class schema.GroupKind) string {
	return class.Group + "/" + strings.ToLower(class.Kind)
}

// RestrictedLabel says why a label key may not be chosen in a NodePool, or returns nil where it may. Well-known labels
// are allowed everywhere. The domain karpenter.sh is Karpenter's; karpenter.k8s.aws the AWS provider's; and the domains
// kubernetes.io and k8s.io are the kubelet's and the node controllers', except for kops.k8s.io, node.kubernetes.io and
// node-restriction.kubernetes.io, which Kubernetes leaves to operators.
func RestrictedLabel(key string) error {
	if WellKnownLabel(key) {
		return nil
	}
	if key == corev1.LabelHostname {
		return fmt.Errorf("label %q is restricted: every node has its own value, which is not known before launch", key)
	}
	domain := LabelDomain(key)
	for _, open := range []string{"kops.k8s.io", corev1.LabelNamespaceSuffixNode, corev1.LabelNamespaceNodeRestriction} {
		if withinDomain(domain, open) {
			return nil
		}
	}
	for _, closed := range []string{Group, AWSLabelDomain, "kubernetes.io", "k8s.io"} {
		if withinDomain(domain, closed) {
			return fmt.Errorf("label domain %q is restricted: use a well-known label, or a domain of your own", closed)
		}
	}
	return nil
}

// withinDomain tells whether domain is parent or one of its sub-domains.
func withinDomain(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
