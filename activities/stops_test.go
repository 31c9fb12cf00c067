package activities

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// pausesObject is the ConfigMap of what is paused in the whole cluster.
func pausesObject(pauses ...karpv1.Pause) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: karpv1.PauseNamespace, Name: karpv1.PauseConfigMapName},
		Data: map[string]string{karpv1.PauseConfigMapKey: karpv1.FormatPauses(pauses)}}
}

func pauseOf(scope karpv1.PauseScope) karpv1.Pause {
	return karpv1.Pause{What: scope, Reason: "peak", By: "alice"}
}

func pausableKube(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).WithStatusSubresource(&karpv1.NodeClaim{}).
		WithIndex(&corev1.Pod{}, podNode, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
}

// runOnce runs an activity once.
func runOnce[In, Out any](t *testing.T, do func(context.Context, In) (Out, error), in In) (Out, error) {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(do)
	var out Out
	value, err := env.ExecuteActivity(do, in)
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

// TestDeleteClaimWhilePaused ends a claim for every kind of reason while something is paused.
func TestDeleteClaimWhilePaused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason   string
		paused   karpv1.PauseScope
		ending   workflows.DeleteClaimInput
		postpone bool
		again    bool
	}{
		"Expiry":        {reason: "an expired claim stays, by force or not", paused: karpv1.PauseDisruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonExpired, Expires: true}, postpone: true},
		"ExpiryToldOf":  {reason: "also one that the starter ends", paused: karpv1.PauseDisruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonExpired, Pausable: true}, postpone: true, again: true},
		"Repair":        {reason: "an unhealthy node stays", paused: karpv1.PauseDisruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonUnhealthy, Pausable: true}, postpone: true, again: true},
		"Interruption":  {reason: "an interrupted node stays", paused: karpv1.PauseInterruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonSpotInterrupted, Pausable: true}, postpone: true, again: true},
		"OtherScope":    {reason: "a pause of disruption lets interrupted nodes go", paused: karpv1.PauseDisruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonSpotInterrupted, Pausable: true}},
		"OlderWorkflow": {reason: "a life that would not ask again is not asked to wait", paused: karpv1.PauseInterruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonSpotInterrupted}},
		"ManualDrain":   {reason: "what a person wants is done", paused: karpv1.PauseDisruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonManualDrain, Pausable: true}},
		"NeverJoined":   {reason: "a machine that never joined is cleared away", paused: karpv1.PauseDisruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonRegistrationTimeout, Pausable: true}},
		"Gone":          {reason: "so is one that is gone", paused: karpv1.PauseInterruption, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonInstanceGone, Pausable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kube := pausableKube(t, pooled("a"), pausesObject(pauseOf(test.paused)))
			test.ending.Claim, test.ending.UID = "a", string(pooled("a").UID)
			got, err := runOnce(t, New(Config{Kube: kube, Log: zap.NewNop()}).DeleteClaim, test.ending)
			if err != nil {
				t.Fatal(err)
			}
			var claim karpv1.NodeClaim
			if err := kube.Get(t.Context(), client.ObjectKey{Name: "a"}, &claim); err != nil {
				t.Fatal(err)
			}
			if deleted := !claim.DeletionTimestamp.IsZero(); deleted == test.postpone || got.Postponed != test.postpone || !got.Again.IsZero() != test.again {
				t.Errorf("%s: deleted %v, answer %+v", test.reason, deleted, got)
			}
		})
	}
}

// launching is a cloud that counts launches.
type launching struct {
	cloud.Provider
	launches int
}

func (l *launching) Launch(context.Context, cloud.LaunchRequest) (cloud.LaunchResult, error) {
	l.launches++
	return cloud.LaunchResult{}, nil
}

// TestNothingIsSentWhileLaunchesArePaused sends a launch that was prepared before its NodePool was paused.
func TestNothingIsSentWhileLaunchesArePaused(t *testing.T) {
	t.Parallel()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Annotations: map[string]string{karpv1.PauseAnnotationKey: "provisioning"}}}
	for _, test := range []struct {
		reason  string
		pool    string
		objects []client.Object
		sent    int
	}{
		{reason: "the NodePool is paused", pool: "gpu", objects: []client.Object{pool}},
		{reason: "the cluster is paused", pool: "gpu", objects: []client.Object{pausesObject(pauseOf(karpv1.PauseProvisioning))}},
		{reason: "an older launch does not name its pool, and obeys the cluster's pause", objects: []client.Object{pausesObject(pauseOf(karpv1.PauseProvisioning))}},
		{reason: "another NodePool is paused", pool: "web", objects: []client.Object{pool}, sent: 1},
		{reason: "disruption is paused", pool: "web", objects: []client.Object{pausesObject(pauseOf(karpv1.PauseDisruption))}, sent: 1},
	} {
		provider := &launching{}
		_, err := runOnce(t, New(Config{Kube: pausableKube(t, test.objects...), Cloud: provider, Log: zap.NewNop()}).CreateFleet, workflows.CreateFleetInput{NodePool: test.pool})
		var failure *temporal.ApplicationError
		if paused := errors.As(err, &failure) && failure.Type() == workflows.FailurePaused; provider.launches != test.sent || paused != (test.sent == 0) {
			t.Errorf("%s: sent %d, %v", test.reason, provider.launches, err)
		}
	}
}

