// Package nodegroup proposes NodePools and EC2NodeClasses for the node groups that the Cluster Autoscaler scales: managed node
// groups of EKS, and Auto Scaling groups that carry the Cluster Autoscaler's tags. It is pure: what AWS says of the groups comes
// in, manifests and notes come out. Package cloud/aws/nodegroups asks AWS.
//
// # What is promised
//
// Nothing is lost in silence. Each field that AWS describes is carried over, or a note names it; or it says nothing about the
// nodes, such as when the group was created. Fields of newer SDKs are found by reflection and noted too (unsaid.go), so they
// need no change here. The meaning is kept, rather than the form: what a node group implies without saying it, such as that its
// nodes never expire, is written out where Tenon has another default. A proposal that Tenon would refuse fails, with the field.
//
// # One NodePool for several groups
//
// The Cluster Autoscaler needs a node group for each zone wherever volumes are in one zone, since it cannot choose the zone of
// an Auto Scaling group. Tenon chooses zones itself. So groups that differ in nothing but their names, subnets and sizes become
// one NodePool, with the subnets of all and the sum of their limits (join.go).
//
// # Sizes
//
// A node group counts nodes, a NodePool sums resources. The limits of a pool are what its group can have at most: its maximum
// size times the largest of its instance types. A minimum size has no equivalent, since a node that no pod needs is removed.
//
// Reading order: proposal, unsaid, kubelet, userdata, images, requirements, disks, capacity, tags, template, managed, selfmanaged,
// join, nodegroup.
package nodegroup

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/tenon-sh/tenon/internal/convert"
)

// Source is what AWS says of a cluster's node groups.
type Source struct {
	Cluster Cluster
	Groups  []Group
	// Types are the instance types that the groups name.
	Types map[string]InstanceType
}

// Cluster is what a group takes from its cluster.
type Cluster struct {
	Name string
	// Version is the cluster's version of Kubernetes, such as 1.33.
	Version string
	// SecurityGroup is the id of the cluster security group, which nodes have unless a launch template says otherwise.
	SecurityGroup string
}

// InstanceType is what limits and requirements need to know of an instance type. Arch is as Kubernetes spells it.
type InstanceType struct {
	VCPUs     int64
	MemoryMiB int64
	Arch      string
}

// Group is one node group: a managed one, or else an Auto Scaling group of somebody's own.
type Group struct {
	// Managed is nil for groups that EKS does not manage.
	Managed *ekstypes.Nodegroup
	// Scaling is the Auto Scaling group. Of a managed group only the tags count, and it may be nil.
	Scaling *astypes.AutoScalingGroup
	// Template is the version of the launch template that the group uses; nil if it has none of its own.
	Template *ec2types.ResponseLaunchTemplateData
}

// Name returns the name of the group.
func (g *Group) Name() string {
	if g.Managed != nil {
		return aws.ToString(g.Managed.NodegroupName)
	}
	return aws.ToString(g.Scaling.AutoScalingGroupName)
}

// InstanceTypes returns the names of the instance types that the group names one by one.
func (g *Group) InstanceTypes() []string {
	switch {
	case g.Managed != nil && len(g.Managed.InstanceTypes) > 0:
		return g.Managed.InstanceTypes
	case g.Managed == nil && len(overriddenTypes(g.Scaling)) > 0:
		return overriddenTypes(g.Scaling)
	case g.Template != nil && g.Template.InstanceType != "":
		return []string{string(g.Template.InstanceType)}
	}
	return nil
}

// Proposal is the pool and the class for one or several groups.
type Proposal struct {
	// Groups are the names of the groups.
	Groups []string `json:"groups"`
	// Objects are the EC2NodeClass and the NodePool; none if the group cannot be carried over.
	Objects []map[string]any `json:"objects"`
	// Notes say what has changed, and what is not carried over.
	Notes []convert.Note `json:"notes"`
}

// Propose returns a proposal for each group, with those that differ only in place and size joined, in the order of the groups.
func Propose(source Source) []Proposal {
	var all []*proposal
	for i := range source.Groups {
		p := newProposal(source, &source.Groups[i])
		if p.group.Managed != nil {
			managed{p, p.group.Managed}.fill()
		} else {
			selfManaged{p, p.group.Scaling}.fill()
		}
		all = append(all, p)
	}
	var out []Proposal
	for _, p := range join(all) {
		p.finish()
		out = append(out, Proposal{Groups: p.names, Objects: p.manifests(), Notes: p.notes})
	}
	return out
}

// kind returns how notes call a group, and where they say it comes from.
func (g *Group) kind() (kind, place string) {
	if g.Managed != nil {
		return "Nodegroup", cmp.Or("EKS cluster "+aws.ToString(g.Managed.ClusterName), "EKS")
	}
	return "AutoScalingGroup", "EC2 Auto Scaling"
}
