package ec2sim

import (
	"encoding/base64"
	"net/http"
	"regexp"
)

var clusterPath = regexp.MustCompile(`^/clusters/([^/]+)/?$`)

// describeCluster describes the one cluster there is.
func describeCluster(s *Server, c *call) (any, error) {
	match := clusterPath.FindStringSubmatch(c.form.value)
	if match == nil || match[1] != s.opts.Cluster {
		return nil, &apiError{http.StatusNotFound, "ResourceNotFoundException", "No cluster found for " + c.form.value}
	}
	subnets := []string{}
	for _, n := range s.account.subnets {
		subnets = append(subnets, n.ID)
	}
	network := map[string]any{"serviceIpv4Cidr": serviceCIDR, "ipFamily": "ipv4"}
	if s.opts.IPv6 {
		network = map[string]any{"serviceIpv6Cidr": serviceIPv6CIDR, "ipFamily": "ipv6"}
	}
	return map[string]any{"cluster": map[string]any{
		"name":            s.opts.Cluster,
		"arn":             s.account.arn("eks", "cluster/"+s.opts.Cluster),
		"createdAt":       float64(imageReleases[0].Unix()),
		"version":         s.opts.KubernetesVersion,
		"endpoint":        s.opts.ClusterEndpoint,
		"roleArn":         s.account.roleARN(s.opts.Cluster + "-cluster"),
		"status":          "ACTIVE",
		"platformVersion": "eks.1",
		"resourcesVpcConfig": map[string]any{
			"subnetIds": subnets, "securityGroupIds": []string{}, "clusterSecurityGroupId": s.account.groups[0].ID, "vpcId": vpcID,
			"endpointPublicAccess": true, "endpointPrivateAccess": true, "publicAccessCidrs": []string{"0.0.0.0/0"},
		},
		"kubernetesNetworkConfig": network,
		"certificateAuthority":    map[string]any{"data": base64.StdEncoding.EncodeToString(s.opts.ClusterCA)},
		"tags":                    map[string]string{},
	}}, nil
}
