// Package aws is the cloud provider for EC2, on nothing but the AWS SDK in its standard configuration: whatever the
// SDK's environment variables, shared files and roles say holds, AWS_ENDPOINT_URL included.
//
// # What is remembered
//
// The provider keeps no state that matters: EC2 has the instances and the launch templates, IAM the instance profiles,
// and a worker that starts anew finds them by their tags. What it keeps in memory is there to be fast and to spare the
// account's request buckets, is bounded, and may be lost at any time:
//
//   - instance types, the zones they are offered in, and prices: loaded when first asked for, refreshed every 12 hours
//     in the background; a refresh that fails keeps the old values (refresh.go);
//   - what a node class makes of the instance types: capacity and allocatable per type, shared by everyone who asks
//     (catalogue.go, instancetypes.go);
//   - offerings that had no capacity, for three minutes (unavailable.go);
//   - how much room capacity reservations have, for a minute, less what was launched into them (reservations.go);
//   - launch templates, which are named by a hash of their content and the half hour, so that making one twice is making it once
//     (template.go);
//   - answers of dry runs, of SSM and IAM, for minutes.
//
// # Parts
//
// Provider answers what cloud.Provider asks, with parts that have a subject each, and the clients and caches for it: the
// catalogue knows what can be bought and what it costs, readiness finds what node classes select, the validator tries
// launches of them, and there are types for launch templates, for instance profiles, for reading instances and for ending
// them.
//
// # Launching
//
// PrepareLaunch resolves everything and launches nothing. Launch is one CreateFleet of type instant, sent exactly as
// it was prepared with the caller's client token; the SDK's own retries repeat the token as well. What came is read
// from the reply alone, because EC2 needs a while until its other calls know of a new instance.
//
// # Interruptions
//
// What AWS announces about instances comes through an SQS queue that EventBridge fills, and from EC2's status checks
// (interruption.go, interruptionstatus.go). Messages are read by a pure function (interruptionmessage.go).
//
// # Rate limits
//
// Every attempt of every EC2 call takes a token from a bucket like EC2's own, and the buckets become slower when EC2
// says that it is throttling (ratelimit.go). IAM, SSM, EKS, SQS and Pricing have no buckets that Tenon could empty.
//
// Reading order: refresh, batch, ttlcache, ratelimit, httpclient, errors, tags, cluster, branchtable, disks, machine,
// capacity, compatibility, networkinterfaces, unavailable, pricetable, prices, subnets, securitygroups, reservations,
// instancetypes, catalogue, choose, alias, images, userdata, template, launchtemplates, instances, terminate,
// profile, readiness, validate, aws, launch, prepare, nodeclass, drift, interruptionmessage, interruption,
// interruptionstatus, repair, volumeprice.
package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cloud"
)

// attemptTimeout bounds the wait for the reply to one attempt of one call, so that one that never comes is noticed. The
// largest instant fleets take some ten seconds.
const attemptTimeout = time.Minute

// DefaultVMMemoryOverhead is the share of an instance's memory that its hypervisor is expected to take.
const DefaultVMMemoryOverhead = 0.075

// Options configure a Provider.
type Options struct {
	// Cluster is the name of the EKS cluster: whose instances these are. Required.
	Cluster string
	// Region overrides the region of the SDK's configuration, which is the machine's own where nothing else says it.
	Region string
	// ClusterEndpoint, ClusterCA (base64 of PEM), ServiceCIDR and KubernetesVersion (such as 1.34) override what EKS
	// says of the cluster. When all are set EKS is not asked.
	ClusterEndpoint, ClusterCA, ServiceCIDR, KubernetesVersion string
	// ServerVersion asks the API server for its minor version, such as 1.34, where KubernetesVersion is empty. Nil leaves it
	// to EKS.
	ServerVersion func(context.Context) (string, error)
	// VMMemoryOverhead is the share of memory that is not the node's; nil means DefaultVMMemoryOverhead.
	VMMemoryOverhead *float64
	// ReservedENIs are the network interfaces of each instance whose addresses pods do not get.
	ReservedENIs int
	// DisableDryRun makes ResolveNodeClass trust the permissions instead of testing them with dry runs.
	DisableDryRun bool
	// IsolatedVPC says that only AWS services with a VPC endpoint are reached: neither IAM nor Pricing is called.
	IsolatedVPC bool
	// Load are further options of the SDK's configuration, such as credentials or an endpoint.
	Load []func(*config.LoadOptions) error
	// Log receives what is worth knowing; nil logs nothing.
	Log *zap.Logger
	// Now is the clock of all caches; nil means time.Now.
	Now func() time.Time
}

