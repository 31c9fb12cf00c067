package aws

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// refreshCluster is how often the cluster is described again: its version decides which images an alias means.
const refreshCluster = 5 * time.Minute

// clusterFacts holds what a node needs to know about its cluster.
type clusterFacts struct {
	name     string
	endpoint string
	// authority is the certificate authority's PEM, in base64.
	authority string
	// serviceCIDR is the range of service addresses, which nodeadm derives the DNS address from.
	serviceCIDR string
	// version is Kubernetes' minor version, such as 1.34.
	version string
	// arn is known only if Options.ZonalShift needs it.
	arn string
}

// describeCluster asks the API server for its version, and EKS for whatever else the options do not set.
func describeCluster(ctx context.Context, api *eks.Client, options Options) (clusterFacts, error) {
	facts := clusterFacts{
		name:        options.Cluster,
		endpoint:    options.ClusterEndpoint,
		authority:   options.ClusterCA,
		serviceCIDR: options.ServiceCIDR,
		version:     options.KubernetesVersion,
	}
	if facts.version == "" && options.ServerVersion != nil {
		version, err := options.ServerVersion(ctx)
		if err != nil {
			return clusterFacts{}, fmt.Errorf("version of the API server: %w", err)
		}
		facts.version = version
	}
	if !options.ZonalShift && facts.endpoint != "" && facts.authority != "" && facts.serviceCIDR != "" && facts.version != "" {
		return facts, nil
	}
	out, err := api.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(options.Cluster)})
	if err != nil {
		return clusterFacts{}, classify("DescribeCluster", err)
	}
	if out.Cluster == nil {
		return clusterFacts{}, classify("DescribeCluster", errors.New("the reply has no cluster"))
	}
	facts.arn = aws.ToString(out.Cluster.Arn)
	setDefault(&facts.endpoint, aws.ToString(out.Cluster.Endpoint))
	setDefault(&facts.version, aws.ToString(out.Cluster.Version))
	if authority := out.Cluster.CertificateAuthority; authority != nil {
		setDefault(&facts.authority, aws.ToString(authority.Data))
	}
	if network := out.Cluster.KubernetesNetworkConfig; network != nil {
		setDefault(&facts.serviceCIDR, aws.ToString(network.ServiceIpv4Cidr))
		setDefault(&facts.serviceCIDR, aws.ToString(network.ServiceIpv6Cidr))
	}
	return facts, nil
}

// ipv6 reports whether the cluster's services, and so its nodes and pods, have IPv6 addresses.
func (c *clusterFacts) ipv6() bool {
	prefix, err := netip.ParsePrefix(c.serviceCIDR)
	return err == nil && prefix.Addr().Is6()
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
