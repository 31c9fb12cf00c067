package hook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestAllowedURLs(t *testing.T) {
	t.Parallel()
	r, err := New(Allowed{URLs: []string{"https://hooks.example.com/nodes/", "http://10.0.0.1:8080"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, test := range map[string]struct {
		reason string
		want   bool
	}{
		"https://hooks.example.com/nodes":              {"the beginning itself", true},
		"https://hooks.example.com/nodes/up?x=1":       {"what is below it", true},
		"https://hooks.example.com/nodes-of-others":    {"another path that begins with the same letters", false},
		"https://hooks.example.com/nodes/../secrets":   {"a path that leads out", false},
		"https://hooks.example.com/nodes/%2e%2e/admin": {"the same, written otherwise", false},
		"http://hooks.example.com/nodes/up":            {"another scheme", false},
		"https://hooks.example.com:444/nodes/up":       {"another port", false},
		"https://hooks.example.com.evil.org/nodes/up":  {"another host", false},
		"https://me@hooks.example.com/nodes/up":        {"no credentials in addresses", false},
		"http://10.0.0.1:8080/any/thing":               {"a host alone allows all its paths", true},
		"http://169.254.169.254/latest":                {"what nobody has allowed", false},
	} {
		if got := r.mayCall(address); got != test.want {
			t.Errorf("%s: %s: %t, want %t", test.reason, address, got, test.want)
		}
	}
	if _, err := New(Allowed{URLs: []string{"hooks.example.com"}}, nil); err == nil {
		t.Error("an address without a scheme is accepted")
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	about := About{Cluster: "shop", Node: "n1", NodeUID: "u1", Claim: "web-1", NodePool: "web", ProviderID: "aws:///a/i-1", Reason: "Drifted"}
	for name, test := range map[string]struct {
		reason  string
		answers []int
		// calls is how often the server is called, and err a part of the error.
		calls int
		err   string
	}{
		"Success":   {reason: "any 2xx is a success", answers: []int{204}, calls: 1},
		"Recovered": {reason: "what may pass is tried again", answers: []int{503, 429, 200}, calls: 3},
		"Refused":   {reason: "a refusal does not change", answers: []int{403}, calls: 1, err: `answers 403 Forbidden: "because of 403"`},
		"Redirect":  {reason: "a redirect could lead anywhere, and is no success", answers: []int{302, 302, 200}, calls: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				body, _ := io.ReadAll(request.Body)
				var told About
				want := about
				want.Hook, want.When = "tell", karpv1.BeforeDrain
				if err := json.Unmarshal(body, &told); err != nil || told != want || request.Header.Get("Idempotency-Key") != "u1/BeforeDrain/tell" || request.Method != http.MethodPost {
					t.Errorf("%s %s: %s (%v)", request.Method, request.Header.Get("Idempotency-Key"), body, err)
				}
				status := test.answers[calls.Add(1)-1]
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, "because of %d", status)
			}))
			defer server.Close()
			r, err := New(Allowed{URLs: []string{server.URL}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = r.Run(t.Context(), karpv1.Hook{Name: "tell", When: karpv1.BeforeDrain, HTTP: &karpv1.HTTPHook{URL: server.URL + "/hook"}}, about)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) || int(calls.Load()) != test.calls {
				t.Errorf("%s: %v after %d calls, want %q after %d", test.reason, err, calls.Load(), test.err, test.calls)
			}
		})
	}
}

