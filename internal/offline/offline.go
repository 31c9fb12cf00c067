// Package offline says what could be launched for an EC2NodeClass without asking AWS: for plans of manifests on a
// machine that has neither network nor credentials.
//
// It computes nothing itself. The provider of package aws, which sizes and prices instance types for the worker, asks the AWS
// SDK as it always does, and the SDK's clients get their answers from this package (answers.go) instead of from AWS. No
// socket is opened, and neither the environment nor the AWS configuration files are read. So capacity, allocatable and
// labels of a node are those a worker would plan with, whatever AMI family and kubelet settings its class has. Prices are
// those of us-east-1; spot prices are invented (package catalogue), mostly 30 to 60 % of on-demand.
//
// What only an account can tell is taken from the status of a class that comes from a cluster. Otherwise it is assumed, and
// a note says so: subnet selectors match a subnet in every zone, image selectors match an image for either architecture.
// Capacity reservations are never known.
//
// Reading order: machines, answers, offline.
package offline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// DefaultRegion is the region that is planned with unless another is asked for.
const DefaultRegion = "us-east-1"

// Options say which part of AWS to answer for.
type Options struct {
	// Region defaults to DefaultRegion.
	Region string
	// Zones are the zones' names; the region's a, b and c by default.
	Zones []string
	// CatalogueFile is a JSON file of instance types, as catalogue.Load reads it; empty means the built-in ones.
	CatalogueFile string
}

// Account is an assumed AWS account that resolves classes. Close stops it.
type Account struct {
	provider *aws.Provider
	region   string
}

// New makes an account.
func New(options Options) (*Account, error) {
	if options.Region == "" {
		options.Region = DefaultRegion
	}
	if len(options.Zones) == 0 {
		options.Zones = []string{options.Region + "a", options.Region + "b", options.Region + "c"}
	}
	types, err := catalogue.LoadOrBuiltin(options.CatalogueFile)
	if err != nil {
		return nil, err
	}
	opened := time.Now()
	a := &answers{region: options.Region, types: types, market: catalogue.NewMarket(0, opened), opened: opened}
	for _, name := range options.Zones {
		zone, err := catalogue.ParseZone(options.Region, name)
		if err != nil {
			return nil, err
		}
		a.zones = append(a.zones, zone)
	}
	provider, err := aws.NewFromConfig(awssdk.Config{Region: options.Region, APIOptions: []func(*middleware.Stack) error{a.install}}, assumptions())
	if err != nil {
		return nil, err
	}
	return &Account{provider: provider, region: options.Region}, nil
}

// assumptions are what the provider would otherwise ask EKS for.
func assumptions() aws.Options {
	return aws.Options{
		Cluster: account, ClusterEndpoint: "https://offline.invalid", ClusterCA: "offline", ServiceCIDR: "10.100.0.0/16", KubernetesVersion: "1.36",
		DisableDryRun: true,
	}
}

// Region is the region of the account.
func (a *Account) Region() string { return a.region }

// VolumePrice returns what the volumes of one node of a class cost per hour, in the currency of the region's prices.
func (a *Account) VolumePrice(class *awsv1.EC2NodeClass) float64 {
	return a.provider.VolumePrice(class)
}

// Excluded returns what a class excludes, after InstanceTypes was asked about it.
func (a *Account) Excluded(class *awsv1.EC2NodeClass) []cloud.Exclusion {
	return a.provider.Excluded(class)
}

// Close stops the provider's background work.
func (a *Account) Close() error {
	a.provider.Close()
	return nil
}

// InstanceTypes returns what can be launched for a class, ordered by name, and notes for people about what was assumed about
// the class and what would keep it from becoming Ready.
func (a *Account) InstanceTypes(ctx context.Context, class *awsv1.EC2NodeClass) ([]*cloud.InstanceType, []string, error) {
	resolved, notes := assumed(class)
	found, err := a.provider.ResolveNodeClass(ctx, resolved)
	if err != nil {
		return nil, nil, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
	}
	status := found.(*awsv1.EC2NodeClass).Status
	switch known := zonesOf(class.Status.Subnets); {
	case known == nil:
		notes = append(notes, "its subnets are not known offline: one in each zone is assumed")
	default:
		status.Subnets = slices.DeleteFunc(status.Subnets, func(s awsv1.Subnet) bool { return !known[s.Zone] })
		if len(status.Subnets) == 0 {
			return nil, append(notes, fmt.Sprintf("its subnets are in none of the zones that are planned with: nothing can be launched for it (%s)", strings.Join(slices.Sorted(maps.Keys(known)), ", "))), nil
		}
	}
	for _, condition := range status.Conditions {
		// Ready repeats what the others say, and an image may be missing here that exists in AWS, unless its alias has none.
		own := condition.Type != karpv1.ConditionTypeReady && (condition.Type != awsv1.ConditionTypeAMIsReady || condition.Reason == "UnsupportedAlias")
		if condition.Status == metav1.ConditionFalse && own {
			notes = append(notes, "it would not become Ready: "+condition.Message)
		}
	}
	resolved.Status = status
	switch {
	case len(class.Status.AMIs) > 0:
		resolved.Status.AMIs = class.Status.AMIs
	case len(status.AMIs) == 0:
		resolved.Status.AMIs = anyImages()
	}
	types, err := a.provider.InstanceTypes(ctx, resolved)
	if err != nil {
		return nil, nil, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
	}
	return types, notes, nil
}

// assumed returns the class with selectors that match in the assumed account, and notes on what that assumes.
func assumed(class *awsv1.EC2NodeClass) (*awsv1.EC2NodeClass, []string) {
	copied := class.DeepCopy()
	var notes []string
	discovery := map[string]string{"karpenter.sh/discovery": account}
	copied.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: discovery}}
	copied.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}}
	copied.Spec.Role, copied.Spec.InstanceProfile = account, nil
	if alias, ok := class.Alias(); ok {
		alias.Version = awsv1.AliasVersionLatest
		copied.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: alias.String()}}
	} else {
		copied.Spec.AMISelectorTerms = nil
		if len(class.Status.AMIs) == 0 {
			notes = append(notes, "its images are not known offline: one for each architecture is assumed")
		}
	}
	if len(class.Spec.CapacityReservationSelectorTerms) > 0 {
		copied.Spec.CapacityReservationSelectorTerms = nil
		notes = append(notes, "its capacity reservations are not known offline: none is assumed")
	}
	return copied, notes
}

// zonesOf returns the zones of subnets; nil if there are none.
func zonesOf(subnets []awsv1.Subnet) map[string]bool {
	var zones map[string]bool
	for _, subnet := range subnets {
		if zones == nil {
			zones = map[string]bool{}
		}
		zones[subnet.Zone] = true
	}
	return zones
}

// anyImages returns images that run on every machine.
func anyImages() []awsv1.AMI {
	var images []awsv1.AMI
	for _, arch := range []string{"amd64", "arm64"} {
		images = append(images, awsv1.AMI{ID: "ami-" + arch, Requirements: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
		}})
	}
	return images
}
