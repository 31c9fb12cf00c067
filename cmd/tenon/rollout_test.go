package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/worker"
)

var rolledAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rolled returns the command against an API server with some objects.
func rolled(objects ...kube.Object) *rolloutCommand {
	direct := fake.NewClientBuilder().WithScheme(worker.Scheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to kube.WithWatch, object kube.Object, options ...kube.CreateOption) error {
			if review, asks := object.(*authenticationv1.SelfSubjectReview); asks {
				review.Status.UserInfo.Username = "alice"
				return nil
			}
			return to.Create(ctx, object, options...)
		},
	}).Build()
	return &rolloutCommand{kube: direct, now: func() time.Time { return rolledAt }, out: &bytes.Buffer{}, json: true}
}

// rolledPool is a NodePool whose rollout has stopped, and what its nodes were made from before.
func rolledPool(t *testing.T, previous *karpv1.RolloutTarget) *karpv1.NodePool {
	t.Helper()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{karpv1.RolloutAnnotationKey: "1,100%"}}}
	pool.Spec.Template.Labels = map[string]string{"version": "two"}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	// The clock of the worker is ahead.
	state := karpv1.RolloutState{Target: "new", Began: rolledAt.Add(-time.Hour), Stopped: "node n is ill", StoppedAt: rolledAt.Add(time.Minute)}
	for key, value := range map[string]any{karpv1.RolloutStateAnnotationKey: state, karpv1.RolloutTargetsAnnotationKey: karpv1.RolloutTargets{Current: &karpv1.RolloutTarget{Target: "new"}, Previous: previous}} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		pool.Annotations[key] = string(text)
	}
	return pool
}

func classOf(alias string) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.AMISelectorTerms, class.Spec.Role = []awsv1.AMISelectorTerm{{Alias: alias}}, "nodes"
	return class
}

// before describes what nodes were made from: a class with other tags.
func before(t *testing.T, alias string) *karpv1.RolloutTarget {
	t.Helper()
	spec := classOf(alias).Spec
	spec.Tags = map[string]string{"team": "blue"}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	template := rolledPool(t, nil).Spec.Template
	template.Labels = map[string]string{"version": "one"}
	return &karpv1.RolloutTarget{Target: "old", Template: &template, ClassSpec: text,
		Images: []karpv1.Image{{ID: "ami-1", Name: "amazon-eks-node-al2023-x86_64-standard-1.34-v20260101"}, {ID: "ami-2", Name: "amazon-eks-node-al2023-arm64-standard-1.34-v20260101"}}}
}

func (r *rolloutCommand) shown(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(r.out.(*bytes.Buffer).Bytes(), into); err != nil {
		t.Fatal(err)
	}
	r.out.(*bytes.Buffer).Reset()
}

func TestRolloutOrders(t *testing.T) {
	t.Parallel()
	other := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	r := rolled(rolledPool(t, nil), other)
	var shown []rolloutStatus
	if err := r.status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.shown(t, &shown); len(shown) != 1 || shown[0].NodePool != "web" || shown[0].Reason != karpv1.RolloutStopped || !strings.Contains(shown[0].Message, "node n is ill") {
		t.Errorf("shown %+v", shown)
	}
	if err := r.order(t.Context(), "web", karpv1.RolloutStop, rolloutFlags{}); err == nil || !strings.Contains(err.Error(), "--reason") {
		t.Errorf("an order without a reason: %v", err)
	}
	if err := r.order(t.Context(), "plain", karpv1.RolloutStop, rolloutFlags{reason: "x"}); err == nil || !strings.Contains(err.Error(), "has no rollout") {
		t.Errorf("an order to a pool without a rollout: %v", err)
	}
	for _, what := range []string{karpv1.RolloutStop, karpv1.RolloutResume} {
		want := map[string]string{karpv1.RolloutStop: "by alice: latency", karpv1.RolloutResume: "node n is ill"}[what]
		if err := r.order(t.Context(), "web", what, rolloutFlags{reason: "latency"}); err != nil {
			t.Fatal(err)
		}
		if r.shown(t, &shown); !strings.Contains(shown[0].Message, want) || shown[0].Order.What != what || shown[0].Order.By != "alice" {
			t.Errorf("after %s: %+v", what, shown)
		}
		if at := shown[0].Order.At; at.Before(rolledAt.Add(time.Minute)) {
			t.Errorf("the order of %s is older than the stop that it is about", at)
		}
	}
	r.json = false
	if err := r.status(t.Context(), "web"); err != nil || !strings.Contains(r.out.(*bytes.Buffer).String(), "1,100%") {
		t.Errorf("%v: %s", err, r.out)
	}
}

