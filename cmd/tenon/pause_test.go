package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/worker"
)

// paused returns the command against an API server that knows the person as who, or refuses to say if that is empty.
func paused(now *time.Time, who string) *pauseCommand {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	direct := fake.NewClientBuilder().WithScheme(worker.Scheme()).WithObjects(pool).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to kube.WithWatch, object kube.Object, options ...kube.CreateOption) error {
			review, asks := object.(*authenticationv1.SelfSubjectReview)
			switch {
			case !asks:
				return to.Create(ctx, object, options...)
			case who == "":
				return errors.New("forbidden")
			}
			review.Status.UserInfo.Username = who
			return nil
		},
	}).Build()
	return &pauseCommand{kube: direct, now: func() time.Time { return *now }, out: &bytes.Buffer{}, json: true}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := paused(&now, "alice")
	shown := func(err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out := p.out.(*bytes.Buffer)
		defer out.Reset()
		var listed []view.Pause
		if err := json.Unmarshal(out.Bytes(), &listed); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, l := range listed {
			words = append(words, strings.Join([]string{l.NodePool, string(l.What), l.By, l.Reason, when(l.Until, "-")}, " "))
		}
		return strings.Join(words, "; ")
	}
	ctx := t.Context()
	for _, step := range []struct {
		reason string
		do     func() error
		want   string
	}{
		{"nothing is paused at first", func() error { return p.list(ctx) }, ""},
		{"a pause names its author", func() error {
			return p.pause(ctx, "disruption", pauseFlags{reason: "peak", lasts: time.Hour})
		}, " disruption alice peak 2026-01-02T04:04:05Z"},
		{"a second one takes its place", func() error { return p.pause(ctx, "disruption", pauseFlags{reason: "still"}) }, " disruption alice still -"},
		{"a NodePool has its own", func() error {
			return p.pause(ctx, "provisioning", pauseFlags{reason: "driver", pool: "gpu", lasts: time.Hour})
		},
			" disruption alice still -; gpu provisioning alice driver 2026-01-02T04:04:05Z"},
		{"the cluster's is resumed", func() error { return p.resume(ctx, "all", pauseFlags{}) }, "gpu provisioning alice driver 2026-01-02T04:04:05Z"},
		{"the NodePool's ends by itself", func() error { now = now.Add(time.Hour); return p.list(ctx) }, ""},
		{"what is not paused may be resumed", func() error { return p.resume(ctx, "interruption", pauseFlags{pool: "gpu"}) }, ""},
	} {
		if got := shown(step.do()); got != step.want {
			t.Errorf("%s: got %q, want %q", step.reason, got, step.want)
		}
	}
	var pool karpv1.NodePool
	if err := p.kube.Get(ctx, kube.ObjectKey{Name: "gpu"}, &pool); err != nil || len(pool.Annotations) != 0 {
		t.Errorf("the NodePool keeps %v, %v", pool.Annotations, err)
	}
}

func TestPauseMistakes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		reason, who, what string
		flags             pauseFlags
		want              string
	}{
		"What":     {reason: "a word that means nothing", who: "alice", what: "everything", flags: pauseFlags{reason: "r"}, want: `"everything" must be provisioning, disruption, interruption or all`},
		"NoReason": {reason: "nobody would know why", who: "alice", what: "all", want: "--reason: say why"},
		"Past":     {reason: "a pause that is over", who: "alice", what: "all", flags: pauseFlags{reason: "r", lasts: -time.Hour}, want: "--for -1h0m0s: must be positive"},
		"NoPool":   {reason: "a NodePool that is not there", who: "alice", what: "all", flags: pauseFlags{reason: "r", pool: "cpu"}, want: "--pool cpu: "},
		"NoAuthor": {reason: "a pause without an author is not written", what: "all", flags: pauseFlags{reason: "r"}, want: "ask the API server who you are: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := paused(&now, test.who)
			err := p.pause(t.Context(), test.what, test.flags)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.reason, err, test.want)
			}
			if all, err := p.inForce(t.Context()); err != nil || len(all) != 0 {
				t.Errorf("%s: paused %v, %v", test.reason, all, err)
			}
		})
	}
}
