package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// bootUnknown is how long a machine may take from its launch until its node serves, at least, where fewer than bootsFew
	// nodes of its NodePool are known to have done so: one or two may have been quick by chance.
	bootUnknown = 90 * time.Second
	bootsFew    = 5
	// bootsKept is of how many nodes of a NodePool it is remembered how long they took.
	bootsKept = 20
	// minSlack and maxSlack bound how much longer than the slowest of these a machine may take, which is half as long
	// again.
	minSlack, maxSlack = 20 * time.Second, 45 * time.Second
	// overdueShare is how many nodes a NodePool has for each machine that counts as overdue, the first aside. Where more do
	// not come, they will not come in other places either: an image that does not boot, no way to the API server. Where no
	// node has served yet, the first is the only one: all may just take long. No machine counts as overdue while more than
	// this share are on their way in time: those that have come are the quickest of their launch and say little about the
	// others.
	overdueShare = 5
	// overdueFew machines count as overdue in any case where one that was launched after them serves: then it is they that do
	// not come, and not all machines of the NodePool.
	overdueFew = 3
)

// overdue are the machines that were launched and serve later than is usual in their NodePool, if ever. Nobody waits for
// them: they have no room and no promises, so that their pods are planned for elsewhere. One that comes after all is a node
// like any other.
type overdue struct {
	*shared
	places *places
	// boots is how long the last nodes of each NodePool took from their launch until they served.
	boots map[string][]time.Duration
	// names are the claims that are overdue, and next is when another one will be; zero for never.
	names map[string]bool
	next  time.Time
}

func newOverdue(s *shared, places *places) *overdue {
	return &overdue{shared: s, places: places, boots: map[string][]time.Duration{}, names: map[string]bool{}}
}

// Overdue returns the claims whose nodes serve later than is usual in their NodePool, ordered by name. The claims are shared
// and must not be changed.
func (o *overdue) Overdue() []*karpv1.NodeClaim {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.judge(o.clock.Now())
	var claims []*karpv1.NodeClaim
	for _, name := range slices.Sorted(maps.Keys(o.names)) {
		claims = append(claims, o.places.claims[name].claim)
	}
	return claims
}

// learn remembers how long a claim's node took.
func (o *overdue) learn(claim *promised) {
	launched, initialized := claim.claim.Condition(karpv1.ConditionTypeLaunched), claim.claim.Condition(karpv1.ConditionTypeInitialized)
	if launched == nil || initialized == nil {
		return
	}
	took := initialized.LastTransitionTime.Sub(launched.LastTransitionTime.Time)
	if took < 0 {
		return
	}
	boots := slices.Concat(o.boots[poolOf(claim)], []time.Duration{took})
	o.boots[poolOf(claim)] = boots[max(0, len(boots)-bootsKept):]
}

// patience is how long a machine of a NodePool may take from its launch until its node serves.
func (o *overdue) patience(pool string) time.Duration {
	var usual time.Duration
	for _, took := range o.boots[pool] {
		usual = max(usual, took)
	}
	patience := usual + min(max(usual/2, minSlack), maxSlack)
	if len(o.boots[pool]) < bootsFew {
		return max(patience, bootUnknown)
	}
	return patience
}

// judge finds out which machines are overdue at a moment, those first that were launched first, and when the next one
// will be. The lock is held.
func (o *overdue) judge(now time.Time) {
	nodes, coming, late := map[string]int{}, map[string]int{}, map[string][]*promised{}
	served := map[string]time.Time{} // when the last machine was launched that serves
	o.next = time.Time{}
	for _, claim := range o.places.claims {
		pool := poolOf(claim)
		nodes[pool]++
		if launched := launchedAt(claim); claim.plan.Initialized && launched.After(served[pool]) {
			served[pool] = launched
		}
		if !claim.plan.Launched || claim.plan.Initialized || !claim.claim.DeletionTimestamp.IsZero() {
			continue
		}
		due := launchedAt(claim).Add(o.patience(pool))
		if !now.Before(due) {
			late[pool] = append(late[pool], claim)
			continue
		}
		coming[pool]++
		if o.next.IsZero() || due.Before(o.next) {
			o.next = due
		}
	}
	names := map[string]bool{}
	for pool, claims := range late {
		slices.SortFunc(claims, func(a, b *promised) int {
			return cmp.Or(launchedAt(a).Compare(launchedAt(b)), strings.Compare(a.claim.Name, b.claim.Name))
		})
		most := 1
		if len(o.boots[pool]) > 0 {
			most = max(most, nodes[pool]/overdueShare)
		}
		passed := 0
		for _, claim := range claims {
			if launchedAt(claim).Before(served[pool]) {
				passed++
			}
		}
		most = max(most, min(passed, overdueFew))
		if coming[pool] > most {
			continue
		}
		for _, claim := range claims[:min(len(claims), most)] {
			names[claim.claim.Name] = true
		}
	}
	before := o.names
	o.names = names
	for _, both := range []map[string]bool{before, names} {
		for name := range both {
			if before[name] != names[name] {
				o.places.touchKey(name)
			}
		}
	}
}
