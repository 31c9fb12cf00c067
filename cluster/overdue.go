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
	// bootUnknown is the least time that a machine is given from its launch until its node serves while fewer than
	// bootsFew nodes of its NodePool are known to have served: one or two may have been quick by chance.
	bootUnknown = 90 * time.Second
	bootsFew    = 5
	// bootsKept is the number of nodes of a NodePool whose boot times are remembered.
	bootsKept = 20
	// minSlack and maxSlack limit the time that a machine may take beyond the slowest of these, which is half as long
	// again.
	minSlack, maxSlack = 20 * time.Second, 45 * time.Second
	// overdueShare is the number of nodes that a NodePool must have for each machine that counts as overdue, except the
	// first. If more machines fail to serve, others would fail too: the image does not boot, or there is no route to
	// the API server. Where no node has served yet, only the first counts: perhaps all take long. No machine counts as
	// overdue while more than this share are still within their time: those that serve already are the quickest of
	// their launch and say little about the others.
	overdueShare = 5
	// overdueFew is the number of machines that may count as overdue, whatever the share, if a machine launched after
	// them serves: then the fault is theirs, not that of the whole NodePool.
	overdueFew = 3
)

// overdue are the machines whose nodes take longer to serve than is usual in their NodePool, if they ever do. Tenon
// does not wait for them: they have no room and no promises, so that their pods are planned for elsewhere. If one does
// serve later, it is a node like any other.
type overdue struct {
	*shared
	places *places
	// boots is how long the last nodes of each NodePool took from their launch until they served.
	boots map[string][]time.Duration
	// names are the claims that are overdue; next is when another one will be, or zero for never.
	names map[string]bool
	next  time.Time
}

func newOverdue(s *shared, places *places) *overdue {
	return &overdue{shared: s, places: places, boots: map[string][]time.Duration{}, names: map[string]bool{}}
}

// Overdue returns the claims whose nodes take longer to serve than is usual in their NodePool, ordered by name. The
// claims are shared and must not be changed.
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

// learn remembers how long a claim's node took to serve.
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

// judge determines which machines are overdue at a moment, those launched first before others, and when the next one
// will be. The lock is held.
func (o *overdue) judge(now time.Time) {
	nodes, coming, late := map[string]int{}, map[string]int{}, map[string][]*promised{}
	served := map[string]time.Time{} // when the newest serving machine was launched
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
