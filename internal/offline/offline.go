// Package offline says what could be launched for an EC2NodeClass without asking AWS: for plans of manifests on a
// machine that has neither network nor credentials.
//
// It computes nothing itself. The provider of package aws, which sizes and prices instance types for the worker, runs
// against an AWS account that package ec2sim simulates in this process. The transport between them is a function call: no
// socket is opened, and neither the environment nor the AWS configuration files are read. So capacity, allocatable and
// labels of a node are those a worker would plan with, whatever AMI family and kubelet settings its class has. Prices are
// those of us-east-1; spot prices are the simulator's, mostly 30 to 60 % of on-demand.
//
// What only an account can tell is taken from the status of a class that comes from a cluster. Otherwise it is assumed, and
// a note says so: subnet selectors match a subnet in every zone, image selectors match an image for either architecture.
// Capacity reservations are never known.
package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// DefaultRegion is the region that is simulated unless another is asked for.
const DefaultRegion = "us-east-1"

// account is the name of the simulated account: the cluster it belongs to, and the value of its discovery tags.
const account = "offline"

// Options say which part of AWS to simulate.
type Options struct {
	// Region defaults to DefaultRegion.
	Region string
	// Zones are the zones' names; the region's a, b and c by default.
	Zones []string
	// CatalogueFile is a JSON file of instance types, as ec2sim.LoadCatalogue reads it; empty means the built-in ones.
	CatalogueFile string
}

// Account is a simulated AWS account that resolves classes. Close stops it.
type Account struct {
	sim      *ec2sim.Server
	provider *aws.Provider
	region   string
}

// New makes an account.
func New(options Options) (*Account, error) {
	if options.Region == "" {
		options.Region = DefaultRegion
	}
	// The simulator is as slow as EC2 unless told otherwise; a nanosecond is as good as no latency.
	sim, err := ec2sim.New(ec2sim.Options{
		Cluster: account, Region: options.Region, Zones: options.Zones, CatalogueFile: options.CatalogueFile, Latency: time.Nanosecond,
	})
	if err != nil {
		return nil, err
	}
	provider, err := aws.NewFromConfig(awssdk.Config{
		Region: options.Region, BaseEndpoint: awssdk.String("http://offline.invalid"), HTTPClient: played{sim},
		Credentials: credentials.NewStaticCredentialsProvider("offline", "offline", ""),
	}, aws.Options{
		// What the provider would otherwise ask EKS for.
		Cluster: account, ClusterEndpoint: "https://offline.invalid", ClusterCA: "offline", ServiceCIDR: "10.100.0.0/16", KubernetesVersion: "1.36",
		DisableDryRun: true,
	})
	if err != nil {
		return nil, errors.Join(err, sim.Close())
	}
	return &Account{sim: sim, provider: provider, region: options.Region}, nil
}

// Region is the region that is simulated.
func (a *Account) Region() string { return a.region }

// VolumePrice returns what the volumes of one node of a class cost per hour, in the currency of the region's prices.
func (a *Account) VolumePrice(class *awsv1.EC2NodeClass) float64 {
	return a.provider.VolumePrice(class)
}

// Excluded returns what a class excludes, after InstanceTypes was asked about it.
func (a *Account) Excluded(class *awsv1.EC2NodeClass) []cloud.Exclusion {
	return a.provider.Excluded(class)
}

// Close stops the simulator and the provider's background work.
func (a *Account) Close() error {
	a.provider.Close()
	return a.sim.Close()
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

// assumed returns the class with selectors that match in the simulated account, and notes on what that assumes.
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

// played hands requests of the SDK to the simulator.
type played struct{ sim http.Handler }

// Do implements aws.HTTPClient.
func (p played) Do(request *http.Request) (*http.Response, error) {
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	request = request.Clone(request.Context())
	request.RequestURI, request.Host = request.URL.RequestURI(), request.URL.Host
	if request.Body == nil {
		request.Body = http.NoBody
	}
	p.sim.ServeHTTP(answer, request)
	return answer.response(request), nil
}

// answer collects what the simulator writes.
type answer struct {
	header http.Header
	once   sync.Once
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) WriteHeader(status int)      { a.once.Do(func() { a.status = status }) }

func (a *answer) response(request *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: a.header,
		Body: nopCloser{&a.body}, ContentLength: int64(a.body.Len()), Request: request,
	}
}

type nopCloser struct{ *bytes.Buffer }

func (nopCloser) Close() error { return nil }
