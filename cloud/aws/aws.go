// Package aws is the cloud provider for EC2. It uses only the AWS SDK in its standard configuration: the SDK's
// environment variables, shared files and roles apply, AWS_ENDPOINT_URL included.
//
// # Caches
//
// The provider keeps no state that matters: EC2 has the instances and the launch templates, IAM has the instance
// profiles, and a restarted worker finds them there by their tags, names and paths. What it keeps in memory saves time
// and requests against the account's limits, is bounded, and may be lost at any time:
//
//   - instance types, the zones they are offered in, and prices: loaded on first use, refreshed every 12 hours in the
//     background; a failed refresh keeps the old values (refresh.go);
//   - the instance types as nodes of a node class: capacity and allocatable per type, shared by all callers
//     (catalogue.go, instancetypes.go);
//   - the memory that registered nodes have reported, by type and image, read again from the cluster's nodes (learnt.go);
//   - offerings that had no capacity, for three minutes (unavailable.go);
//   - how much room capacity reservations have, for a minute, minus what was launched into them (reservations.go);
//   - placement groups, for a minute (placementgroups.go);
//   - launch templates, whose names are a hash of their content and the half hour, so that creating one twice has no effect
//     (template.go);
//   - results of dry runs and of IAM calls, for minutes, and SSM parameters, for minutes or a day.
//
// # Parts
//
// Provider implements cloud.Provider with parts that have one subject each, and holds their clients and caches: the
// catalogue knows what can be bought and what it costs, readiness resolves what node classes select, the validator
// tests launches of them, and other types handle launch templates, instance profiles, and reading and terminating
// instances. Package amifamily knows what the nodes of each AMI family get.
//
// # Launching
//
// PrepareLaunch resolves everything and launches nothing. Launch is one CreateFleet of type instant, sent exactly as it
// was prepared, with the caller's client token and without the SDK's retries. The new instances are read from the reply
// alone, because EC2's other calls know of a new instance only after a while.
//
// # Interruptions
//
// AWS announces interruptions in an SQS queue that EventBridge fills, and in EC2's status checks (interruption.go,
// interruptionstatus.go). A pure function parses the messages (interruptionmessage.go).
//
// # Rate limits
//
// Every attempt of every EC2 call takes a token from a bucket like EC2's own. A bucket slows down when EC2 throttles a
// call (ratelimit.go). Calls to IAM, SSM, EKS, SQS and Pricing are not limited, because Tenon could not exhaust their
// limits.
//
// Reading order: refresh, callmetrics, batch, ttlcache, ratelimit, httpclient, errors, tags, cluster, sizetable, disks, machine,
// capacity, placementgroups, compatibility, networkinterfaces, unavailable, zonalshifts, pricetable, prices, subnets, securitygroups,
// reservations, learnt, instancetypes, catalogue, request, choose, alias, images, userdata, template, launchtemplates, instances, terminate, profile,
// classreasons, readiness, validate, aws, launch, prepare, nodeclass, leftovers, drift, interruptionmessage, interruption, interruptionstatus,
// capacityblocks, repair, volumeprice.
package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// attemptTimeout limits the wait for the reply to one attempt of a call, so that a lost reply is noticed. The largest
// instant fleets take about ten seconds.
const attemptTimeout = time.Minute

// DefaultVMMemoryOverhead is the share of an instance's memory that its hypervisor is expected to take.
const DefaultVMMemoryOverhead = 0.075

