package scheduling_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
)

// play is a running scenario.
type play struct {
	*scenario
	*world.World
	view *view
	// created are the workloads whose pods have been created.
	created []workload
	// whys are the answers of tenon why pod, by pod, and asked is when each was asked.
	whys  map[string]string
	asked map[string]time.Time
	// released is how many nodes had joined at the last release.
	released int
}

// play runs a scenario from its first step to its expectations.
func (s scenario) play(t *testing.T, w *world.World, v *view) {
	p := &play{scenario: &s, World: w, view: v, whys: map[string]string{}, asked: map[string]time.Time{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("rule: %s\n%s", s.rule, p.outcome().table())
		}
	})
	if p.before != nil {
		p.before(p)
	}
	p.open()
	for _, next := range s.steps {
		if next.act != nil {
			next.act(p)
		}
		p.create(next.objects)
		var manifests strings.Builder
		for _, l := range next.pods {
			manifests.WriteString("\n---\n" + l.manifests(s.name))
		}
		p.create(manifests.String())
		p.created = append(p.created, next.pods...)
		if next.then != nil {
			next.then(p)
		}
		p.Await("every pod settled", settleWithin, p.settled)
	}
	p.judge(t)
}

// open creates the namespace and the NodePools, and waits until the NodePools are ready.
func (p *play) open() {
	p.T.Helper()
	pools := p.pools
	if len(pools) == 0 {
		pools = []pool{{}}
	}
	manifests := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {scene: %s}}}", p.name, p.name)
	for _, next := range pools {
		manifests += "\n---" + next.manifest(p.name)
	}
	p.create(manifests)
	for _, next := range pools {
		p.Await("NodePool "+next.name(p.name)+" ready", settleWithin, func() (bool, string) {
			var found karpv1.NodePool
			if err := p.view.Get(p.Context(), client.ObjectKey{Name: next.name(p.name)}, &found); err != nil {
				return false, err.Error()
			}
			return found.IsTrue(karpv1.ConditionTypeReady), fmt.Sprint(found.Status.Conditions)
		})
	}
}

func (p *play) create(manifests string) {
	p.T.Helper()
	for _, object := range parse(p.T, p.name, manifests) {
		// A pod is forbidden until its new namespace has its service account.
		p.Await("create "+object.GetKind()+" "+object.GetName(), settleWithin, func() (bool, string) {
			err := p.Create(p.Context(), object)
			if err != nil && !(apierrors.IsForbidden(err) && object.GetKind() == "Pod") {
				p.T.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
			}
			return err == nil, fmt.Sprint(err)
		})
	}
}

// remove deletes one of the scenario's objects.
func (p *play) remove(apiVersion, kind, name string) {
	p.T.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetName(name)
	if !clusterWide[kind] {
		object.SetNamespace(p.name)
	}
	if err := p.Delete(p.Context(), object); err != nil {
		p.T.Fatalf("delete %s %s: %v", kind, name, err)
	}
}

// settled reports whether all pods that are to be scheduled are, and Tenon has said why the others are not.
func (p *play) settled() (bool, string) {
	o := p.outcome()
	for _, l := range p.created {
		pods := o.pods[l.name]
		if len(pods) < l.count {
			return false, fmt.Sprintf("%d of %d pods of %s", len(pods), l.count, l.name)
		}
		bound, told := 0, 0
		for _, pod := range pods {
			switch {
			case pod.Spec.NodeName != "":
				bound++
			case l.stays != "" && p.told(o, pod.Name, l.stays):
				told++
			}
		}
		if l.stays == "" && bound < l.count || l.stays != "" && (bound < l.bound || bound+told < l.count) {
			return false, fmt.Sprintf("%d of %d pods of %s are bound, %d are told %q", bound, l.count, l.name, told, l.stays)
		}
	}
	return true, ""
}

// told reports whether Tenon has said about a pod what it should. An Event has room for only a few NodePools' reasons; tenon
// why pod says the rest.
func (p *play) told(o *outcome, pod, what string) bool {
	const askAgain = 5 * time.Second
	said := o.said[pod]
	if strings.Contains(said, what) {
		return true
	}
	if said != "" && time.Since(p.asked[pod]) > askAgain {
		p.asked[pod] = time.Now()
		answer, err := p.Tenon("why", "pod", p.name+"/"+pod)
		if err != nil {
			answer = fmt.Sprintf("%v: %s", err, answer)
		}
		p.whys[pod] = own(p.name, answer)
	}
	return strings.Contains(p.whys[pod], what)
}

// judge checks what applies to every scenario, and the expectations of this one.
func (p *play) judge(t *testing.T) {
	o := p.outcome()
	if plans := p.view.plans(p.name); len(plans) != p.launches() {
		t.Errorf("%d plans launched nodes, want %d: %v", len(plans), p.launches(), plans)
	}
	used := map[string]bool{}
	for _, l := range p.created {
		bound := 0
		for _, pod := range o.pods[l.name] {
			used[pod.Spec.NodeName] = true
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		if l.stays != "" && bound != l.bound {
			t.Errorf("%d pods of %s are bound, want %d", bound, l.name, l.bound)
		}
	}
	var empty []string
	for _, n := range o.nodes {
		if !used[n.Name] {
			empty = append(empty, n.Name)
		}
	}
	if len(empty) > p.spare {
		t.Errorf("no pod is on %v", empty)
	}
	for _, expected := range p.expect {
		if err := expected(o); err != nil {
			t.Error(err)
		}
	}
}

// outcome returns the current state of the scenario.
func (p *play) outcome() *outcome {
	p.T.Helper()
	o := &outcome{ctx: p.Context(), ec2: p.Lab.EC2SimURL(), pods: map[string][]corev1.Pod{}, node: map[string]*corev1.Node{}, said: map[string]string{}}
	var pods corev1.PodList
	var nodes corev1.NodeList
	var events corev1.EventList
	var claims karpv1.NodeClaimList
	for _, err := range []error{
		p.view.List(context.Background(), &pods, client.InNamespace(p.name)),
		p.view.List(context.Background(), &nodes, client.MatchingLabels{sceneLabel: p.name}),
		p.view.List(context.Background(), &events, client.InNamespace(p.name)),
		p.view.List(context.Background(), &claims, client.MatchingLabels{sceneLabel: p.name}),
	} {
		if err != nil {
			p.T.Fatal(err)
		}
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp.IsZero() {
			o.pods[pod.Labels["app"]] = append(o.pods[pod.Labels["app"]], pod)
		}
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	o.nodes = nodes.Items
	for i := range o.nodes {
		o.node[o.nodes[i].Name] = &o.nodes[i]
	}
	for _, event := range events.Items {
		if event.Source.Component == "tenon" && event.Reason == "FailedScheduling" {
			o.said[event.InvolvedObject.Name] += own(p.name, event.Message) + "\n"
		}
	}
	for pod, why := range p.whys {
		o.said[pod] = why
	}
	o.claimed = claims.Items
	o.claims, o.gone = p.view.claims(p.name)
	o.plans = p.view.plans(p.name)
	o.expected = p.view.nominations(p.name)
	return o
}