// Provider implements cloud.Provider on EC2. Close ends its background refreshes.
type Provider struct {
	options Options
	region  string
	log     *zap.Logger
	now     func() time.Time

	ec2 *ec2.Client
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

// New returns the provider of one cluster in one region. It reads the SDK's configuration and calls nothing yet.
func New(ctx context.Context, options Options) (*Provider, error) {
	load := []func(*config.LoadOptions) error{
		// On a machine of EC2, a region that is configured nowhere is the machine's own.
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

// NewFromConfig returns a provider that uses exactly this configuration of the SDK, whatever the environment says.
// Options.Region and Options.Load have no part in it.
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
	return build(cfg, options), nil
}

func build(cfg aws.Config, options Options) *Provider {
	limits := newBuckets()
	api := ec2.NewFromConfig(cfg, func(o *ec2.Options) {
		o.APIOptions = append(o.APIOptions, limits.install)
	})
	p := &Provider{
		options: options, region: cfg.Region, log: options.Log, now: options.Now, ec2: api, sqs: sqs.NewFromConfig(cfg), bg: newBackground(),
		subnets: newSubnetPool(api, options.Now),
	}
	eksAPI := eks.NewFromConfig(cfg)
	cluster := refresh(p, "cluster", refreshCluster, func(ctx context.Context) (clusterFacts, error) {
		return describeCluster(ctx, eksAPI, options)
	})
	p.catalogue = newCatalogue(p, cfg)
	p.templates = newTemplateStore(api, options, cluster)
	p.instances = &instanceReader{api: api, subnets: p.subnets, launched: newTTLCache[string, struct{}](time.Hour, 4096, options.Now)}
	p.instances.batch = newBatcher(p.bg, p.instances.describeIDs)
	p.terminator = &terminator{api: api, cluster: options.Cluster, instances: p.instances}
	p.terminator.batch = newBatcher(p.bg, p.terminator.end)
	p.profiles = &profiles{
		api: iam.NewFromConfig(cfg), cluster: options.Cluster, region: cfg.Region, isolated: options.IsolatedVPC,
		now: options.Now, log: options.Log, instances: p.instances,
		known: newTTLCache[string, struct{}](15*time.Minute, 256, options.Now),
		old:   newTTLCache[string, time.Time](24*time.Hour, 256, options.Now),
	}
	images := &imageFinder{
		ec2: api, ssm: ssm.NewFromConfig(cfg), cluster: cluster, now: options.Now,
		parameters: newTTLCache[string, string](24*time.Hour, 256, options.Now),
	}
	p.readiness = &readiness{
		ec2: api, isolated: options.IsolatedVPC, cluster: cluster, images: images, subnets: p.subnets, reservations: p.catalogue.reservations,
		profiles: p.profiles,
	}
	p.validator = &validator{
		ec2: api, cluster: options.Cluster, noDryRun: options.DisableDryRun, log: options.Log, facts: cluster, catalogue: p.catalogue,
		templates: p.templates, validated: newTTLCache[string, finding](validationTTL, 256, options.Now),
	}
	return p
}

// newCatalogue makes the catalogue of a region. Nothing is loaded yet.
func newCatalogue(p *Provider, cfg aws.Config) *catalogue {
	options := p.options
	c := &catalogue{
		region: cfg.Region, vmOverhead: *options.VMMemoryOverhead, reservedENIs: int64(options.ReservedENIs),
		unavailable: newUnavailable(options.Now), reservations: newReservationPool(p.ec2, options.Now),
		resolved: newTTLCache[string, *resolvedClass](time.Hour, 64, options.Now),
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
	// Without prices there is still the table of on-demand ones; without instance types or the cluster there is nothing.
	c.onDemand.optional, c.spot.optional = true, true
	c.onDemand.patience = pricePatience
	return c
}

func refresh[T any](p *Provider, name string, ttl time.Duration, load func(context.Context) (T, error)) *refreshed[T] {
	return &refreshed[T]{name: name, ttl: ttl, load: load, now: p.now, log: p.log, bg: p.bg}
}

// Close ends the background refreshes and waits for them.
func (p *Provider) Close() { p.bg.close() }
