package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// poolsMirror has NodePools, and records which claims were assumed and promised.
type poolsMirror struct {
	Mirror
	assumed, promised []string
}

func (m *poolsMirror) NodePool(name string) *karpv1.NodePool {
	if name == "gone" {
		return nil
	}
	return &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (m *poolsMirror) NodeClass(string) cloud.NodeClass { return nil }

func (m *poolsMirror) Assume(claims ...*karpv1.NodeClaim) {
	for _, claim := range claims {
		m.assumed = append(m.assumed, claim.Labels[karpv1.NodePoolLabelKey])
	}
}

func (m *poolsMirror) Promise(claim string, _ []types.UID, _ time.Time) {
	m.promised = append(m.promised, claim)
}

// TestOnePoolNeverStopsTheOthers has the API server refuse the claims of one NodePool, or fail to answer for them: the
// others are created, and the plan's result names what was not.
func TestOnePoolNeverStopsTheOthers(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(karpv1.SchemeGroupVersion.WithKind("NodeClaim").GroupKind(), "a", nil)
	busy := apierrors.NewTooManyRequestsError("busy")
	for reason, test := range map[string]struct {
		pools  []string
		refuse error
		want   []string
		again  bool
		note   string
		fails  bool
	}{
		"nothing is wrong":                           {pools: []string{"a", "b"}, want: []string{"a", "b"}},
		"a claim that is invalid stays invalid":      {pools: []string{"a", "poison", "b"}, refuse: invalid, want: []string{"a", "b"}, note: "NodePool poison: 1 claim could not be created"},
		"a pool may be gone by now":                  {pools: []string{"a", "gone", "b"}, want: []string{"a", "b"}, note: "NodePool gone: 1 claim could not be created"},
		"what was not answered is asked for again":   {pools: []string{"a", "poison", "b"}, refuse: busy, want: []string{"a", "b"}, again: true, note: "NodePool poison: 1 claim could not be created"},
		"only refused claims are no reason to retry": {pools: []string{"poison", "poison"}, refuse: invalid, note: "NodePool poison: 2 claims could not be created"},
		"only unanswered ones are":                   {pools: []string{"poison"}, refuse: busy, fails: true},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if object.GetLabels()[karpv1.NodePoolLabelKey] == "poison" {
						return test.refuse
					}
					return to.Create(ctx, object, options...)
				}}).Build()
			mirror := &poolsMirror{}
			events := record.NewFakeRecorder(10)
			acts := New(Config{Cluster: "c", Kube: kube, Mirror: mirror, Events: events, Log: zap.NewNop()})
			var claims []plan.Claim
			for i, pool := range test.pools {
				claims = append(claims, plan.Claim{NodePool: pool, Group: fmt.Sprint(i), InstanceTypes: []string{"m5.large"}, Zones: []string{"z"}, CapacityType: "spot"})
			}
			var result workflows.PlanResult
			err := acts.creator.create(t.Context(), workflows.PlanInput{Plan: "s-1"}, claims, &result)
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			var got []string
			for _, group := range result.Groups {
				got = append(got, group.NodePool)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("launched (-want +got):\n%s", diff)
			}
			if result.Again != test.again || !strings.Contains(result.Note, test.note) || (test.note == "") != (result.Note == "") {
				t.Errorf("again %v, note %q", result.Again, result.Note)
			}
			if len(mirror.assumed) != len(test.want) || len(mirror.promised) != len(test.want) {
				t.Errorf("the mirror was told of %v and promised %v", mirror.assumed, mirror.promised)
			}
			if told := len(events.Events) > 0; told != strings.Contains(test.note, "poison") {
				t.Errorf("told people with kubectl: %v", told)
			}
		})
	}
}