// Options configure a Provider.
type Options struct {
	// Cluster is the name of the EKS cluster that owns the instances. Required.
	Cluster string
	// Region overrides the region of the SDK's configuration. If neither is set, the region is that of the EC2 instance
	// on which the process runs.
	Region string
	// ClusterEndpoint, ClusterCA (base64 of PEM), ServiceCIDR and KubernetesVersion (such as 1.34) override what EKS
	// reports about the cluster. If all are set, EKS is not called unless ZonalShift is.
	ClusterEndpoint, ClusterCA, ServiceCIDR, KubernetesVersion string
	// ServerVersion asks the API server for its minor version, such as 1.34, if KubernetesVersion is empty. If it is
	// nil, EKS is asked instead.
	ServerVersion func(context.Context) (string, error)
	// VMMemoryOverhead is the share of an instance's memory that its node cannot use; nil means
	// DefaultVMMemoryOverhead.
	VMMemoryOverhead *float64
	// ReservedENIs is the number of network interfaces of each instance whose addresses are not for pods.
	ReservedENIs int
	// DisableDryRun makes ResolveNodeClass trust the permissions instead of testing them with dry runs.
	DisableDryRun bool
	// IsolatedVPC says that only AWS services with a VPC endpoint can be reached: neither IAM nor Pricing is called.
	IsolatedVPC bool
	// ZonalShift says that zones from which ARC shifts the cluster's traffic away are left alone.
	ZonalShift bool
	// Load are further options of the SDK's configuration, such as credentials or an endpoint.
	Load []func(*config.LoadOptions) error
	// Registry is where calls to AWS are counted; nil counts none.
	Registry prometheus.Registerer
	// Log is the logger; nil logs nothing.
	Log *zap.Logger
	// Now is the clock of all caches; nil means time.Now.
	Now func() time.Time
}

// Provider implements cloud.Provider on EC2. Close stops its background refreshes.
type Provider struct {
	options Options
	region  string
	log     *zap.Logger
	now     func() time.Time

	ec2 *calls.EC2
	sqs *sqs.Client

	bg         *background
	catalogue  *catalogue
	subnets    *subnetPool
	profiles   *profiles
	templates  *templateStore
	readiness  *readiness
	validator  *validator
	instances  *instanceReader
	terminator *terminator
}

var _ cloud.Provider = (*Provider)(nil)

