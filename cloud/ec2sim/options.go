package ec2sim

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
)

// Options configure the simulated AWS account. The zero value of each field has a sensible meaning.
type Options struct {
	// Cluster is the name of the EKS cluster and the value of the discovery tags. Default "tenon".
	Cluster string
	// Region defaults to us-east-1. Prices are those of us-east-1 in every region, in yuan in China.
	Region string
	// Zones are names of zones of the region. Default: a, b and c. A Local Zone, such as us-east-1-bos-1a, has few
	// instance types and no spot capacity.
	Zones []string
	// Subnets are additional subnets, besides one per zone.
	Subnets []Subnet
	// CNI makes booted instances take addresses from their subnets as the VPC CNI plugin does. Nil: instances have only
	// the addresses they were launched with.
	CNI *CNI
	// SubnetOwner is the account that shares the VPC's subnets with the simulated one. Default: they are its own.
	SubnetOwner string
	// IPv6 makes the cluster an IPv6 one: its subnets have IPv6 blocks, and its services have only IPv6 addresses.
	IPv6 bool
	// Images are the account's own images and those shared with it, besides Amazon's.
	Images []Image
	// Parameters are the account's initial parameters in Systems Manager.
	Parameters map[string]string
	// Listen is the address Start listens on. Default "127.0.0.1:0".
	Listen string
	// StateFile stores the state across restarts. Empty: the state is in memory only.
	StateFile string
	// CatalogueFile replaces the built-in instance types.
	CatalogueFile string

	// KubernetesVersion ("1.36"), ClusterEndpoint and ClusterCA (PEM) describe the cluster in EKS. The version defaults
	// to 1.36.
	KubernetesVersion string
	ClusterEndpoint   string
	ClusterCA         []byte

	// Kubernetes is the cluster that booted instances join as Nodes. Nil: nothing joins.
	Kubernetes kubernetes.Interface
	// BootDelay is the time from launch to registration; ReadyDelay from registration to the Ready condition.
	BootDelay  time.Duration
	ReadyDelay time.Duration

	// PendingFor, ShuttingDownFor and KeepTerminated are how long an instance is pending, is shutting down, and stays
	// visible as terminated. Defaults: 1 s, 2 s, 1 h.
	PendingFor      time.Duration
	ShuttingDownFor time.Duration
	KeepTerminated  time.Duration

	// Latency is the minimum time until an answer, 5 ms by default. EC2 takes tens of milliseconds, and the AWS SDK for
	// Go relies on that: if an answer arrives before the SDK has finished writing its request, the SDK closes the
	// connection it is reading from.
	Latency time.Duration

	// MarketSeed selects another market: other spot prices for the same pools.
	MarketSeed uint64

	// Queues are the names of the account's initial SQS queues.
	Queues []string

	// Policies restrict principals. By default everybody may do everything.
	Policies Policies

	// Faults are the initial faults. Faults in the state file take precedence.
	Faults Faults

	Log *zap.Logger
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

func (o *Options) fill() {
	setDefault(&o.Cluster, "tenon")
	setDefault(&o.Region, "us-east-1")
	setDefault(&o.Listen, "127.0.0.1:0")
	setDefault(&o.KubernetesVersion, "1.36")
	setDefault(&o.PendingFor, time.Second)
	setDefault(&o.ShuttingDownFor, 2*time.Second)
	setDefault(&o.KeepTerminated, time.Hour)
	setDefault(&o.Latency, 5*time.Millisecond)
	if len(o.Zones) == 0 {
		o.Zones = []string{o.Region + "a", o.Region + "b", o.Region + "c"}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// validate refuses options that cannot be simulated.
func (o *Options) validate() error {
	for name, d := range map[string]time.Duration{
		"boot delay": o.BootDelay, "ready delay": o.ReadyDelay, "pending time": o.PendingFor,
		"shutting-down time": o.ShuttingDownFor, "time kept terminated": o.KeepTerminated, "latency": o.Latency,
	} {
		if d < 0 {
			return fmt.Errorf("%s %v is negative", name, d)
		}
	}
	return errors.Join(o.Faults.validate(), o.Policies.validate())
}

// account returns the account that the options describe.
func (o *Options) account() (*account, error) {
	a, err := newAccount(o.Cluster, o.Region, o.Zones)
	if err != nil {
		return nil, err
	}
	if err := a.add(o.Subnets); err != nil {
		return nil, err
	}
	if o.SubnetOwner != "" {
		a.share(o.SubnetOwner)
	}
	if o.IPv6 {
		a.addIPv6()
	}
	return a, nil
}
