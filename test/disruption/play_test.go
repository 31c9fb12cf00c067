package disruption_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	temporal "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// play is a running scenario.
type play struct {
	*scenario
	*world.World
	view   *view
	ledger *world.BudgetLedger
	// desired is how many pods each Deployment has.
	desired map[string]int
	// daemons are the DaemonSets.
	daemons []string
	// marked are the claims that existed when the scenario was last marked, and at is the time from which a later step
	// measures.
	marked map[string]bool
	at     time.Time
	// asked is when tenon why node was last asked about a node, answers what it said.
	asked   map[string]time.Time
	answers map[string][]workflows.NodeVerdict
}

// laboratory is what scenarios share.
type laboratory struct {
	*world.World
	view   *view
	guard  *guard
	ledger *world.BudgetLedger
	hooks  *hookServer
}

// play runs a scenario from its first step to its judgement, and cleans up.
func (s scenario) play(t *testing.T, l *laboratory) {
	p := &play{scenario: &s, World: l.For(t), view: l.view, ledger: l.ledger, desired: map[string]int{}, asked: map[string]time.Time{}, answers: map[string][]workflows.NodeVerdict{}}
	defer func() {
		if t.Failed() {
			t.Logf("rule: %s\n%s", s.rule, p.table())
		}
		p.close(l)
	}()
	p.open()
	for _, next := range s.steps {
		next(p)
	}
	p.judge()
	if broken := l.guard.violations(s.name); s.breaks == "" && len(broken) > 0 {
		t.Errorf("PodDisruptionBudgets were not kept: %v", broken)
	} else if s.breaks != "" && len(broken) == 0 {
		t.Errorf("no PodDisruptionBudget was overridden, although %s", s.breaks)
	}
	if over := l.ledger.Violations(s.name, p.reasonOf); len(over) > 0 {
		t.Errorf("budgets were not kept: %v", over)
	}
}

// within returns how long a step may take.
func (p *play) within() time.Duration { return cmp.Or(p.patience, settleWithin) }

// open creates the namespace and the NodePools, and waits until the NodePools are ready.
func (p *play) open() {
	p.T.Helper()
	p.Apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", p.name))
	p.create(p.objects)
	if len(p.pools) == 0 {
		p.pools = []pool{{}}
	}
	for _, next := range p.pools {
		p.Apply(p.fill(next.manifest(p.name)))
	}
	for _, next := range p.pools {
		p.Await("NodePool "+next.name(p.name)+" ready", p.within(), func() (bool, string) {
			var found karpv1.NodePool
			if err := p.view.Get(p.Context(), client.ObjectKey{Name: next.name(p.name)}, &found); err != nil {
				return false, err.Error()
			}
			return found.IsTrue(karpv1.ConditionTypeReady), fmt.Sprint(found.Status.Conditions)
		})
	}
}

// close deletes what the scenario created, without waiting for it.
func (p *play) close(l *laboratory) {
	l.guard.forget(p.name)
	l.ledger.Forget(p.name)
	ctx := context.WithoutCancel(p.Context())
	if err := world.Clear(ctx, l.WithWatch, p.name); err != nil {
		p.T.Errorf("clear up: %v", err)
	}
	for _, next := range p.pools {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: next.name(p.name)}}
		if err := l.Delete(ctx, pool); client.IgnoreNotFound(err) != nil {
			p.T.Errorf("clear up: %v", err)
		}
	}
}

// fill replaces SCENE by the scenario's name.
func (p *play) fill(manifests string) string { return strings.ReplaceAll(manifests, "SCENE", p.name) }