// A hook has its time, however often it is tried.
func TestCallTakesTooLong(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer server.Close()
	r, err := New(Allowed{URLs: []string{server.URL}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(t.Context(), karpv1.Hook{Name: "slow", When: karpv1.AfterReady, Timeout: &metav1.Duration{Duration: 50 * time.Millisecond}, HTTP: &karpv1.HTTPHook{URL: server.URL}}, About{})
	if err == nil || !strings.Contains(err.Error(), "it took longer than 50ms") || !strings.Contains(err.Error(), "502") {
		t.Errorf("%v, want the time and the last answer", err)
	}
}

func TestNotAllowed(t *testing.T) {
	t.Parallel()
	r, err := New(Allowed{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for flag, h := range map[string]karpv1.Hook{"--hook-url": {HTTP: &karpv1.HTTPHook{URL: "http://127.0.0.1:1"}}, "--hook-job-namespace": {Job: &karpv1.JobHook{Namespace: "ops", CronJob: "dump"}}} {
		if err := r.Run(t.Context(), h, About{}); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%v, want one that names %s", err, flag)
		}
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	about := About{Cluster: "shop", Node: "n1", NodeUID: "u1", Claim: "web-1", NodePool: "web", Reason: "Drifted"}
	h := karpv1.Hook{Name: "dump", When: karpv1.BeforeDrain, Timeout: &metav1.Duration{Duration: 5 * time.Minute}, Job: &karpv1.JobHook{Namespace: "ops", CronJob: "dump", OnNode: true}}
	template := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "dump"}}
	template.Spec.JobTemplate.Labels = map[string]string{"team": "ops"}
	template.Spec.JobTemplate.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "dump", Env: []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}}}
	for name, test := range map[string]struct {
		reason string
		ends   batchv1.JobConditionType
		err    string
	}{
		"Complete": {reason: "a Job that completes is a success", ends: batchv1.JobComplete},
		"Failed":   {reason: "one that fails is not tried again: it has tries of its own", ends: batchv1.JobFailed, err: "BackoffLimitExceeded"},
		"Slow":     {reason: "one that does not end has its time", err: "it took longer than 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(template.DeepCopy()).WithStatusSubresource(&batchv1.Job{}).Build()
				r, err := New(Allowed{JobNamespaces: []string{"ops"}}, kube)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- r.Run(t.Context(), h, about) }()
				time.Sleep(time.Second)
				var jobs batchv1.JobList
				if err := kube.List(t.Context(), &jobs, client.InNamespace("ops")); err != nil || len(jobs.Items) != 1 {
					t.Fatalf("%d Jobs, %v", len(jobs.Items), err)
				}
				job := &jobs.Items[0]
				pod := job.Spec.Template.Spec
				env := map[string]string{}
				for _, v := range pod.Containers[0].Env {
					env[v.Name] = v.Value
				}
				want := map[string]string{"LEVEL": "1", "TENON_HOOK": "dump", "TENON_WHEN": "BeforeDrain", "TENON_CLUSTER": "shop", "TENON_NODE": "n1", "TENON_NODECLAIM": "web-1",
					"TENON_NODEPOOL": "web", "TENON_PROVIDER_ID": "", "TENON_REASON": "Drifted", "TENON_DEADLINE": ""}
				if diff := cmp.Diff(want, env); diff != "" {
					t.Errorf("the environment (-want +got):\n%s", diff)
				}
				if pod.NodeName != "n1" || job.Labels["team"] != "ops" || job.Labels[hookLabel] != "dump" || *job.Spec.ActiveDeadlineSeconds != 300 || *job.Spec.TTLSecondsAfterFinished != keepJob {
					t.Errorf("%+v", job)
				}
				if test.ends != "" {
					job.Status.Conditions = []batchv1.JobCondition{{Type: test.ends, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}
					if err := kube.Status().Update(t.Context(), job); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-ended; test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("%s: %v, want %q", test.reason, err, test.err)
				}
				// A worker that takes over after another has died finds the Job.
				if test.ends == batchv1.JobComplete {
					if err := r.Run(t.Context(), h, about); err != nil {
						t.Error(err)
					}
					if err := kube.List(t.Context(), &jobs); err != nil || len(jobs.Items) != 1 {
						t.Errorf("%d Jobs after a second run, %v", len(jobs.Items), err)
					}
				}
			})
		})
	}
}

func TestNoCronJob(t *testing.T) {
	t.Parallel()
	r, err := New(Allowed{JobNamespaces: []string{"ops"}}, fake.NewClientBuilder().WithScheme(scheme.Scheme).Build())
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(t.Context(), karpv1.Hook{Name: "dump", Job: &karpv1.JobHook{Namespace: "ops", CronJob: "dump"}}, About{})
	if err == nil || !strings.Contains(err.Error(), "get CronJob ops/dump") {
		t.Errorf("%v, want one that names the CronJob", err)
	}
}
