package ec2sim

import "time"

// instance is one virtual machine. Its state is not stored but follows from the instants below and the clock, so nothing
// has to be advanced, and a restarted simulator finds every machine in its current state.
type instance struct {
	ID              string
	Type            string
	Zone            string
	Subnet          string
	Image           string
	Spot            bool   `json:",omitempty"`
	SpotRequest     string `json:",omitempty"`
	Fleet           string `json:",omitempty"`
	Reservation     string
	Capacity        string `json:",omitempty"` // id of the capacity reservation it runs in
	Targeted        bool   `json:",omitempty"` // the launch named the capacity reservation
	LaunchIndex     int
	Template        string `json:",omitempty"` // id
	TemplateVersion string `json:",omitempty"`
	ClientToken     string `json:",omitempty"`
	PrivateIP       string
	PublicIP        string `json:",omitempty"`
	Pods            int    `json:",omitempty"` // pods with their own addresses, if the CNI plugin is simulated
	Groups          []string
	Profile         string `json:",omitempty"` // ARN
	KeyName         string `json:",omitempty"`
	Tags            map[string]string
	TagsBefore      map[string]string `json:",omitempty"`
	VolumeTags      map[string]string `json:",omitempty"`
	InterfaceTags   map[string]string `json:",omitempty"`
	RequestTags     map[string]string `json:",omitempty"` // of the spot instance request
	Volumes         []volume
	Interfaces      []networkInterface
	UserData        string `json:",omitempty"` // key of the user data table
	Metadata        metadataOptions
	Monitoring      bool   `json:",omitempty"`
	EBSOptimized    bool   `json:",omitempty"`
	Enclave         bool   `json:",omitempty"`
	ReservationUse  string `json:",omitempty"` // capacity reservation preference of the launch
	Tenancy         string `json:",omitempty"`
	PlacementGroup  string `json:",omitempty"` // id
	Partition       int    `json:",omitempty"` // of the placement group

	LaunchedAt  time.Time
	VisibleAt   time.Time // Describe calls see it from here on
	RunningAt   time.Time
	BootAt      time.Time // the kubelet registers; zero means never
	ReadyAt     time.Time // the Node becomes Ready; zero means never
	InterruptAt time.Time // a spot interruption ends it here; zero means none is announced
	EmptiedAt   time.Time `json:",omitzero"` // the end of its capacity block ends it here
	DieAt       time.Time // a fault ends it here
	EndedAt     time.Time // termination was requested or happened; zero while it lives
	EndSeenAt   time.Time // Describe calls see the end from here on
	GoneAt      time.Time // shutting-down becomes terminated
	StoppedAt   time.Time `json:",omitzero"` // when it was stopped; zero if it was not
	HaltedAt    time.Time `json:",omitzero"` // stopping becomes stopped
	TagsSeenAt  time.Time `json:",omitzero"` // Describe calls show TagsBefore until here
	EndCode     string    `json:",omitempty"`
	EndReason   string    `json:",omitempty"`

	Status instanceChecks `json:",omitzero"` // its status checks and scheduled events

	Node       nodePhase `json:",omitempty"`
	NodeReason string    `json:",omitempty"` // why the kubelet did not come up
}

type volume struct {
	ID         string
	Device     string
	SizeGiB    int
	Type       string
	Encrypted  bool
	IOPS       int
	Throughput int
	Keep       bool // not deleted on termination
}

type networkInterface struct {
	ID          string
	DeviceIndex int
	CardIndex   int
	Type        string
	Groups      []string
	Description string
	IPv6        []string `json:",omitempty"`
	Secondary   int      `json:",omitempty"` // private IPv4 addresses besides the primary one, including those of prefixes
	PrimaryIPv6 bool     `json:",omitempty"` // the first IPv6 address never changes
	// IPv6Prefixes are /80 ranges of its own.
	IPv6Prefixes []string `json:",omitempty"`
}

// instanceChecks is the status of an instance: since when each check has failed, zero while it passes, and the event that
// EC2 has scheduled.
type instanceChecks struct {
	InstanceSince time.Time
	SystemSince   time.Time
	Event         string `json:",omitempty"` // the event's code
	EventID       string `json:",omitempty"`
	Description   string `json:",omitempty"`
	NotBefore     time.Time
}

// nodePhase is the progress of the machine's kubelet.
type nodePhase string

const (
	nodeAbsent  nodePhase = ""        // has not booted, or never will
	nodeJoined  nodePhase = "joined"  // its Node was created
	nodeFailed  nodePhase = "failed"  // the kubelet could not start; NodeReason says why
	nodeStopped nodePhase = "stopped" // the machine ended and its Node, if any, was left to the cluster
)

// instanceState is a state of the EC2 life cycle with its code.
type instanceState struct {
	code int
	name string
}

var (
	statePending      = instanceState{0, "pending"}
	stateRunning      = instanceState{16, "running"}
	stateShuttingDown = instanceState{32, "shutting-down"}
	stateTerminated   = instanceState{48, "terminated"}
	stateStopping     = instanceState{64, "stopping"}
	stateStopped      = instanceState{80, "stopped"}
)

// state returns the true state at an instant.
func (i *instance) state(now time.Time) instanceState {
	switch {
	case i.ended() && !now.Before(i.GoneAt):
		return stateTerminated
	case i.ended():
		return stateShuttingDown
	case i.stopped() && !now.Before(i.HaltedAt):
		return stateStopped
	case i.stopped():
		return stateStopping
	case now.Before(i.RunningAt):
		return statePending
	}
	return stateRunning
}

// seen returns the state that Describe calls report at an instant, which may lag.
func (i *instance) seen(now time.Time) instanceState {
	if i.ended() && now.Before(i.EndSeenAt) {
		if now.Before(i.RunningAt) {
			return statePending
		}
		return stateRunning
	}
	return i.state(now)
}

func (i *instance) ended() bool { return !i.EndedAt.IsZero() }

func (i *instance) stopped() bool { return !i.StoppedAt.IsZero() }

// off reports whether the machine has ended or was stopped.
func (i *instance) off() bool { return i.ended() || i.stopped() }

// shownTags returns the tags that Describe calls show at an instant.
func (i *instance) shownTags(now time.Time) map[string]string {
	if now.Before(i.TagsSeenAt) {
		return i.TagsBefore
	}
	return i.Tags
}

func (i *instance) visible(now time.Time) bool { return !now.Before(i.VisibleAt) }

func (i *instance) capacityType() string {
	if i.Spot {
		return capacitySpot
	}
	return capacityOnDemand
}

func (i *instance) pool() pool { return pool{i.Type, i.Zone, i.capacityType()} }

// due returns the next instant at which the instance changes by itself; zero means never.
func (i *instance) due(keepTerminated time.Duration) time.Time {
	var next time.Time
	consider := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if i.ended() {
		consider(i.GoneAt.Add(keepTerminated))
		return next
	}
	consider(i.InterruptAt)
	consider(i.EmptiedAt)
	consider(i.DieAt)
	return next
}

// ipv6 returns the instance's IPv6 address, the first of its primary interface, or "" if it has none.
func (i *instance) ipv6() string {
	for _, n := range i.Interfaces {
		if n.DeviceIndex == 0 && n.CardIndex == 0 && len(n.IPv6) > 0 {
			return n.IPv6[0]
		}
	}
	return ""
}

// zoneOf returns the zone of an instance. After a restart, the zone may no longer be configured; the result then has only
// its name.
func (a *account) zoneOf(i *instance) zone {
	z, ok := a.zone(i.Zone)
	if !ok {
		z.Name = i.Zone
	}
	return z
}
