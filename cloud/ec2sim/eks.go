package ec2sim

import (
	"encoding/base64"
	"net/http"
	"regexp"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

var clusterPath = regexp.MustCompile(`^/clusters/([^/]+)/?$`)

// eks is the account's EKS service, which has one cluster.
type eks struct {
	account  *account
	cluster  string // its name
	version  string
	endpoint string
	ca       []byte // PEM
	ipv6     bool
}

// arn returns the ARN of the cluster.
func (e *eks) arn() string { return e.account.arn("eks", "cluster/"+e.cluster) }

// describeCluster handles DescribeCluster.
func (e *eks) describeCluster(c *call) (any, error) {
	match := clusterPath.FindStringSubmatch(c.form.value)
	if match == nil || match[1] != e.cluster {
		return nil, &apiError{http.StatusNotFound, "ResourceNotFoundException", "No cluster found for " + c.form.value}
	}
	subnets := []string{}
	for _, n := range e.account.subnets {
		subnets = append(subnets, n.ID)
	}
	network := map[string]any{"serviceIpv4Cidr": serviceCIDR, "ipFamily": "ipv4"}
	if e.ipv6 {
		network = map[string]any{"serviceIpv6Cidr": serviceIPv6CIDR, "ipFamily": "ipv6"}
	}
	return map[string]any{"cluster": map[string]any{
		"name":            e.cluster,
		"arn":             e.arn(),
		"createdAt":       float64(imageReleases[0].Unix()),
		"version":         e.version,
		"endpoint":        e.endpoint,
		"roleArn":         e.account.roleARN(e.cluster + "-cluster"),
		"status":          "ACTIVE",
		"platformVersion": "eks.1",
		"resourcesVpcConfig": map[string]any{
			"subnetIds": subnets, "securityGroupIds": []string{}, "clusterSecurityGroupId": e.account.groups[0].ID, "vpcId": vpcID,
			"endpointPublicAccess": true, "endpointPrivateAccess": true, "publicAccessCidrs": []string{"0.0.0.0/0"},
		},
		"kubernetesNetworkConfig": network,
		"certificateAuthority":    map[string]any{"data": base64.StdEncoding.EncodeToString(e.ca)},
		"tags":                    map[string]string{},
	}}, nil
}

// needs returns the permissions an EKS call needs.
func (e *eks) needs(c *call) []policy.Request {
	action := "eks:" + c.action
	if match := nodeGroupPath.FindStringSubmatch(c.form.value); match != nil {
		return []policy.Request{{Action: action, Resource: e.account.arn("eks", "nodegroup/"+match[1]+"/"+match[2]+"/00000000-0000-4000-8000-000000000000")}}
	}
	for _, path := range []*regexp.Regexp{clusterPath, nodeGroupsPath} {
		if match := path.FindStringSubmatch(c.form.value); match != nil {
			return []policy.Request{{Action: action, Resource: e.account.arn("eks", "cluster/"+match[1])}}
		}
	}
	return nil
}
