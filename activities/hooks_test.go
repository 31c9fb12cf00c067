package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/hook"
	"github.com/tenon-sh/tenon/workflows"
)

// hookRuns is a HookRunner that fails those hooks for which it has an error.
type hookRuns struct {
	fails map[string]error
	ran   []string
}

func (r *hookRuns) Run(_ context.Context, h karpv1.Hook, about hook.About) error {
	r.ran = append(r.ran, h.Name+" "+about.Node+" "+about.ProviderID)
	return r.fails[h.Name]
}

func TestHooks(t *testing.T) {
	t.Parallel()
	const (
		before = "[{name: a, when: BeforeDrain, http: {url: 'http://a'}}, {name: b, when: BeforeDrain, http: {url: 'http://b'}, failurePolicy: Fail}, {name: c, when: BeforeDrain, http: {url: 'http://c'}}]"
		after  = "[{name: up, when: AfterReady, http: {url: 'http://up'}, failurePolicy: Fail}]"
	)
	broken := errors.New("answers 503")
	for name, test := range map[string]struct {
		reason      string
		hooks, when string
		deadline    time.Duration
		done        []string
		fails       map[string]error
		ran         []string
		want        workflows.HookResult
		// events is how many Events there are: one for a hook, on the Node and on the NodeClaim.
		events int
	}{
		"All": {reason: "hooks run in their order", hooks: before, when: workflows.BeforeDrain, ran: []string{"a", "b", "c"}, want: workflows.HookResult{Finished: true, Done: []string{"a", "b", "c"}}, events: 6},
		"Again": {reason: "what is done is not done again", hooks: before, when: workflows.BeforeDrain, done: []string{"a"}, ran: []string{"b", "c"},
			want: workflows.HookResult{Finished: true, Done: []string{"a", "b", "c"}}, events: 4},
		"Ignored": {reason: "a failure that is ignored stops nothing", hooks: before, when: workflows.BeforeDrain, fails: map[string]error{"a": broken, "c": broken}, ran: []string{"a", "b", "c"},
			want: workflows.HookResult{Finished: true, Done: []string{"a", "b", "c"}}, events: 6},
		"Blocks": {reason: "one that matters keeps the node, and those after it wait", hooks: before, when: workflows.BeforeDrain, fails: map[string]error{"b": broken}, ran: []string{"a", "b"},
			want: workflows.HookResult{Done: []string{"a"}, Blockers: []workflows.Blocker{{Cause: "Hook", By: "b", Message: "answers 503"}}, Digest: "Hook b answers 503"}, events: 4},
		"Late":   {reason: "the pods need the last seconds before the deadline", hooks: before, when: workflows.BeforeDrain, deadline: 5 * time.Second, want: workflows.HookResult{Finished: true}, events: 2},
		"InTime": {reason: "a deadline that is far away changes nothing", hooks: before, when: workflows.BeforeDrain, deadline: time.Hour, ran: []string{"a", "b", "c"}, want: workflows.HookResult{Finished: true, Done: []string{"a", "b", "c"}}, events: 6},
		"Gone":   {reason: "hooks that were taken away stop nothing any more", when: workflows.BeforeDrain, want: workflows.HookResult{Finished: true}},
		"Misspelt": {reason: "what cannot be read keeps the node until it is corrected", hooks: "[{name: a, when: Before, http: {url: 'http://a'}}]", when: workflows.BeforeDrain,
			want: workflows.HookResult{Blockers: []workflows.Blocker{{Cause: "Hook", By: "tenon.sh/hooks", Message: `tenon.sh/hooks[0]: when: "Before" must be AfterReady or BeforeDrain`}},
				Digest: `Hook tenon.sh/hooks tenon.sh/hooks[0]: when: "Before" must be AfterReady or BeforeDrain`}, events: 2},
		"Up":          {reason: "a new node has its own hooks", hooks: after, when: workflows.AfterReady, ran: []string{"up"}, want: workflows.HookResult{Finished: true, Done: []string{"up"}}, events: 2},
		"UpFails":     {reason: "a node that must not serve is removed", hooks: after, when: workflows.AfterReady, fails: map[string]error{"up": broken}, ran: []string{"up"}, want: workflows.HookResult{Failed: "up"}, events: 2},
		"UpMisspelt":  {reason: "a node that serves is not removed for a typing error", hooks: "- x", when: workflows.AfterReady, want: workflows.HookResult{Finished: true}, events: 2},
		"UpAndBefore": {reason: "only the hooks of the point run", hooks: before, when: workflows.AfterReady, want: workflows.HookResult{Finished: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{karpv1.HooksAnnotationKey: test.hooks}}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}, Spec: corev1.NodeSpec{ProviderID: "aws:///a/i-1"}}
			runner, events := &hookRuns{fails: test.fails}, record.NewFakeRecorder(100)
			h := &hooker{cluster: "shop", objects: objects{pausableKube(t, pool, node)}, runner: runner, events: recorder{events}, log: zap.NewNop()}
			env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
			env.RegisterActivity(h.Hooks)
			in := workflows.HookInput{When: test.when, Node: "n1", NodeUID: "u1", Claim: "web-1", NodePool: "web", Done: test.done}
			if test.deadline > 0 {
				in.Deadline = time.Now().Add(test.deadline)
			}
			value, err := env.ExecuteActivity(h.Hooks, in)
			if err != nil {
				t.Fatal(err)
			}
			var got workflows.HookResult
			if err := value.Get(&got); err != nil {
				t.Fatal(err)
			}
			if blocked := len(got.Blockers) > 0; blocked == got.Again.IsZero() {
				t.Errorf("%s: the next try is at %v", test.reason, got.Again)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(workflows.HookResult{}, "Again")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			var ran []string
			for _, name := range test.ran {
				ran = append(ran, name+" n1 aws:///a/i-1")
			}
			if diff := cmp.Diff(ran, runner.ran); diff != "" {
				t.Errorf("%s: runs (-want +got):\n%s", test.reason, diff)
			}
			if len(events.Events) != test.events {
				t.Errorf("%s: %d Events, want %d", test.reason, len(events.Events), test.events)
			}
		})
	}
}
