// Package cleanup finds what a deleted cluster left in an AWS account, and removes it.
//
// # What is the cluster's
//
// Only tags decide, never a name. Instances, launch templates and instance profiles are the cluster's if they have both tags
// that Tenon and Karpenter give to everything they create: kubernetes.io/cluster/NAME=owned and the EC2NodeClass. The first
// alone is not enough, because EKS gives it to the nodes of its managed groups, and people give it to load balancers and
// volumes. An instance profile, which belongs to no region, also has to name the region. The interruption queue and the rules
// that fill it have the tag tenon.sh/cluster=NAME, from deploy/terraform/interruption. A queue or a rule that only has the
// name which that module gives is reported and left alone.
//
// # What stays
//
// Roles stay, since people make them. Volumes stay: those of nodes end with their instances, unless an EC2NodeClass says
// deleteOnTermination: false and so that somebody wants to keep their content, and those of PersistentVolumes are data. Network
// interfaces stay: Tenon's end with their instances, and all others are those of the VPC CNI plugin or of load balancers.
//
// # Order
//
// Instances go first, since they cost money and use the rest; then launch templates and instance profiles, then rules, which
// would otherwise send to a queue that is gone, and the queue. What fails is reported, and the rest is removed all the same. What
// is gone already counts as removed, so a second run finishes what a first one could not.
//
// Reading order: cleanup, find, remove.
package cleanup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// ClusterTag is the key of the tag that makes a queue or a rule a cluster's. Its value is the cluster's name.
const ClusterTag = "tenon.sh/cluster"

// Kind is what an Item is, in the order of removal.
type Kind string

// The kinds of things that a cluster leaves.
const (
	KindInstance        Kind = "instance"
	KindLaunchTemplate  Kind = "launch template"
	KindInstanceProfile Kind = "instance profile"
	KindRule            Kind = "EventBridge rule"
	KindQueue           Kind = "SQS queue"
)

// Kinds returns all kinds in the order in which they are listed and removed.
func Kinds() []Kind {
	return []Kind{KindInstance, KindLaunchTemplate, KindInstanceProfile, KindRule, KindQueue}
}

// Item is one thing of the cluster's.
type Item struct {
	Kind Kind `json:"kind"`
	// ID is what AWS's calls take: the id of an instance or a launch template, the name of a profile or a rule, the URL of a
	// queue.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Created is zero for rules and queues, of which AWS does not say it, or only with a further call.
	Created time.Time `json:"created,omitzero"`
	// Tags are those that make it the cluster's, as key=value.
	Tags []string `json:"tags"`

	// Of instances: the state, such as running, the offering, and its price per hour, zero if that is not known. Prices of
	// spot instances are the current ones of the region; others are the on-demand prices of us-east-1, in US dollars.
	State        string  `json:"state,omitempty"`
	InstanceType string  `json:"instanceType,omitempty"`
	CapacityType string  `json:"capacityType,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	PricePerHour float64 `json:"pricePerHour,omitempty"`
}

// Found is what an account has of a cluster.
type Found struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region"`
	// Status is the status of the cluster of this name in EKS, such as ACTIVE; empty if there is none.
	Status string `json:"status,omitempty"`
	// ClusterUnknown says why EKS did not tell whether there is one.
	ClusterUnknown string `json:"clusterUnknown,omitempty"`
	Items          []Item `json:"items"`
	// Untagged are a queue and rules that have the names which deploy/terraform/interruption gives, and lack ClusterTag. They
	// may be somebody else's.
	Untagged []string `json:"untagged,omitempty"`
	// Unknown says what could not be looked up, and why. The rest is complete.
	Unknown []string `json:"unknown,omitempty"`
}

// Newest returns the item that was created last, or nil.
func (f *Found) Newest() *Item {
	var newest *Item
	for i := range f.Items {
		if item := &f.Items[i]; !item.Created.IsZero() && (newest == nil || item.Created.After(newest.Created)) {
			newest = item
		}
	}
	return newest
}

// Failure is an item that could not be removed.
type Failure struct {
	Item  Item   `json:"item"`
	Error string `json:"error"`
}

// Progress is told what is being done, and how many of how many are done; of is 0 if that is not known.
type Progress func(what string, done, of int)

// Account is the account and the region that a cluster was in.
type Account struct {
	cluster, region string
	ec2             *calls.EC2
	iam             *calls.IAM
	eks             *eks.Client
	sqs             *sqs.Client
	events          *eventbridge.Client
}

// New returns the account that the configuration has credentials of.
func New(cfg aws.Config, cluster string) *Account {
	return &Account{
		cluster: cluster, region: cfg.Region, ec2: calls.NewEC2(ec2.NewFromConfig(cfg)), iam: calls.NewIAM(iam.NewFromConfig(cfg)), eks: eks.NewFromConfig(cfg),
		sqs: sqs.NewFromConfig(cfg), events: eventbridge.NewFromConfig(cfg),
	}
}
