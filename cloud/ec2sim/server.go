package ec2sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
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

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Server is a simulated AWS account with one region. It is an http.Handler; Start serves it on an address of its own.
type Server struct {
	opts      Options
	log       *zap.Logger
	now       func() time.Time
	catalogue *Catalogue
	account   *account
	market    market
	images    []*image // seeded
	calls     *callLog

	mu            sync.Mutex // guards everything below
	journal       *journal
	instances     *table[instance]
	templates     *table[launchTemplate]
	fleets        *table[fleet]
	replies       *table[savedReply]
	profiles      *table[instanceProfile]
	tags          *table[tagSet]
	queues        *table[queue]
	ownImages     *table[image]
	ownGroups     *table[securityGroup]
	subnetOptions *table[subnetOptions]
	roles         *table[role]
	ownParameters *table[ssmParameter]
	addresses     *table[addressCounter]
	// reservations of capacity.
	reservations *table[capacityReservation]
	// experiments are those of FIS, and their templates.
	experimentTemplates *table[experimentTemplate]
	experiments         *table[experiment]
	inUse               map[string]map[string]bool // primary private addresses of living instances, by subnet
	further             map[string]int             // addresses they were launched with besides, by subnet
	userData            *table[userData]
	faultRow            *table[Faults]
	buckets             map[string]*bucket
	hits                map[string]int // times a counted fault has struck
	nextDue             time.Time
	posted              chan struct{} // closed and replaced when a message arrives in a queue

	kubelets *kubelets

	listener net.Listener
	http     *http.Server
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// New makes a simulator, with the state of Options.StateFile if there is one. It does not listen yet.
func New(opts Options) (*Server, error) {
	opts.fill()
	for name, d := range map[string]time.Duration{
		"boot delay": opts.BootDelay, "ready delay": opts.ReadyDelay, "pending time": opts.PendingFor,
		"shutting-down time": opts.ShuttingDownFor, "time kept terminated": opts.KeepTerminated, "latency": opts.Latency,
	} {
		if d < 0 {
			return nil, fmt.Errorf("%s %v is negative", name, d)
		}
	}
	if err := errors.Join(opts.Faults.validate(), opts.Policies.validate()); err != nil {
		return nil, err
	}
	catalogue, err := loadCatalogue(opts.CatalogueFile)
	if err != nil {
		return nil, err
	}
	account, err := newAccount(opts.Cluster, opts.Region, opts.Zones)
	if err != nil {
		return nil, err
	}
	if err := account.add(opts.Subnets); err != nil {
		return nil, err
	}
	if opts.SubnetOwner != "" {
		account.share(opts.SubnetOwner)
	}
	if opts.IPv6 {
		account.addIPv6()
	}
	j := newJournal(opts.StateFile)
	s := &Server{
		opts: opts, log: opts.Log, now: opts.Now, catalogue: catalogue, account: account,
		market: newMarket(opts.MarketSeed, opts.Now()),
		images: newImages(opts.KubernetesVersion, opts.Region), calls: newCallLog(), journal: j,
		instances: newTable[instance](j, "instance"), templates: newTable[launchTemplate](j, "template"),
		fleets: newTable[fleet](j, "fleet"), replies: newTable[savedReply](j, "reply"),
		profiles: newTable[instanceProfile](j, "profile"), tags: newTable[tagSet](j, "tags"),
		queues: newTable[queue](j, "queue"), addresses: newTable[addressCounter](j, "addresses"),
		ownGroups: newTable[securityGroup](j, "group"), subnetOptions: newTable[subnetOptions](j, "subnet"), roles: newTable[role](j, "role"),
		ownImages: newTable[image](j, "image"), ownParameters: newTable[ssmParameter](j, "parameter"),
		reservations:        newTable[capacityReservation](j, "reservation"),
		experimentTemplates: newTable[experimentTemplate](j, "experimentTemplate"), experiments: newTable[experiment](j, "experiment"),
		userData: newTable[userData](j, "userdata"), faultRow: newTable[Faults](j, "faults"),
		inUse: map[string]map[string]bool{}, further: map[string]int{}, buckets: map[string]*bucket{}, hits: map[string]int{}, posted: make(chan struct{}),
	}
	for _, i := range opts.Images {
		s.images = append(s.images, i.add(opts.KubernetesVersion))
	}
	if err := j.open(); err != nil {
		return nil, err
	}
	if err := s.checkState(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	s.scheduleDue()
	s.countAddresses()
	if s.faultRow.rows[faultsID] == nil {
		faults := opts.Faults
		s.faultRow.put(faultsID, &faults)
	}
	s.makeOptions()
	if err := j.commit(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	if opts.Kubernetes != nil {
		s.kubelets = newKubelets(s, opts.Kubernetes)
	}
	return s, nil
}

// makeOptions makes what the options say that the account has from the start.
func (s *Server) makeOptions() {
	for _, name := range s.opts.Queues {
		s.makeQueue(name, nil)
	}
	for name, value := range s.opts.Parameters {
		if s.ownParameters.rows[name] == nil {
			s.putParameter(name, value, s.now())
		}
	}
}

// checkState refuses a state file that this catalogue and these images cannot explain.
func (s *Server) checkState() error {
	for id, i := range s.instances.rows {
		if s.catalogue.Type(i.Type) == nil || s.image(i.Image) == nil || s.account.subnet(i.Subnet) == nil {
			return fmt.Errorf("state %s: instance %s (%s, %s, %s) is not of this account: other catalogue, version or zones",
				s.opts.StateFile, id, i.Type, i.Image, i.Subnet)
		}
	}
	return nil
}

func loadCatalogue(path string) (*Catalogue, error) {
	if path == "" {
		return BuiltinCatalogue()
	}
	return LoadCatalogue(path)
}

// Start listens and serves in the background until Close, and brings instances into the cluster.
func (s *Server) Start() error {
	listener, err := net.Listen("tcp", s.opts.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.listener, s.stop = listener, stop
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 30 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: zap.NewStdLog(s.log),
	}
	s.done.Go(func() {
		if err := s.http.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve", zap.Error(err))
		}
	})
	if s.kubelets != nil {
		s.done.Go(func() { s.kubelets.run(ctx) })
	}
	s.log.Info("simulated AWS is listening", zap.String("url", s.URL()), zap.String("cluster", s.opts.Cluster),
		zap.String("region", s.opts.Region), zap.Int("instanceTypes", len(s.catalogue.types)))
	return nil
}

// URL is the address clients put into AWS_ENDPOINT_URL. It is empty before Start.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Close stops serving, breaking off open requests, and closes the state file. Instances stay as they are.
func (s *Server) Close() error {
	var err error
	if s.http != nil {
		s.stop()
		err = s.http.Close()
	}
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.journal.close())
}

// settle lets everything happen that is due by now. It is called with the lock held before anything is read.
func (s *Server) settle(now time.Time) {
	if s.nextDue.IsZero() || now.Before(s.nextDue) {
		return
	}
	for id, i := range s.instances.rows {
		due := i.due(s.opts.KeepTerminated)
		switch {
		case due.IsZero() || now.Before(due):
		case i.ended():
			s.instances.del(id)
		case due.Equal(i.InterruptAt):
			s.end(i, due, "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination")
		default:
			s.end(i, due, "Server.InternalError", "Server.InternalError: Internal error on launch")
		}
	}
	s.scheduleDue()
}

// scheduleDue recomputes when settle has work next.
func (s *Server) scheduleDue() {
	s.nextDue = time.Time{}
	for _, i := range s.instances.rows {
		s.notBefore(i)
	}
}

// notBefore makes sure that settle runs when something is due for an instance that has changed.
func (s *Server) notBefore(i *instance) {
	due := i.due(s.opts.KeepTerminated)
	if !due.IsZero() && (s.nextDue.IsZero() || due.Before(s.nextDue)) {
		s.nextDue = due
	}
}

// locked runs f on settled state and commits what it changed.
func (s *Server) locked(f func(now time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.settle(now)
	err := f(now)
	return errors.Join(err, s.journal.commit())
}
