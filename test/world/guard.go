package world

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

const (
	// lookEvery is how often a guard looks: a claim lives for longer, and the simulated EC2 forgets no instance.
	lookEvery = 500 * time.Millisecond
	// maxUnowned is how long an instance without an owner may live.
	maxUnowned = 2 * time.Minute
	// quietWithin is how long a guard waits for anything. A shorter limit would prove nothing.
	quietWithin = 5 * time.Minute
)

// Guard watches the laboratory from outside and remembers everything it has ever seen, so that it notices what must never
// happen even if it is corrected a moment later. It continues through crashes of the whole laboratory.
type Guard struct {
	kube client.WithWatch
	sim  string

	mu sync.Mutex
	// claims are all claims ever seen, by UID; instances all instances ever seen, by id.
	claims    map[types.UID]*claimSeen
	instances map[string]ec2sim.Instance
	// claimOf is the one claim to which a machine was given, by provider id.
	claimOf map[string]types.UID
	unowned map[string]time.Time
	wrong   []string
	known   map[string]bool
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// claimSeen is the last seen state of a claim.
type claimSeen struct {
	name, group, providerID string
	there                   bool
}

// Guard starts a guard that watches until End.
func (w *World) Guard() *Guard {
	ctx, stop := context.WithCancel(context.Background())
	g := &Guard{kube: w.WithWatch, sim: w.Lab.EC2SimURL(), claims: map[types.UID]*claimSeen{}, instances: map[string]ec2sim.Instance{},
		claimOf: map[string]types.UID{}, unowned: map[string]time.Time{}, known: map[string]bool{}, stop: stop}
	g.ended.Go(func() {
		for ctx.Err() == nil {
			// While the laboratory is down there is nothing to see.
			_ = g.look(ctx)
			time.Sleep(lookEvery)
		}
	})
	return g
}

// End stops the guard and fails the test for everything that went wrong since the last Check.
func (g *Guard) End(t testing.TB) {
	g.stop()
	g.ended.Wait()
	g.Check(t)
	t.Logf("the guard has seen %d claims and %d instances", len(g.claims), len(g.instances))
}

// Check fails the test for everything that went wrong since the last Check.
func (g *Guard) Check(t testing.TB) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, wrong := range g.wrong {
		t.Error(wrong)
	}
	g.wrong = nil
}

// Accuse records a violation, once.
func (g *Guard) Accuse(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accuse(format, args...)
}

// Ever returns the names of all claims that were ever seen.
func (g *Guard) Ever() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for _, claim := range g.claims {
		names = append(names, claim.name)
	}
	return names
}