// create applies manifests. It retries, because pods are forbidden until a new namespace has its service account.
func (p *play) create(manifests string) {
	p.T.Helper()
	p.Await("create", p.within(), func() (bool, string) {
		err := p.TryApply(p.fill(manifests))
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			p.T.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// patch changes an object by merge patch, in which SCENE stands for the scenario's name.
func (p *play) patch(object client.Object, name, patch string) {
	p.T.Helper()
	object.SetName(name)
	if err := p.Patch(p.Context(), object, client.RawPatch("application/merge-patch+json", []byte(p.fill(patch)))); err != nil {
		p.T.Fatal(err)
	}
}

// nodes returns the scenario's nodes, by name.
func (p *play) nodes() []corev1.Node {
	p.T.Helper()
	var list corev1.NodeList
	if err := p.view.List(context.Background(), &list, client.MatchingLabels{sceneLabel: p.name}); err != nil {
		p.T.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// pods returns the scenario's pods that are not being deleted: those of the named workloads, or all.
func (p *play) pods(workloads ...string) []corev1.Pod {
	p.T.Helper()
	var list corev1.PodList
	if err := p.view.List(context.Background(), &list, client.InNamespace(p.name)); err != nil {
		p.T.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return !pod.DeletionTimestamp.IsZero() || len(workloads) > 0 && !slices.Contains(workloads, pod.Labels["app"])
	})
}

// hosts returns the names of the nodes that run pods of a workload.
func (p *play) hosts(workload string) []string {
	p.T.Helper()
	found := map[string]bool{}
	for _, pod := range p.pods(workload) {
		if pod.Spec.NodeName != "" {
			found[pod.Spec.NodeName] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// events returns the Events with a reason about the scenario's objects; cluster-wide objects are matched by name.
func (p *play) events(reason string) []string {
	p.T.Helper()
	var list corev1.EventList
	if err := p.view.List(context.Background(), &list, client.MatchingFields{eventReason: reason}); err != nil {
		p.T.Fatal(err)
	}
	own := map[string]bool{}
	for _, l := range p.view.of(p.name) {
		own[l.claim], own[l.node] = true, true
	}
	for _, next := range p.pools {
		own[next.name(p.name)] = true
	}
	var said []string
	for _, event := range list.Items {
		about := event.InvolvedObject
		if about.Namespace == p.name || about.Namespace == "" && own[about.Name] {
			said = append(said, about.Kind+": "+event.Message)
		}
	}
	return said
}

// why returns the verdicts on a node, as Disruption gives them to tenon why node. Asking again within a moment returns the
// same answer.
func (p *play) why(node string) []workflows.NodeVerdict {
	p.T.Helper()
	const askAgain = 2 * time.Second
	if time.Since(p.asked[node]) < askAgain {
		return p.answers[node]
	}
	p.asked[node] = time.Now()
	cluster := workflows.Cluster(p.Lab.Cluster())
	ctx, stop := context.WithTimeout(p.Context(), world.Patience(time.Minute))
	defer stop()
	handle, err := p.Temporal.UpdateWithStartWorkflow(ctx, temporal.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: p.Temporal.NewWithStartWorkflowOperation(workflows.DisruptionOptions(cluster).Client(), workflows.DisruptionType, workflows.DisruptionInput{Cluster: cluster}),
		UpdateOptions: temporal.UpdateWorkflowOptions{UpdateName: workflows.UpdateWhyNode, WaitForStage: temporal.WorkflowUpdateStageCompleted,
			Args: []any{workflows.NodeQuestion{Name: node}}},
	})
	var answer workflows.NodeAnswer
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	if err != nil {
		answer.Verdicts = []workflows.NodeVerdict{{Message: err.Error()}}
	}
	if answer.Going != nil {
		answer.Verdicts = append(answer.Verdicts, workflows.NodeVerdict{Reason: answer.Going.Reason, Cause: "it goes", Message: answer.Going.Why})
	}
	p.answers[node] = answer.Verdicts
	return answer.Verdicts
}

// reasonOf returns why a claim was removed, from the result of its workflow.
func (p *play) reasonOf(claim string) string {
	p.T.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(p.Context()), world.Patience(time.Minute))
	defer stop()
	var result workflows.NodeClaimResult
	if err := p.Temporal.GetWorkflow(ctx, workflows.Cluster(p.Lab.Cluster()).NodeClaimID(claim), "").Get(ctx, &result); err != nil {
		p.T.Logf("why claim %s went: %v", claim, err)
	}
	return result.Reason
}

// judge checks how many nodes were removed for which reason, and that nothing is left half done.
func (p *play) judge() {
	p.T.Helper()
	want := p.takes
	if want == nil {
		want = takes{}
	}
	p.Await("every node that goes gone", p.within(), func() (bool, string) {
		for _, l := range p.view.of(p.name) {
			if l.tainted && !l.gone || l.going && !l.gone {
				return false, ""
			}
		}
		return true, ""
	})
	got := takes{}
	for _, l := range p.view.of(p.name) {
		if l.gone && l.initialized {
			got[p.reasonOf(l.claim)]++
		}
	}
	if !maps.Equal(got, want) {
		p.T.Errorf("nodes went for %v, want %v", got, want)
	}
}

// table describes the claims and pods for people who have to find out why a scenario failed.
func (p *play) table() string {
	var text strings.Builder
	text.WriteString("CLAIMS\n")
	for _, l := range p.view.of(p.name) {
		state := "serves"
		switch {
		case l.gone:
			state = "gone"
		case l.going:
			state = "going"
		case l.tainted:
			state = "tainted"
		case !l.initialized:
			state = "starting"
		}
		fmt.Fprintf(&text, "  %-34s %-30s %-12s %-10s %-10s %-8s %s %s (undone %d times)\n", l.claim, l.node, l.itype, l.zone, l.capacity, state, l.reason, l.replaces, l.undone)
	}
	text.WriteString("PODS\n")
	for _, pod := range p.pods() {
		fmt.Fprintf(&text, "  %-30s %-10s on %s %s\n", pod.Name, pod.Status.Phase, pod.Spec.NodeName, unscheduled(&pod))
	}
	text.WriteString("EVENTS\n")
	var list corev1.EventList
	_ = p.view.List(context.Background(), &list)
	own := map[string]bool{}
	for _, l := range p.view.of(p.name) {
		own[l.claim], own[l.node] = true, true
	}
	for _, event := range list.Items {
		if event.Source.Component == "tenon" && (event.InvolvedObject.Namespace == p.name || own[event.InvolvedObject.Name]) {
			fmt.Fprintf(&text, "  %s %s %s %s: %s\n", event.LastTimestamp.Format(time.TimeOnly), event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, cut(event.Message, 240))
		}
	}
	for node, verdicts := range p.answers {
		fmt.Fprintf(&text, "WHY %s %v\n", node, verdicts)
	}
	return text.String()
}

func unscheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func cut(text string, most int) string {
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
