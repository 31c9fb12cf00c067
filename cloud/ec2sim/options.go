package ec2sim

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
)

// Options say what kind of AWS account to play. The zero value of each field has a sensible meaning.
type Options struct {
	// Cluster is the name of the EKS cluster and the value of the discovery tags. Default "tenon".
	Cluster string
	// Region defaults to us-east-1; prices are those of us-east-1 everywhere, in yuan in China.
	Region string
	// Zones are zone names of the region. Default: a, b and c. A Local Zone, such as us-east-1-bos-1a, has few instance types and
	// no spot capacity.
	Zones []string
	// Subnets are further ones, besides one for each zone.
	Subnets []Subnet
	// CNI has instances that have booted take addresses out of their subnets as the VPC CNI plugin does. Nil: they have those
	// they were launched with.
	CNI *CNI
	// SubnetOwner is the account that shares the VPC's subnets with the simulated one. Default: they are its own.
	SubnetOwner string
	// IPv6 makes the cluster an IPv6 one: its subnets have IPv6 blocks, and its services have IPv6 addresses alone.
	IPv6 bool
	// Images are those of the account, or shared with it, besides Amazon's own.
	Images []Image
	// Parameters are those that the account has in Systems Manager from the start.
	Parameters map[string]string
	// Listen is the address Start listens on. Default "127.0.0.1:0".
	Listen string
	// StateFile keeps the state over restarts. Empty keeps it in memory only.
	StateFile string
	// CatalogueFile replaces the built-in instance types.
	CatalogueFile string

	// KubernetesVersion ("1.36"), ClusterEndpoint and ClusterCA (PEM) are what EKS says of the cluster. The version
	// defaults to 1.36.
	KubernetesVersion string
	ClusterEndpoint   string
	ClusterCA         []byte

	// Kubernetes is the cluster that booted instances join as Nodes. Nil: nothing joins.
	Kubernetes kubernetes.Interface
	// BootDelay is the time from launch to registration; ReadyDelay from registration to the Ready condition.
	BootDelay  time.Duration
	ReadyDelay time.Duration

	// PendingFor, ShuttingDownFor and KeepTerminated are the times an instance spends in state pending, in state
	// shutting-down, and visible as terminated. Defaults: 1 s, 2 s, 1 h.
	PendingFor      time.Duration
	ShuttingDownFor time.Duration
	KeepTerminated  time.Duration

	// Latency is the least time an answer takes, 5 ms by default. EC2 takes tens of milliseconds, and the AWS SDK for Go
	// counts on it: when an answer overtakes the end of its own request's write, it closes the connection it is reading
	// from.
	Latency time.Duration

	// MarketSeed draws another market: other spot prices for the same pools.
	MarketSeed uint64

	// Queues are the names of the SQS queues the account has from the start.
	Queues []string

	// Policies say what principals may do. By default everybody may do everything.
	Policies Policies

	// Faults are the faults to start with. Faults kept in the state file win over them.
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

// validate refuses what cannot be played.
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

// account makes the account that the options describe.
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