// TestRolloutBack shows the way back, goes it, and checks that nodes are made from the same as before.
func TestRolloutBack(t *testing.T) {
	t.Parallel()
	kind := nodeclass.Kind()
	shared := rolledPool(t, nil)
	shared.Name = "shared"
	r := rolled(rolledPool(t, before(t, "al2023@latest")), shared, classOf("al2023@latest"))
	if err := r.back(t.Context(), "shared", rolloutFlags{}); err == nil || !strings.Contains(err.Error(), "it is not known what its nodes were made from") {
		t.Errorf("back without a record: %v", err)
	}
	var way, done wayBack
	if err := r.back(t.Context(), "web", rolloutFlags{}); err != nil {
		t.Fatal(err)
	}
	r.shown(t, &way)
	want := wayBack{NodePool: "web", EC2NodeClass: "default", Shared: []string{"shared"}, Note: "its images are pinned to al2023@v20260101",
		PoolPatch:  json.RawMessage(`{"spec":{"template":{"metadata":{"labels":{"version":"one"}}}}}`),
		ClassPatch: json.RawMessage(`{"spec":{"amiSelectorTerms":[{"alias":"al2023@v20260101"}],"tags":{"team":"blue"}}}`)}
	compact := cmp.Transformer("compact", func(raw json.RawMessage) string {
		var out bytes.Buffer
		if err := json.Compact(&out, raw); err != nil {
			return err.Error()
		}
		return out.String()
	})
	if diff := cmp.Diff(want, way, compact); diff != "" {
		t.Error(diff)
	}
	if err := r.back(t.Context(), "web", rolloutFlags{yes: true, reason: "not Ready"}); err != nil {
		t.Fatal(err)
	}
	if r.shown(t, &done); !done.Done {
		t.Errorf("done %+v", done)
	}
	var class awsv1.EC2NodeClass
	var pool karpv1.NodePool
	if err := r.kube.Get(t.Context(), kube.ObjectKey{Name: "default"}, &class); err != nil {
		t.Fatal(err)
	}
	if err := r.kube.Get(t.Context(), kube.ObjectKey{Name: "web"}, &pool); err != nil {
		t.Fatal(err)
	}
	if order, err := pool.RolloutOrder(); err != nil || order.What != karpv1.RolloutBack || order.Reason != "not Ready" {
		t.Errorf("order %+v, %v", order, err)
	}
	// What the worker finds then is the target before, image by image.
	old := classOf("al2023@latest")
	old.Spec.Tags = map[string]string{"team": "blue"}
	oldPool := pool.DeepCopy()
	oldPool.Spec.Template = *before(t, "al2023@latest").Template
	var targets []string
	for _, one := range []struct {
		pool  *karpv1.NodePool
		class *awsv1.EC2NodeClass
	}{{oldPool, old}, {&pool, &class}} {
		hash, err := one.class.Hash("")
		if err != nil {
			t.Fatal(err)
		}
		one.class.Annotations = map[string]string{kind.HashKey: hash}
		one.class.Status.AMIs = []awsv1.AMI{{ID: "ami-1"}, {ID: "ami-2"}}
		one.class.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: metav1.ConditionTrue}}
		targets = append(targets, plan.RolloutTarget(one.pool, one.class, kind))
	}
	if targets[0] == "" || targets[0] != targets[1] {
		t.Errorf("nodes were made from %s, and are made from %s after going back", targets[0], targets[1])
	}
}

func TestPin(t *testing.T) {
	t.Parallel()
	named := func(names ...string) (images []karpv1.Image) {
		for i, name := range names {
			images = append(images, karpv1.Image{ID: "ami-" + string(rune('b'-i)), Name: name})
		}
		return images
	}
	for name, test := range map[string]struct {
		reason string
		terms  []awsv1.AMISelectorTerm
		images []karpv1.Image
		want   []awsv1.AMISelectorTerm
		family string
	}{
		"Pinned":       {reason: "a pinned alias chooses what it chose", terms: []awsv1.AMISelectorTerm{{Alias: "al2023@v20260101"}}, images: named("x"), want: []awsv1.AMISelectorTerm{{Alias: "al2023@v20260101"}}},
		"Ids":          {reason: "so do ids", terms: []awsv1.AMISelectorTerm{{ID: "ami-9"}}, images: named("x"), want: []awsv1.AMISelectorTerm{{ID: "ami-9"}}},
		"Latest":       {reason: "the newest Amazon Linux", terms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}, images: named("amazon-eks-node-al2023-x86_64-standard-1.34-v20260101", "amazon-eks-node-al2023-x86_64-nvidia-1.34-v20260101"), want: []awsv1.AMISelectorTerm{{Alias: "al2023@v20260101"}}},
		"Bottlerocket": {reason: "the newest Bottlerocket", terms: []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}, images: named("bottlerocket-aws-k8s-1.34-x86_64-v1.50.0-0123abcd"), want: []awsv1.AMISelectorTerm{{Alias: "bottlerocket@v1.50.0"}}},
		"Windows":      {reason: "an alias without versions becomes ids, and its family stays", terms: []awsv1.AMISelectorTerm{{Alias: "windows2022@latest"}}, images: named("Windows_Server-2022-English-Core-EKS_Optimized-1.34-2026.01.01"), want: []awsv1.AMISelectorTerm{{ID: "ami-b"}}, family: "Windows2022"},
		"Mixed":        {reason: "images of several versions as well", terms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}, images: named("a-v20260101", "b-v20260202"), want: []awsv1.AMISelectorTerm{{ID: "ami-a"}, {ID: "ami-b"}}, family: "AL2023"},
		"Tags":         {reason: "tags may choose others", terms: []awsv1.AMISelectorTerm{{Tags: map[string]string{"a": "b"}}}, images: named("x"), want: []awsv1.AMISelectorTerm{{ID: "ami-b"}}},
		"Unknown":      {reason: "without a record the terms stay", terms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}, want: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := awsv1.EC2NodeClassSpec{AMISelectorTerms: test.terms}
			pin(&spec, test.images)
			family := ""
			if spec.AMIFamily != nil {
				family = *spec.AMIFamily
			}
			if diff := cmp.Diff(test.want, spec.AMISelectorTerms); diff != "" || family != test.family {
				t.Errorf("%s: family %q, %s", test.reason, family, diff)
			}
		})
	}
}
