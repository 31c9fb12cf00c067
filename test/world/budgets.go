package world

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// BudgetLedger watches over NodePools' budgets. Whenever a node begins to be disrupted it counts, from its own watches of
// Nodes, NodeClaims and NodePools, how many nodes of the pool are disrupted and how many the pool's budgets allow at that
// moment for each reason. Which of the reasons applies is known only later. It is queried by scene: the NodeClaims with one
// value of a label.
type BudgetLedger struct {
	kube client.Client
	// label is the key of the label that names a claim's scene; if empty, all claims belong to the scene "".
	label  string
	mu     sync.Mutex
	claims map[string]*karpv1.NodeClaim
	nodes  map[string]*corev1.Node // by claim
	pools  map[string]*karpv1.NodePool
	begun  map[string]bool // by claim
	// sizes are a pool's recent numbers of nodes: a decision is carried out a moment after it was made, and may refer to a
	// share of more nodes.
	sizes  map[string][]size
	starts []start
	peaks  map[string]int
	closed map[string]bool
}

type size struct {
	at    time.Time
	nodes int
}

// lately is how long it may take to carry out a decision on a busy machine.
const lately = 15 * time.Second

// start records a node that began to be disrupted.
type start struct {
	at                 time.Time
	scene, pool, claim string
	disrupted          int
	// allowed is the most that the budgets allowed recently, by reason.
	allowed map[karpv1.DisruptionReason]int
}

// budgeted are the reasons to which budgets apply.
var budgeted = []karpv1.DisruptionReason{karpv1.DisruptionReasonEmpty, karpv1.DisruptionReasonDrifted, karpv1.DisruptionReasonUnderutilized}

// WatchBudgets watches over budgets until the test ends. label is the key of the label that names the scene of a NodeClaim;
// empty if there is only one scene.
func (w *World) WatchBudgets(label string) *BudgetLedger {
	w.T.Helper()
	l := newBudgetLedger(label)
	l.kube = w.WithWatch
	w.Observe(map[client.Object]func(any, bool){
		&corev1.Node{}: l.nodeChanged, &karpv1.NodeClaim{}: l.claimChanged, &karpv1.NodePool{}: l.poolChanged,
	})
	return l
}

func newBudgetLedger(label string) *BudgetLedger {
	return &BudgetLedger{
		label:  label,
		claims: map[string]*karpv1.NodeClaim{}, nodes: map[string]*corev1.Node{}, pools: map[string]*karpv1.NodePool{},
		begun: map[string]bool{}, sizes: map[string][]size{}, peaks: map[string]int{}, closed: map[string]bool{},
	}
}

func (l *BudgetLedger) poolChanged(object any, _ bool) {
	if pool, ok := object.(*karpv1.NodePool); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pools[pool.Name] = pool
	}
}

func (l *BudgetLedger) claimChanged(object any, deleted bool) {
	claim, ok := object.(*karpv1.NodeClaim)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.claims[claim.Name] = claim; deleted {
		delete(l.claims, claim.Name)
		delete(l.nodes, claim.Name)
	}
	l.look(claim.Name, claim.Labels[karpv1.NodePoolLabelKey])
}

func (l *BudgetLedger) nodeChanged(object any, deleted bool) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, owner := range node.OwnerReferences {
		if owner.Kind != "NodeClaim" {
			continue
		}
		if l.nodes[owner.Name] = node; deleted {
			delete(l.nodes, owner.Name)
		}
		l.look(owner.Name, node.Labels[karpv1.NodePoolLabelKey])
	}
}

// look records that a claim's node has begun to be disrupted, or has been given back.
func (l *BudgetLedger) look(claim, pool string) {
	nodes, disrupted := l.census(pool)
	now := time.Now()
	l.sizes[pool] = append(slices.DeleteFunc(l.sizes[pool], func(s size) bool { return now.Sub(s.at) > lately }), size{now, nodes})
	found := l.claims[claim]
	if found == nil {
		return
	}
	going := leaving(found, l.nodes[claim])
	before := l.begun[claim]
	if l.begun[claim] = going; !going || before || l.closed[found.Labels[l.label]] || !found.IsTrue(karpv1.ConditionTypeInitialized) {
		return
	}
	l.peaks[pool] = max(l.peaks[pool], disrupted)
	most := slices.MaxFunc(l.sizes[pool], func(a, b size) int { return a.nodes - b.nodes }).nodes
	s := start{at: now, scene: found.Labels[l.label], pool: pool, claim: claim, disrupted: disrupted, allowed: map[karpv1.DisruptionReason]int{}}
	if known := l.pools[pool]; known != nil {
		l.allow(&s, known, now, most)
	}
	l.starts = append(l.starts, s)
	l.confirm(len(l.starts)-1, most)
}

// allow records what a pool's budgets allow now, or allowed recently.
func (l *BudgetLedger) allow(s *start, pool *karpv1.NodePool, now time.Time, nodes int) {
	for _, reason := range budgeted {
		s.allowed[reason] = max(s.allowed[reason], allowed(pool, reason, nodes, now), allowed(pool, reason, nodes, now.Add(-lately)))
	}
}

