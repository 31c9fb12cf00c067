package ec2sim

import (
	"fmt"

	"github.com/tenon-sh/tenon/cloud/catalogue"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// parts are the parts of the simulated account, by service and subject, and what they share. Each part holds references
// to the others it needs.
type parts struct {
	account    *account
	guard      *guard
	faults     *injector
	authorizer *authorizer

	// EC2. The lives of instances are separate from the API that describes them.
	instances    *instances
	launcher     *launcher
	instanceAPI  *instanceAPI
	runs         *runs
	fleets       *fleets
	templates    *launchTemplates
	reservations *capacityReservations
	placements   *placementGroups
	images       *images
	network      *network
	subnets      *subnets
	groups       *securityGroups
	addresses    *addresses
	volumes      *volumes
	types        *instanceTypes
	prices       *spotPrices
	tagging      *tagAPI
	events       *events

	eks        *eks
	nodeGroups *nodeGroups
	scaling    *scalingGroups
	shifts     *zonalShifts
	rules      *eventRules
	fis        *fis
	iam        *iam
	pricing    *pricing
	sqs        *sqs
	ssm        *ssm
	sts        *sts
}

// newParts creates the parts, with empty tables that the journal then fills.
func newParts(opts *Options, a *account, types *Catalogue, j *journal) *parts {
	now, prices := opts.Now, catalogue.NewMarket(opts.MarketSeed, opts.Now())
	instanceRows, reservationRows := newTable[instance](j, "instance"), newTable[capacityReservation](j, "reservation")
	fleetRows, profileRows := newTable[fleet](j, "fleet"), newTable[instanceProfile](j, "profile")
	p := &parts{account: a}
	p.faults = &injector{
		now: now, row: newTable[Faults](j, "faults"), hits: map[string]int{}, throttle: &throttle{now: now, buckets: map[string]*bucket{}},
	}
	tags := &tagSets{table: newTable[tagSet](j, "tags"), now: now, faults: p.faults}
	tokens := &clientTokens{faults: p.faults, replies: newTable[savedReply](j, "reply"), fleets: fleetRows}

	p.eks = &eks{
		account: a, cluster: opts.Cluster, version: opts.KubernetesVersion, endpoint: opts.ClusterEndpoint, ca: opts.ClusterCA, ipv6: opts.IPv6,
	}
	p.shifts = &zonalShifts{table: newTable[zonalShift](j, "zonalShift"), account: a, eks: p.eks}
	p.iam = &iam{account: a, faults: p.faults, profiles: profileRows, roles: newTable[role](j, "role")}
	p.pricing = &pricing{account: a, catalogue: types}
	p.sqs = &sqs{table: newTable[queue](j, "queue"), account: a, now: now, posted: make(chan struct{})}
	p.sts = &sts{account: a}
	p.rules = &eventRules{table: newTable[eventRule](j, "rule"), account: a}
	p.events = &events{account: a, log: opts.Log, queues: p.sqs, instances: instanceRows}

	p.images = &images{
		account: a, faults: p.faults, tags: tags, tokens: tokens, kubernetes: opts.KubernetesVersion,
		seeded: newImages(opts.KubernetesVersion, opts.Region), own: newTable[image](j, "image"),
	}
	for _, i := range opts.Images {
		p.images.seeded = append(p.images.seeded, i.add(opts.KubernetesVersion))
	}
	p.ssm = &ssm{account: a, images: p.images.seeded, own: newTable[ssmParameter](j, "parameter")}
	p.network = &network{account: a}
	p.groups = &securityGroups{account: a, faults: p.faults, own: newTable[securityGroup](j, "group"), tags: tags, instances: instanceRows}
	p.addresses = &addresses{
		now: now, cni: opts.CNI, ipv6: opts.IPv6, catalogue: types, faults: p.faults, instances: instanceRows,
		counters: newTable[addressCounter](j, "addresses"), inUse: map[string]map[string]bool{}, further: map[string]int{},
	}
	p.subnets = &subnets{account: a, options: newTable[subnetOptions](j, "subnet"), tags: tags, addresses: p.addresses}
	p.volumes = &volumes{images: p.images, instances: instanceRows}
	p.types = &instanceTypes{account: a, catalogue: types}
	p.prices = &spotPrices{account: a, catalogue: types, market: prices}

	p.templates = &launchTemplates{table: newTable[launchTemplate](j, "template"), account: a, faults: p.faults, tokens: tokens}
	p.reservations = &capacityReservations{table: reservationRows, account: a, catalogue: types, tokens: tokens, instances: instanceRows}
	p.placements = &placementGroups{table: newTable[placementGroup](j, "placementGroup"), account: a, faults: p.faults, instances: instanceRows}
	p.instances = &instances{
		table: instanceRows, faults: p.faults, addresses: p.addresses, events: p.events, reservations: reservationRows,
		shuttingDownFor: opts.ShuttingDownFor, keepTerminated: opts.KeepTerminated, changed: make(chan struct{}, 1),
	}
	p.launcher = &launcher{
		account: a, catalogue: types, images: p.images, groups: p.groups, subnets: p.subnets, addresses: p.addresses, iam: p.iam,
		volumes: p.volumes, reservations: p.reservations, placements: p.placements, faults: p.faults, instances: p.instances, userData: newTable[userData](j, "userdata"),
		pendingFor: opts.PendingFor, bootDelay: opts.BootDelay, readyDelay: opts.ReadyDelay,
	}
	p.scaling = &scalingGroups{table: newTable[scalingGroup](j, "scalingGroup"), account: a, templates: p.templates}
	p.nodeGroups = &nodeGroups{
		table: newTable[nodeGroup](j, "nodeGroup"), account: a, eks: p.eks, scaling: p.scaling, instances: p.instances, launcher: p.launcher,
		templates: p.templates, ssm: p.ssm,
	}
	answers := &instanceAnswers{
		account: a, catalogue: types, images: p.images, groups: p.groups, reservations: reservationRows, profiles: profileRows,
		placements: p.placements.table,
	}
	p.instanceAPI = &instanceAPI{catalogue: types, instances: p.instances, answers: answers}
	p.runs = &runs{tokens: tokens, faults: p.faults, templates: p.templates, launcher: p.launcher, instances: p.instances, answers: answers}
	p.fleets = &fleets{
		table: fleetRows, account: a, market: prices, tokens: tokens, faults: p.faults, templates: p.templates, launcher: p.launcher,
		instances: p.instances,
	}
	p.tagging = &tagAPI{
		account: a, faults: p.faults, tags: tags, instances: instanceRows, templates: p.templates, images: p.images, groups: p.groups,
		placements: p.placements.table, fleets: fleetRows,
	}
	p.fis = &fis{
		account: a, templates: newTable[experimentTemplate](j, "experimentTemplate"), experiments: newTable[experiment](j, "experiment"),
		instances: p.instances, events: p.events,
	}
	p.guard = &guard{now: now, settle: p.instances.settle, journal: j}
	p.authorizer = p.newAuthorizer(opts.Policies)
	return p
}

// newAuthorizer returns an authorizer that knows which permissions the calls of every service need.
func (p *parts) newAuthorizer(policies Policies) *authorizer {
	ec2 := &ec2Needs{
		account: p.account, templates: p.templates, reservations: p.reservations.table, instances: p.instances.table, profiles: p.iam.profiles,
		placements: p.placements, tagging: p.tagging, fleets: p.fleets, runs: p.runs,
	}
	return &authorizer{policies: policies, account: p.account, needs: map[string]func(*call) []policy.Request{
		"ec2": ec2.of, "iam": p.iam.needs, "sqs": p.sqs.needs, "ssm": p.ssm.needs, "fis": p.fis.needs, "eks": p.eks.needs, "events": p.rules.needs,
		"arc-zonal-shift": p.shifts.needs, "autoscaling": p.scaling.needs,
	}}
}

// newKubelets returns the simulated kubelets, which register instances with the cluster.
func (p *parts) newKubelets(opts *Options) *kubelets {
	return &kubelets{
		guard: p.guard, instances: p.instances, client: opts.Kubernetes, log: opts.Log,
		machines: &machines{
			account: p.account, catalogue: p.types.catalogue, images: p.images, userData: p.launcher.userData, endpoint: opts.ClusterEndpoint,
			caKnown: len(opts.ClusterCA) > 0,
		},
		slots: make(chan struct{}, kubeletRequests), busy: map[string]bool{},
	}
}

// begin continues with the state that the journal has loaded, or initialises a new one with the faults and resources of
// the options. It fails if the state has an instance whose type, image or subnet does not exist.
func (p *parts) begin(opts *Options) error {
	for id, i := range p.instances.rows {
		if p.types.catalogue.Type(i.Type) == nil || p.images.find(i.Image) == nil || p.account.subnet(i.Subnet) == nil {
			return fmt.Errorf("state %s: instance %s (%s, %s, %s) is not of this account: other catalogue, version or zones",
				opts.StateFile, id, i.Type, i.Image, i.Subnet)
		}
	}
	p.instances.scheduleDue()
	p.addresses.count()
	if p.faults.current() == nil {
		faults := opts.Faults
		p.faults.row.put(faultsID, &faults)
	}
	p.makeOptions(opts)
	return p.guard.journal.commit()
}

// makeOptions creates the queues and parameters of the options, unless they exist.
func (p *parts) makeOptions(opts *Options) {
	for _, name := range opts.Queues {
		p.sqs.make(name, nil, nil)
	}
	for name, value := range opts.Parameters {
		if p.ssm.own.rows[name] == nil {
			p.ssm.put(name, value, opts.Now())
		}
	}
}

// reset returns the account to its initial state, without faults. It runs under the guard.
func (p *parts) reset(opts *Options) {
	p.guard.journal.clear()
	p.addresses.forget()
	p.faults.set(&Faults{})
	p.makeOptions(opts)
}
