package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// EventKind is the kind of an Event.
type EventKind string

const (
	// PodsPending means that a pod without a node was created, or that the kube-scheduler found no node for one. It has
	// no name.
	PodsPending EventKind = "PodsPending"
	// ClaimChanged means the NodeClaim of that name was created, changed or deleted.
	ClaimChanged EventKind = "ClaimChanged"
	// NodeChanged means the Node of that name was created, changed or deleted.
	NodeChanged EventKind = "NodeChanged"
	// PodsChanged means a pod was bound to, changed on or left the Node of that name.
	PodsChanged EventKind = "PodsChanged"
	// NodeEmptied means that the last pod that would need another place has left the Node of that name, or has begun to
	// leave it.
	NodeEmptied EventKind = "NodeEmptied"
	// PoolChanged means the NodePool of that name was created, changed or deleted.
	PoolChanged EventKind = "PoolChanged"
	// PoolEdited means that the offerings of the NodePool of that name may have changed: it was created, edited or
	// deleted, or has become ready or unready. A change of the node counts in its status does not publish it.
	PoolEdited EventKind = "PoolEdited"
	// ClassChanged means the node class of that name was created, changed or deleted.
	ClassChanged EventKind = "ClassChanged"
	// BudgetsChanged means some PodDisruptionBudget changed. It has no name.
	BudgetsChanged EventKind = "BudgetsChanged"
	// StorageChanged means that a PersistentVolumeClaim, PersistentVolume or StorageClass changed so that a waiting pod
	// can perhaps be planned for. It has no name.
	StorageChanged EventKind = "StorageChanged"
	// DevicesChanged means that a ResourceClaim, DeviceClass or ResourceSlice changed so that a waiting pod can perhaps be
	// planned for. It has no name.
	DevicesChanged EventKind = "DevicesChanged"
	// DevicesPublished means that the ResourceSlices of some node changed. It has no name.
	DevicesPublished EventKind = "DevicesPublished"
	// DaemonSetsChanged means some DaemonSet changed. It has no name.
	DaemonSetsChanged EventKind = "DaemonSetsChanged"

	// BuffersChanged means that some CapacityBuffer, or an object it refers to, changed. It has no name.
	BuffersChanged EventKind = "BuffersChanged"

	// PausesChanged means that what people have paused changed: for the whole cluster, for some NodePool, or because a pause
	// is over. It has no name. A change of all NodePools follows where it stops or resumes anything.
	PausesChanged EventKind = "PausesChanged"

	// OverlaysChanged means some NodeOverlay was created, changed or deleted. It has no name.
	OverlaysChanged EventKind = "OverlaysChanged"

	// providerPlace means that the Node or the claim with a provider id changed; its name is that provider id.
	providerPlace EventKind = "providerPlace"
	// claimsSeen means that more changes of claims have been seen, synchronized that a resource has been listed.
	claimsSeen   EventKind = "claimsSeen"
	synchronized EventKind = "synchronized"
	// judged means that the kube-scheduler has looked at all recent pods.
	judged EventKind = "judged"
)

// Event says that something changed, not how: read the mirror for that.
type Event struct {
	Kind EventKind
	// Name is the object's name; empty for kinds without one.
	Name string
}

// Subscription collects events until they are taken.
type Subscription struct {
	// C receives a value when events have come since the last Take. It is never closed.
	C <-chan struct{}

	signal chan struct{}
	mu     sync.Mutex
	events map[Event]struct{}
	close  func()
}

// Take returns the events that came since the last Take, each once, ordered by kind and name.
func (s *Subscription) Take() []Event {
	s.mu.Lock()
	taken := s.events
	s.events = nil
	s.mu.Unlock()
	list := make([]Event, 0, len(taken))
	for event := range taken {
		list = append(list, event)
	}
	slices.SortFunc(list, func(a, b Event) int {
		if order := strings.Compare(string(a.Kind), string(b.Kind)); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// Close ends the subscription.
func (s *Subscription) Close() { s.close() }

func (s *Subscription) add(event Event) {
	s.mu.Lock()
	if s.events == nil {
		s.events = map[Event]struct{}{}
	}
	s.events[event] = struct{}{}
	s.mu.Unlock()
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// events delivers changes to their subscribers. If an event has no subscriber, publishing costs two map look-ups,
// however many subscribers other events have.
type events struct {
	mu      sync.RWMutex
	byKind  map[EventKind][]*Subscription
	byEvent map[Event][]*Subscription
}

func (e *events) publish(event Event) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, subscription := range e.byKind[event.Kind] {
		subscription.add(event)
	}
	for _, subscription := range e.byEvent[event] {
		subscription.add(event)
	}
}

func (e *events) subscribe(kinds []EventKind, exact []Event) *Subscription {
	signal := make(chan struct{}, 1)
	s := &Subscription{C: signal, signal: signal}
	s.close = sync.OnceFunc(func() { e.unsubscribe(s, kinds, exact) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKind == nil {
		e.byKind, e.byEvent = map[EventKind][]*Subscription{}, map[Event][]*Subscription{}
	}
	for _, kind := range kinds {
		e.byKind[kind] = append(e.byKind[kind], s)
	}
	for _, event := range exact {
		e.byEvent[event] = append(e.byEvent[event], s)
	}
	return s
}

func (e *events) unsubscribe(s *Subscription, kinds []EventKind, exact []Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kind := range kinds {
		remove(e.byKind, kind, s)
	}
	for _, event := range exact {
		remove(e.byEvent, event, s)
	}
}

// remove removes one value from an index, and the entry once it has no values.
func remove[K, V comparable](index map[K][]V, key K, value V) {
	left := slices.DeleteFunc(index[key], func(v V) bool { return v == value })
	if len(left) == 0 {
		delete(index, key)
		return
	}
	index[key] = left
}

// Subscribe returns a subscription to all events of these kinds from now on. Look up the existing state after
// subscribing.
func (e *events) Subscribe(kinds ...EventKind) *Subscription { return e.subscribe(kinds, nil) }

// Await returns nil once done reports true, or the error of done. It calls done at once and again after each of the
// events, without polling; events that come while done runs are not lost. When ctx ends first, Await returns its error.
func (e *events) Await(ctx context.Context, done func() (bool, error), on ...Event) error {
	subscription := e.subscribe(nil, on)
	defer subscription.Close()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-subscription.C:
			subscription.Take()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