// TestReplacementsDoNotBeginWhilePaused begins a replacement that was decided before a pause.
func TestReplacementsDoNotBeginWhilePaused(t *testing.T) {
	t.Parallel()
	for scope, want := range map[karpv1.PauseScope]bool{karpv1.PauseDisruption: true, karpv1.PauseProvisioning: true, karpv1.PauseInterruption: false} {
		kube := pausableKube(t, pausesObject(pauseOf(scope)))
		r := &replacer{objects: objects{kube}, stops: stops{objects: objects{kube}}, log: zap.NewNop()}
		err := r.checkNotStopped(t.Context(), workflows.ReplacementCommand{ID: "r", Nodes: []workflows.RemovedNode{{Node: "a", NodePool: "p"}}, Claims: make([]workflows.PlannedClaim, 1)})
		if stops := workflows.FailureType(err) == workflows.FailureChanged; stops != want {
			t.Errorf("%s is paused: %v", scope, err)
		}
	}
}

// TestPauseBetweenAttemptsOfARemoval has a pause begin after an attempt that nobody heard of again: what it has removed is
// removed, and what it has only marked serves on unmarked.
func TestPauseBetweenAttemptsOfARemoval(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}}
	markRemoved(node, "Empty")
	marked, gone := pooled("marked"), pooled("gone")
	gone.Finalizers = []string{karpv1.TerminationFinalizer}
	kube := pausableKube(t, node, marked, gone, pausesObject(pauseOf(karpv1.PauseDisruption)))
	if err := kube.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	acts := New(Config{Kube: kube, Log: zap.NewNop(), Events: record.NewFakeRecorder(100)})
	got, err := acts.removeNodes(t.Context(), workflows.Removal{Reason: "Empty", Nodes: []workflows.RemovedNode{
		{NodePool: "static", Node: "n", NodeUID: "n", Claim: workflows.ClaimRef{Name: "marked", UID: string(marked.UID)}},
		{NodePool: "static", Claim: workflows.ClaimRef{Name: "gone", UID: string(gone.UID)}},
	}}, false)
	if err != nil || got.Removed != 1 || len(got.Kept) != 1 {
		t.Errorf("removed %d, kept %v, %v", got.Removed, got.Kept, err)
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) > 0 || len(node.Annotations) > 0 {
		t.Errorf("the node that stays has taints %v and annotations %v", node.Spec.Taints, node.Annotations)
	}
}

// TestPausedNodesAreNeverRemoved decides, pauses, resumes and acts in any order: what was decided before a pause is not
// carried out during it, and is once it is over.
func TestPausedNodesAreNeverRemoved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
		pool.Spec.Replicas = new(int64(0))
		const count = 3
		all := []client.Object{pool}
		var decided []workflows.RemovedNode
		for i := range count {
			claim := pooled(fmt.Sprintf("c%d", i))
			all = append(all, claim)
			decided = append(decided, workflows.RemovedNode{NodePool: "static", Claim: workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}})
		}
		kube := pausableKube(t, all...)
		acts := New(Config{Kube: kube, Log: zap.NewNop(), Events: record.NewFakeRecorder(100)})
		leaving := func() (n int) {
			var claims karpv1.NodeClaimList
			if err := kube.List(context.Background(), &claims); err != nil {
				rt.Fatal(err)
			}
			for i := range claims.Items {
				if !claims.Items[i].DeletionTimestamp.IsZero() {
					n++
				}
			}
			return n
		}
		var everywhere, own []karpv1.Pause
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			now := time.Now()
			switch rapid.SampledFrom([]string{"pause", "pausePool", "resume", "resumePool", "act", "act"}).Draw(rt, "step") {
			case "pause":
				everywhere = karpv1.SetPause(everywhere, pauseOf(rapid.SampledFrom(karpv1.PauseScopes()).Draw(rt, "scope")), now)
			case "resume":
				everywhere = karpv1.LiftPauses(everywhere, karpv1.PauseScopes(), now)
			case "pausePool":
				own = karpv1.SetPause(own, pauseOf(karpv1.PauseDisruption), now)
			case "resumePool":
				own = nil
			case "act":
				before := leaving()
				result, err := acts.removeNodes(context.Background(), workflows.Removal{Reason: "Overprovisioned", Nodes: decided[:rapid.IntRange(1, count).Draw(rt, "nodes")]}, false)
				if err != nil {
					rt.Fatal(err)
				}
				pool.Annotations = map[string]string{karpv1.PauseAnnotationKey: karpv1.FormatPauses(own)}
				paused := karpv1.StopOf(karpv1.PauseDisruption, everywhere, pool, now) != nil
				if after := leaving(); paused && (after != before || result.Removed != 0) {
					rt.Fatalf("%d nodes were removed during a pause", after-before)
				} else if !paused && after == 0 {
					rt.Fatal("nothing was removed although nothing is paused")
				}
				continue
			}
			written := pausesObject(everywhere...)
			if err := kube.Create(context.Background(), written.DeepCopy()); apierrors.IsAlreadyExists(err) {
				err = kube.Update(context.Background(), written)
				if err != nil {
					rt.Fatal(err)
				}
			}
			var fresh karpv1.NodePool
			if err := kube.Get(context.Background(), client.ObjectKeyFromObject(pool), &fresh); err != nil {
				rt.Fatal(err)
			}
			fresh.Annotations = map[string]string{karpv1.PauseAnnotationKey: karpv1.FormatPauses(own)}
			if err := kube.Update(context.Background(), &fresh); err != nil {
				rt.Fatal(err)
			}
		}
	})
}