// Unclaimed returns the machines that were launched and that no claim ever had.
func (g *Guard) Unclaimed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for id, instance := range g.instances {
		if _, claimed := g.claimOf["aws:///"+instance.Zone+"/"+id]; !claimed {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// accuse is Accuse. The lock is held.
func (g *Guard) accuse(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !g.known[text] {
		g.known[text] = true
		g.wrong = append(g.wrong, time.Now().UTC().Format("15:04:05.000 ")+text)
	}
}

// look compares machines and claims once. It reads the machines first, because a claim is older than its machine.
func (g *Guard) look(ctx context.Context) error {
	instances, err := g.readInstances(ctx)
	if err != nil {
		return err
	}
	var claims karpv1.NodeClaimList
	if err := g.kube.List(ctx, &claims); err != nil {
		return fmt.Errorf("list NodeClaims: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, seen := range g.claims {
		seen.there = false
	}
	for i := range claims.Items {
		g.seeClaim(&claims.Items[i])
	}
	launched := map[string]int{}
	for _, instance := range instances {
		g.instances[instance.ID] = instance
	}
	for _, instance := range g.instances {
		launched[instance.Tags[karpv1.LaunchGroupAnnotationKey]]++
	}
	g.count(launched)
	g.seeUnowned(instances)
	return nil
}

func (g *Guard) readInstances(ctx context.Context) ([]ec2sim.Instance, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.sim+"/_sim/instances", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var instances []ec2sim.Instance
	return instances, json.NewDecoder(response.Body).Decode(&instances)
}

// seeClaim records a claim. Once it has a machine it must keep it, and no other claim may ever have the same machine.
func (g *Guard) seeClaim(claim *karpv1.NodeClaim) {
	seen := g.claims[claim.UID]
	if seen == nil {
		seen = &claimSeen{name: claim.Name, group: claim.Annotations[karpv1.LaunchGroupAnnotationKey]}
		if seen.group == "" {
			seen.group = "claim-" + string(claim.UID)
		}
		g.claims[claim.UID] = seen
	}
	seen.there = true
	id := claim.Status.ProviderID
	if seen.providerID != "" && id != seen.providerID {
		g.accuse("claim %s had the machine %s and then %s", claim.Name, seen.providerID, id)
	}
	if id == "" {
		return
	}
	seen.providerID = id
	if of, taken := g.claimOf[id]; taken && of != claim.UID {
		g.accuse("machine %s belongs to the claims %s and %s", id, claim.Name, g.claims[of].name)
	}
	g.claimOf[id] = claim.UID
}

// count compares the machines ever launched for a group with the claims ever made in it. Machines that Karpenter has
// launched belong to no group; see Unclaimed.
func (g *Guard) count(launched map[string]int) {
	wanted := map[string]int{}
	for _, claim := range g.claims {
		wanted[claim.group]++
	}
	for group, n := range launched {
		if group != "" && n > wanted[group] {
			g.accuse("launch group %q has %d claims and %d machines", group, wanted[group], n)
		}
	}
}

// seeUnowned records how long machines have lived without a claim that has them or may still get them.
func (g *Guard) seeUnowned(instances []ec2sim.Instance) {
	waiting := map[string]bool{}
	for _, claim := range g.claims {
		if claim.there && claim.providerID == "" {
			waiting[claim.group] = true
		}
	}
	for _, instance := range instances {
		owner := g.claims[g.claimOf["aws:///"+instance.Zone+"/"+instance.ID]]
		if instance.EndedAt != nil || owner != nil && owner.there || waiting[instance.Tags[karpv1.LaunchGroupAnnotationKey]] {
			delete(g.unowned, instance.ID)
			continue
		}
		since, known := g.unowned[instance.ID]
		if !known {
			g.unowned[instance.ID] = time.Now()
		} else if time.Since(since) > Patience(maxUnowned) {
			g.accuse("machine %s has lived for %s without a claim", instance.ID, maxUnowned)
		}
	}
}

// Budget creates a PodDisruptionBudget in a namespace in which at least that many pods are available. Until release is
// called, it accuses if fewer are available.
func (g *Guard) Budget(w *World, namespace string, least int) (release func()) {
	w.T.Helper()
	fewest := intstr.FromInt(least)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "guard"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &fewest, Selector: &metav1.LabelSelector{}}}
	if err := w.Create(w.Context(), budget); err != nil {
		w.T.Fatalf("create the disruption budget: %v", err)
	}
	w.Await("the disruption budget counts its pods", quietWithin, func() (bool, string) {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
			return false, err.Error()
		}
		return int(budget.Status.CurrentHealthy) >= least, fmt.Sprintf("%+v", budget.Status)
	})
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			g.followPods(ctx, namespace, least)
		}
	})
	return func() {
		stop()
		ended.Wait()
	}
}

// followPods counts the available pods of a namespace after every single change, until the watch ends.
func (g *Guard) followPods(ctx context.Context, namespace string, least int) {
	var list corev1.PodList
	if err := g.kube.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return
	}
	events, err := g.kube.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return
	}
	defer events.Stop()
	available := map[types.UID]bool{}
	for i := range list.Items {
		available[list.Items[i].UID] = isAvailable(&list.Items[i])
	}
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		available[pod.UID] = event.Type != watch.Deleted && isAvailable(pod)
		n := 0
		for _, yes := range available {
			if yes {
				n++
			}
		}
		if n < least {
			g.mu.Lock()
			g.accuse("only %d pods of %s are available, and its budget wants %d: %s %s (deleted at %v, on %s)", n, namespace, least, event.Type, pod.Name,
				pod.DeletionTimestamp, pod.Spec.NodeName)
			g.mu.Unlock()
		}
	}
}

func isAvailable(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// AwaitQuiet waits until no workflow of a node is running.
func (g *Guard) AwaitQuiet(w *World) {
	w.T.Helper()
	w.Await("every workflow of a node over", quietWithin, func() (bool, string) {
		var running []string
		for _, workflow := range w.Executions("ExecutionStatus = 'Running' AND WorkflowType IN ('Launch', 'NodeClaim', 'Drain', 'Replacement')") {
			running = append(running, workflow.GetExecution().GetWorkflowId())
		}
		return len(running) == 0, strings.Join(running, ", ")
	})
	g.Check(w.T)
}