// TestAPlanFitsInAPayload has hundreds of groups that allow hundreds of refused offerings.
func TestAPlanFitsInAPayload(t *testing.T) {
	t.Parallel()
	var refused []workflows.Unavailable
	claim := plan.Claim{NodePool: "default", CapacityType: "spot"}
	for i := range 400 {
		kind := fmt.Sprintf("m7i-flex.%dxlarge", i)
		claim.InstanceTypes = append(claim.InstanceTypes, kind)
		refused = append(refused, workflows.Unavailable{Until: time.Now(), OfferingKey: cloud.OfferingKey{InstanceType: kind, Zone: "us-east-1a", CapacityType: "spot"}})
	}
	claim.Zones = []string{"us-east-1a"}
	claims := make([]plan.Claim, maxClaims)
	for i := range claims {
		claims[i] = claim
		claims[i].Group = fmt.Sprint(i)
	}
	acts := New(Config{Cluster: "c", Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).Build(), Mirror: &poolsMirror{}, Log: zap.NewNop()})
	var result workflows.PlanResult
	if err := acts.creator.create(t.Context(), workflows.PlanInput{Plan: "s-1", Unavailable: refused}, claims, &result); err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Groups) != maxClaims || len(payload) > 1<<20 {
		t.Errorf("%d groups are %d bytes; Temporal takes two megabytes", len(result.Groups), len(payload))
	}
	last := refused[len(refused)-1].InstanceType
	for _, group := range result.Groups {
		if n := len(group.Unavailable); n == 0 || group.Unavailable[n-1].InstanceType != last {
			t.Fatalf("a group knows %d of what was refused, and not the newest", n)
		}
	}
}

// TestOneNodeNeverStopsTheOthers has the API server refuse to delete one claim of a removal.
func TestOneNodeNeverStopsTheOthers(t *testing.T) {
	t.Parallel()
	for reason, lastTry := range map[string]bool{"it is tried again": false, "and kept in the end, as it was": true} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			var removal workflows.Removal
			removal.Reason = "Drifted"
			for _, name := range []string{"a", "poison", "b"} {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, UID: types.UID("uid-node-" + name)}}
				objects = append(objects, pooled(name), node)
				removal.Nodes = append(removal.Nodes, workflows.RemovedNode{Node: node.Name, NodeUID: string(node.UID),
					Claim: workflows.ClaimRef{Name: name, UID: string(pooled(name).UID)}})
			}
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					if object.GetName() == "poison" {
						return errors.New("a webhook says no")
					}
					return to.Delete(ctx, object, options...)
				}}).Build()
			acts := New(Config{Cluster: "c", Kube: kube, Log: zap.NewNop()})
			result, err := acts.removeNodes(t.Context(), removal, lastTry)
			if (err == nil) != lastTry {
				t.Errorf("error %v", err)
			}
			if result.Removed != 2 {
				t.Errorf("removed %d of the two others", result.Removed)
			}
			if kept := slices.ContainsFunc(result.Kept, func(kept string) bool {
				return strings.HasPrefix(kept, "poison: it cannot be removed") && strings.Contains(kept, "a webhook says no")
			}); kept != lastTry {
				t.Errorf("kept: %v", result.Kept)
			}
			var node corev1.Node
			if err := kube.Get(t.Context(), client.ObjectKey{Name: "node-poison"}, &node); err != nil {
				t.Fatal(err)
			}
			if disrupted(&node) == lastTry || (node.Annotations[karpv1.RemovalReasonAnnotationKey] == "") != lastTry {
				t.Errorf("the Node that is kept carries %v and %v", node.Spec.Taints, node.Annotations)
			}
		})
	}
}

