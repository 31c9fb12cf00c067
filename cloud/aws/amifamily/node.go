package amifamily

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Node is what an instance needs to know to become a node of its cluster.
type Node struct {
	Cluster Cluster
	// Kubelet are the class's settings; nil means none. MaxPods replaces theirs.
	Kubelet *awsv1.KubeletConfiguration
	MaxPods int64
	// Labels and Taints are those of the node's claim, startup taints included.
	Labels map[string]string
	Taints []corev1.Taint
	// RAID0 makes the instance store hold what pods write.
	RAID0 bool
	// Image is the name of the instance's image.
	Image string
	// Custom is the user's own user data.
	Custom string
}

// Cluster is what a node needs to know about its cluster.
type Cluster struct {
	Name, Endpoint string
	// Authority is the certificate authority's PEM, in base64.
	Authority string
	// ServiceCIDR is the range of service addresses; "" if it is not known.
	ServiceCIDR string
}

// kubelet returns the class's kubelet settings, empty ones if it has none.
func (n *Node) kubelet() *awsv1.KubeletConfiguration {
	if n.Kubelet == nil {
		return &awsv1.KubeletConfiguration{}
	}
	return n.Kubelet
}

// clusterDNS returns the addresses of the cluster's DNS: those of the class, else the tenth of the service range, which EKS
// gives to it; nil if neither is known. nodeadm works this out for itself. The bootstrap scripts of AL2 and Windows guess it
// from the VPC's addresses, and would be wrong for service ranges that are not EKS's defaults.
func (n *Node) clusterDNS() []string {
	if own := n.kubelet().ClusterDNS; len(own) > 0 {
		return own
	}
	prefix, err := netip.ParsePrefix(n.Cluster.ServiceCIDR)
	if err != nil {
		return nil
	}
	address := prefix.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	return []string{address.String()}
}

// isIPv6 reports whether the first of some addresses is an IPv6 address.
func isIPv6(addresses []string) bool {
	if len(addresses) == 0 {
		return false
	}
	address, err := netip.ParseAddr(addresses[0])
	return err == nil && address.Is6() && !address.Is4In6()
}

// taints returns the taints that the node registers with: its claim's, and one that keeps pods off it until registration has
// brought it up to date.
func (n *Node) taints() []corev1.Taint {
	out := []corev1.Taint{karpv1.UnregisteredNoExecuteTaint()}
	for _, taint := range n.Taints {
		if !taint.MatchTaint(&out[0]) {
			out = append(out, taint)
		}
	}
	return out
}

// labels returns the labels that the node registers with. A kubelet may not give itself labels of Kubernetes' own domains;
// registration adds those. One label says that the kubelet sets all taints of the node. Registration then leaves the taints
// alone. Otherwise, if it is late, it would restore a startup taint that its owner has removed by then
// (https://github.com/kubernetes-sigs/karpenter/issues/1772).
func (n *Node) labels() map[string]string {
	out := map[string]string{karpv1.NodeDoNotSyncTaintsLabelKey: "true"}
	for key, value := range n.Labels {
		domain, _, ok := strings.Cut(key, "/")
		if ok && (inDomain(domain, "kubernetes.io") || inDomain(domain, "k8s.io")) {
			continue
		}
		out[key] = value
	}
	return out
}

func inDomain(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// joined formats a map as the kubelet's flags take it, sorted.
func joined(pairs map[string]string, separator string) string {
	list := make([]string, 0, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, key+separator+pairs[key])
	}
	return strings.Join(list, ",")
}