// New returns the provider of one cluster in one region. It reads the SDK's configuration, which may ask the instance
// for its region, and calls no AWS service yet.
func New(ctx context.Context, options Options) (*Provider, error) {
	load := []func(*config.LoadOptions) error{
		// On an EC2 instance without a configured region, the region is the instance's own.
		config.WithEC2IMDSRegion(),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
			transport.ResponseHeaderTimeout = attemptTimeout
		})),
	}
	if options.Region != "" {
		load = append(load, config.WithRegion(options.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, append(load, options.Load...)...)
	if err != nil {
		return nil, fmt.Errorf("aws: load configuration: %w", err)
	}
	cfg.HTTPClient = wholeRequests{cfg.HTTPClient}
	return NewFromConfig(cfg, options)
}

// NewFromConfig returns a provider that uses exactly this configuration of the SDK, whatever the environment says. It
// ignores Options.Region and Options.Load.
func NewFromConfig(cfg aws.Config, options Options) (*Provider, error) {
	if options.Cluster == "" {
		return nil, errors.New("aws: the cluster's name is missing")
	}
	if cfg.Region == "" {
		return nil, errors.New("aws: no region is configured")
	}
	if options.Log == nil {
		options.Log = zap.NewNop()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.VMMemoryOverhead == nil {
		options.VMMemoryOverhead = aws.Float64(DefaultVMMemoryOverhead)
	}
	var counted *callMetrics
	if options.Registry != nil {
		var err error
		if counted, err = newCallMetrics(options.Registry); err != nil {
			return nil, fmt.Errorf("aws: %w", err)
		}
		cfg.APIOptions = append(slices.Clone(cfg.APIOptions), counted.install)
	}
	return build(cfg, options, counted), nil
}

func build(cfg aws.Config, options Options, counted *callMetrics) *Provider {
	limits := newBuckets()
	api := calls.NewEC2(ec2.NewFromConfig(cfg, func(o *ec2.Options) {
		o.APIOptions = append(o.APIOptions, limits.install)
	}))
	p := &Provider{
		options: options, region: cfg.Region, log: options.Log, now: options.Now, ec2: api, sqs: sqs.NewFromConfig(cfg), bg: newBackground(),
		subnets: newSubnetPool(api, options.Now),
	}
	eksAPI := eks.NewFromConfig(cfg)
	cluster := refresh(p, "cluster", refreshCluster, func(ctx context.Context) (clusterFacts, error) {
		return describeCluster(ctx, eksAPI, options)
	})
	p.catalogue = newCatalogue(p, cfg)
	p.catalogue.cluster, p.catalogue.subnets = cluster, p.subnets
	if options.ZonalShift {
		p.catalogue.shifts = newZonalShifts(p, arczonalshift.NewFromConfig(cfg), cluster)
	}
	p.templates = newTemplateStore(api, options, cluster)
	p.instances = &instanceReader{api: api, subnets: p.subnets, launched: newTTLCache[string, struct{}](time.Hour, 4096, options.Now)}
	p.instances.batch = newBatcher(p.bg, p.instances.describeIDs, counting(counted, "describe_instances"))
	p.terminator = &terminator{api: api, cluster: options.Cluster, instances: p.instances}
	p.terminator.batch = newBatcher(p.bg, p.terminator.end, counting(counted, "terminate_instances"))
	p.profiles = &profiles{
		api: calls.NewIAM(iam.NewFromConfig(cfg)), cluster: options.Cluster, region: cfg.Region, isolated: options.IsolatedVPC, log: options.Log,
		known: newTTLCache[string, struct{}](15*time.Minute, 256, options.Now),
	}
	images := &imageFinder{
		ec2: api, ssm: calls.NewSSM(ssm.NewFromConfig(cfg)), cluster: cluster, now: options.Now,
		parameters: newTTLCache[string, string](24*time.Hour, 256, options.Now),
	}
	p.readiness = &readiness{
		ec2: api, isolated: options.IsolatedVPC, cluster: cluster, images: images, subnets: p.subnets, reservations: p.catalogue.reservations,
		profiles: p.profiles, groups: p.catalogue.groups,
	}
	p.validator = &validator{
		ec2: api, cluster: options.Cluster, noDryRun: options.DisableDryRun, log: options.Log, facts: cluster, catalogue: p.catalogue,
		templates: p.templates, validated: newTTLCache[string, finding](validationTTL, 256, options.Now),
	}
	return p
}

// newCatalogue returns the catalogue of a region. It loads nothing yet.
func newCatalogue(p *Provider, cfg aws.Config) *catalogue {
	options := p.options
	c := &catalogue{
		region: cfg.Region, vmOverhead: *options.VMMemoryOverhead, reservedENIs: int64(options.ReservedENIs),
		unavailable: newUnavailable(options.Now), reservations: newReservationPool(p.ec2, options.Now), groups: newPlacementGroups(p.ec2, options.Now),
		resolved: newTTLCache[string, *resolvedClass](time.Hour, 64, options.Now), learnt: newLearnt(options.Now),
	}
	pricingAPI := pricing.NewFromConfig(cfg, func(o *pricing.Options) { o.Region = pricingRegion(cfg.Region) })
	c.machines = refresh(p, "instance types", refreshCatalogue, func(ctx context.Context) ([]*machine, error) {
		return discoverMachines(ctx, p.ec2, cfg.Region)
	})
	c.onDemand = refresh(p, "on-demand prices", refreshCatalogue, func(ctx context.Context) (map[string]float64, error) {
		if options.IsolatedVPC || !hasPricing(cfg.Region) {
			return nil, nil // the built-in table is all there is
		}
		return loadOnDemandPrices(ctx, pricingAPI, cfg.Region)
	})
	c.spot = refresh(p, "spot prices", refreshCatalogue, func(ctx context.Context) (map[spotPool]float64, error) {
		return loadSpotPrices(ctx, p.ec2, p.now())
	})
	// Without price lists, the built-in table of on-demand prices still works. Nothing works without the instance types
	// or the cluster.
	c.onDemand.optional, c.spot.optional = true, true
	c.onDemand.patience = pricePatience
	return c
}

func newZonalShifts(p *Provider, api *arczonalshift.Client, cluster *refreshed[clusterFacts]) *zonalShifts {
	read := refresh(p, "zonal shifts", refreshShifts, func(ctx context.Context) (map[string]time.Time, error) {
		facts, _, err := cluster.get(ctx)
		if err != nil {
			return nil, err
		}
		return readShifts(ctx, api, facts.arn)
	})
	// A cluster whose shifts cannot be read still needs nodes.
	read.optional = true
	return &zonalShifts{read: read, now: p.now}
}

func refresh[T any](p *Provider, name string, ttl time.Duration, load func(context.Context) (T, error)) *refreshed[T] {
	return &refreshed[T]{name: name, ttl: ttl, load: load, now: p.now, log: p.log, bg: p.bg}
}

// Close stops the background refreshes and waits until they have returned.
func (p *Provider) Close() { p.bg.close() }