// TestOneNodeNeverStopsTheOthersOfAReplacement has the API server refuse to mark one of three nodes of an independent
// replacement, or to delete its claim.
func TestOneNodeNeverStopsTheOthersOfAReplacement(t *testing.T) {
	t.Parallel()
	type step func(context.Context, *Activities, workflows.ReplacementCommand, bool) (workflows.RetireResult, error)
	retire := func(ctx context.Context, acts *Activities, in workflows.ReplacementCommand, oneStays bool) (workflows.RetireResult, error) {
		return acts.retire(ctx, workflows.RetireInput{ID: in.ID, Reason: in.Reason, Nodes: in.Nodes, Independent: true}, oneStays)
	}
	begin := func(ctx context.Context, acts *Activities, in workflows.ReplacementCommand, oneStays bool) (workflows.RetireResult, error) {
		return workflows.RetireResult{}, acts.markAll(ctx, in, oneStays)
	}
	for _, test := range []struct {
		reason   string
		do       step
		poison   string // what the API server refuses to change or delete
		oneStays bool
		deleted  []string
		blocked  string
	}{
		{reason: "a node that cannot be marked is tried again", do: begin, poison: "node-poison"},
		{reason: "and left out in the end", do: begin, poison: "node-poison", oneStays: true},
		{reason: "a node that cannot be marked as going is tried again", do: retire, poison: "node-poison"},
		{reason: "and keeps no other in the end", do: retire, poison: "node-poison", oneStays: true, deleted: []string{"a", "b"}, blocked: "node-poison: it cannot be let go: "},
		{reason: "a claim that cannot be deleted is tried again", do: retire, poison: "poison", deleted: []string{"a", "b"}},
		{reason: "and keeps no other in the end either", do: retire, poison: "poison", oneStays: true, deleted: []string{"a", "b"}, blocked: "node-poison: it cannot be let go: delete NodeClaim poison"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			objects := []client.Object{poolP()}
			var claims []*karpv1.NodeClaim
			for _, name := range []string{"a", "poison", "b"} {
				claim, node := serving(name)
				node.Annotations = map[string]string{karpv1.ReplacementAnnotationKey: "r1"}
				objects, claims = append(objects, claim, node), append(claims, claim)
			}
			r := newReplacing(t, nil, objects...)
			refuses := func(object client.Object) error {
				if object.GetName() == test.poison {
					return errors.New("a webhook says no")
				}
				return nil
			}
			r.WithWatch = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
				Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					if err := refuses(object); err != nil {
						return err
					}
					return to.Delete(ctx, object, options...)
				},
				Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if err := refuses(object); err != nil {
						return err
					}
					return to.Patch(ctx, object, patch, options...)
				},
				Update: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.UpdateOption) error {
					if err := refuses(object); err != nil {
						return err
					}
					return to.Update(ctx, object, options...)
				}})
			r.acts = New(Config{Cluster: "c", Kube: r.WithWatch, Mirror: r, Temporal: &sweptTemporal{}, Events: r.events, Log: zap.NewNop()})
			in := replaceOf(0, claims...)
			in.Independent = true
			result, err := test.do(t.Context(), r.acts, in, test.oneStays)
			if (err == nil) != test.oneStays {
				t.Errorf("error %v", err)
			}
			var deleted []string
			for _, claim := range r.claims() {
				if !claim.DeletionTimestamp.IsZero() {
					deleted = append(deleted, claim.Name)
				}
			}
			if !slices.Equal(deleted, test.deleted) {
				t.Errorf("%q are deleted, want %q", deleted, test.deleted)
			}
			if test.blocked == "" {
				if len(result.Blocked) > 0 {
					t.Errorf("blocked: %q", result.Blocked)
				}
				return
			}
			if len(result.Blocked) != 1 || !strings.HasPrefix(result.Blocked[0], test.blocked) || !result.ForGood || len(result.Left) != 1 || result.Left[0].Node != "node-poison" {
				t.Errorf("blocked %q, for good %t, left %v", result.Blocked, result.ForGood, result.Left)
			}
		})
	}
}

// TestOneClaimNeverKeepsTheOthersFromGoing has the API server refuse to delete one of several claims.
func TestOneClaimNeverKeepsTheOthersFromGoing(t *testing.T) {
	t.Parallel()
	claim := func(name string) *karpv1.NodeClaim {
		return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Finalizers: []string{karpv1.TerminationFinalizer}}}
	}
	kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim("a"), claim("poison"), claim("b")).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if object.GetName() == "poison" {
				return apierrors.NewInternalError(errors.New("a webhook fails"))
			}
			return to.Delete(ctx, object, options...)
		}}).Build()
	acts := New(Config{Cluster: "c", Kube: kube, Log: zap.NewNop()})
	in := workflows.ReleaseClaimsInput{Reason: workflows.ReasonInsufficient}
	for _, name := range []string{"a", "poison", "b"} {
		in.Claims = append(in.Claims, workflows.ClaimRef{Name: name, UID: "uid-" + name})
	}
	if _, err := run(t, acts.ReleaseClaims, in); err == nil || !strings.Contains(err.Error(), "poison") {
		t.Errorf("error %v, want to be tried again for the one that is left", err)
	}
	var left karpv1.NodeClaimList
	if err := kube.List(t.Context(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Name != "poison" {
		t.Errorf("%d claims are left, %v", len(left.Items), err)
	}
}
