package handover_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/test/world"
)

// controller is Karpenter, Tenon or nobody.
type controller string

const (
	nobody      controller = ""
	byTenon     controller = "tenon"
	byKarpenter controller = "karpenter"
)

// controllerOf returns the controller that an identity in the Lease belongs to. Karpenter's is its host name and a random
// part.
func controllerOf(identity string) controller {
	switch {
	case identity == "":
		return nobody
	case strings.HasPrefix(identity, "tenon_"):
		return byTenon
	}
	return byKarpenter
}

// holding is a period in which one controller, or nobody, held the Lease.
type holding struct {
	who  controller
	from time.Time
}

// holders records who has held the Lease since when.
type holders struct {
	mu       sync.Mutex
	holdings []holding
}

// watchHolders starts recording who holds the Lease.
func watchHolders(w *world.World) *holders {
	h := &holders{}
	w.Observe(map[client.Object]func(any, bool){&coordinationv1.Lease{}: func(object any, deleted bool) {
		if lease, ok := object.(*coordinationv1.Lease); ok && !deleted && lease.Namespace == world.LeaseNamespace && lease.Name == world.LeaseName {
			h.see(lease)
		}
	}})
	return h
}

// see records a change. A new holder writes into the Lease when it took it, before it acts; a release is recorded when it is
// seen, a moment later.
func (h *holders) see(lease *coordinationv1.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	identity := ""
	if lease.Spec.HolderIdentity != nil {
		identity = *lease.Spec.HolderIdentity
	}
	who := controllerOf(identity)
	if len(h.holdings) > 0 && h.holdings[len(h.holdings)-1].who == who {
		return
	}
	from := time.Now()
	if who != nobody && lease.Spec.AcquireTime != nil {
		from = lease.Spec.AcquireTime.Time
	}
	h.holdings = append(h.holdings, holding{who, from})
}

// now returns who holds the Lease, and since when.
func (h *holders) now() holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.holdings) == 0 {
		return holding{}
	}
	return h.holdings[len(h.holdings)-1]
}

// all returns who has held the Lease since when, in order of time.
func (h *holders) all() []holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.holdings)
}

// at returns who held the Lease at an instant.
func (h *holders) at(t time.Time) holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := holding{}
	for _, holding := range h.holdings {
		if !holding.from.After(t) {
			held = holding
		}
	}
	return held
}

// awaitHolder waits until a controller holds the Lease and returns since when.
func (s *story) awaitHolder(who controller, limit time.Duration) time.Time {
	s.T.Helper()
	s.Await(fmt.Sprintf("%s to hold the Lease", who), limit, func() (bool, string) {
		return s.holders.now().who == who, fmt.Sprintf("%q holds it", s.holders.now().who)
	})
	return s.holders.now().from
}

// isOfLease reports whether a write is an attempt to take or renew the Lease, or the Event about who took or lost it: the
// only writes allowed without holding it.
func isOfLease(write world.Request) bool {
	switch write.Resource {
	case "leases":
		return write.Namespace == world.LeaseNamespace && write.Name == world.LeaseName || write.Verb == "create" && write.Name == ""
	case "events":
		return strings.HasPrefix(write.Name, world.LeaseName+".")
	}
	return false
}

// checkWrites compares every write of the two controllers since a time with who held the Lease when it was made, and logs
// how many there were.
func (s *story) checkWrites(users map[controller]string, since time.Time) {
	s.T.Helper()
	counts := map[holding]map[controller]int{}
	for who, user := range users {
		for _, write := range s.WritesOf(user) {
			if write.At.Before(since) || isOfLease(write) {
				continue
			}
			held := s.holders.at(write.At)
			if counts[held] == nil {
				counts[held] = map[controller]int{}
			}
			counts[held][who]++
			if held.who != who {
				s.T.Errorf("%s wrote without the Lease: %s %s %s/%s (%d) at %s, %s after %q got it", who, write.Verb, write.Resource, write.Namespace, write.Name,
					write.Code, write.At.Format("15:04:05.000"), write.At.Sub(held.from).Round(time.Millisecond), held.who)
			}
		}
	}
	for _, held := range s.holders.all() {
		s.T.Logf("from %s %9q held the Lease: %4d writes of Karpenter, %4d of Tenon", held.from.UTC().Format("15:04:05"), held.who, counts[held][byKarpenter], counts[held][byTenon])
	}
}