// confirm reads the objects once more if a count looks like a violation, because the watches are not synchronized: a node
// that is being terminated already no longer counts, and a budget that was raised just now allows more.
func (l *BudgetLedger) confirm(index, nodes int) {
	s := l.starts[index]
	if !slices.ContainsFunc(budgeted, func(r karpv1.DisruptionReason) bool { return s.disrupted > s.allowed[r] }) || l.kube == nil {
		return
	}
	go func() {
		var pool karpv1.NodePool
		var claims karpv1.NodeClaimList
		err := l.kube.Get(context.Background(), client.ObjectKey{Name: s.pool}, &pool)
		if err == nil {
			err = l.kube.List(context.Background(), &claims, client.MatchingLabels{karpv1.NodePoolLabelKey: s.pool})
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			return
		}
		l.allow(&l.starts[index], &pool, time.Now(), nodes)
		terminated := 0
		there := map[string]bool{}
		for i := range claims.Items {
			there[claims.Items[i].Name] = true
			if known := l.claims[claims.Items[i].Name]; known != nil && !known.IsTrue(karpv1.ConditionTypeInstanceTerminating) && claims.Items[i].IsTrue(karpv1.ConditionTypeInstanceTerminating) {
				terminated++
			}
		}
		for name, known := range l.claims {
			if known.Labels[karpv1.NodePoolLabelKey] == s.pool && !there[name] && !known.IsTrue(karpv1.ConditionTypeInstanceTerminating) {
				terminated++
			}
		}
		l.starts[index].disrupted -= terminated
	}()
}

// census counts a pool's nodes: those that are initialized and not being terminated, and among them those that are not ready
// or are being removed.
func (l *BudgetLedger) census(pool string) (nodes, disrupted int) {
	for name, claim := range l.claims {
		if claim.Labels[karpv1.NodePoolLabelKey] != pool || !claim.IsTrue(karpv1.ConditionTypeInitialized) || claim.IsTrue(karpv1.ConditionTypeInstanceTerminating) {
			continue
		}
		nodes++
		node := l.nodes[name]
		ready := node == nil || slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !ready || leaving(claim, node) {
			disrupted++
		}
	}
	return nodes, disrupted
}

func leaving(claim *karpv1.NodeClaim, node *corev1.Node) bool {
	return !claim.DeletionTimestamp.IsZero() || node != nil && (!node.DeletionTimestamp.IsZero() || hasDisruptedTaint(node))
}

func hasDisruptedTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.DisruptedTaintKey })
}

// allowed returns how many of a pool's nodes its budgets allow to be disrupted at once for a reason.
func allowed(pool *karpv1.NodePool, reason karpv1.DisruptionReason, nodes int, now time.Time) int {
	zone := time.UTC
	if name := pool.Annotations[karpv1.BudgetTimezoneAnnotationKey]; name != "" {
		if local, err := time.LoadLocation(name); err == nil {
			zone = local
		} else {
			return 0
		}
	}
	least := math.MaxInt
	for _, budget := range pool.Spec.Disruption.Budgets {
		if len(budget.Reasons) > 0 && !slices.Contains(budget.Reasons, reason) || !inForce(&budget, now.In(zone)) {
			continue
		}
		least = min(least, worth(budget.Nodes, nodes))
	}
	return least
}

// worth returns the number of nodes that a budget means for a pool of this size; a share is rounded up.
func worth(text string, nodes int) int {
	percent, share := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(percent)
	switch {
	case err != nil:
		return 0
	case share:
		return (nodes*n + 99) / 100
	}
	return n
}

// inForce reports whether a budget's schedule has fired no longer ago than its duration.
func inForce(budget *karpv1.Budget, now time.Time) bool {
	if budget.Schedule == nil {
		return true
	}
	schedule, err := cron.ParseStandard(*budget.Schedule)
	return err == nil && budget.Duration != nil && !schedule.Next(now.Add(-budget.Duration.Duration)).After(now)
}

// Violations returns the nodes of a scene that were disrupted beyond the budgets for a reason to which budgets apply. Nodes
// that people and EC2 removed within the same moments are not counted: they may have gone between a decision and its
// execution.
func (l *BudgetLedger) Violations(scene string, reasonOf func(claim string) string) []string {
	l.mu.Lock()
	starts := slices.Clone(l.starts)
	l.mu.Unlock()
	var broken []string
	for _, s := range starts {
		if s.scene != scene || !slices.ContainsFunc(budgeted, func(r karpv1.DisruptionReason) bool { return s.disrupted > s.allowed[r] }) {
			continue
		}
		reason := karpv1.DisruptionReason(reasonOf(s.claim))
		most, known := s.allowed[reason]
		if !known {
			continue
		}
		disrupted := s.disrupted
		for _, other := range starts {
			if other.pool == s.pool && other.claim != s.claim && s.at.Sub(other.at).Abs() < lately && !slices.Contains(budgeted, karpv1.DisruptionReason(reasonOf(other.claim))) {
				disrupted--
			}
		}
		if disrupted > most {
			broken = append(broken, fmt.Sprintf("%s was number %d to go of NodePool %s for %s, whose budgets allow %d", s.claim, disrupted, s.pool, reason, most))
		}
	}
	return broken
}

// Peak returns the largest number of nodes of a pool that were disrupted at once.
func (l *BudgetLedger) Peak(pool string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peaks[pool]
}

// Forget stops checking a scene: what it created is being deleted.
func (l *BudgetLedger) Forget(scene string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed[scene] = true
}

// Summary describes how much was watched.
func (l *BudgetLedger) Summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d nodes began to be disrupted in %d NodePools", len(l.starts), len(slices.Collect(maps.Keys(l.peaks))))
}
