package worker

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// TestFenceClosesForOthers passes the Lease from holder to holder, and makes the API server unreachable: the worker acts
// only while Tenon certainly holds the Lease.
func TestFenceClosesForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var deaf error
		fence, err := newFence(func(most time.Duration) error {
			if most > 15*time.Second {
				t.Errorf("a view %s old says nothing of who holds a Lease of 15 s", most)
			}
			return deaf
		}, prometheus.NewRegistry(), zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		acting := 0
		ended := make(chan error, 1)
		go func() {
			ended <- fence.run(ctx, func(ctx context.Context) error {
				acting++
				defer func() { acting-- }()
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		for _, step := range []struct {
			reason, holder string
			deaf           error
			want           int
		}{
			{reason: "nobody is known to hold the Lease", holder: "", want: 0},
			{reason: "another replica holds it", holder: "tenon_b", want: 1},
			{reason: "this one does", holder: "tenon_a", want: 1},
			{reason: "Karpenter has taken it", holder: "karpenter-7d9f_1b2c", want: 0},
			{reason: "and has given it back", holder: "tenon_b", want: 1},
			{reason: "the API server is not heard, so nobody knows", holder: "tenon_b", deaf: errors.New("the API server does not answer"), want: 0},
			{reason: "it answers again", holder: "tenon_b", want: 1},
			{reason: "the holder has let it go", holder: "", want: 0},
		} {
			fence.see(step.holder, time.Now())
			deaf = step.deaf
			time.Sleep(2 * fenceEvery)
			synctest.Wait()
			if acting != step.want {
				t.Errorf("%s: %d of it acts, want %d", step.reason, acting, step.want)
			}
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestFenceReturnsWhatFails makes the work itself fail: the worker ends, and is restarted.
func TestFenceReturnsWhatFails(t *testing.T) {
	t.Parallel()
	fence, err := newFence(func(time.Duration) error { return nil }, prometheus.NewRegistry(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	fence.see("tenon_a", time.Now())
	broken := errors.New("the namespace is gone")
	if err := fence.run(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
}

// TestNothingIsWrittenWithoutTheLease sends requests while the Lease is Tenon's, another's, and no longer certainly Tenon's:
// a process that was suspended resumes with what it was about to write.
func TestNothingIsWrittenWithoutTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fence, err := newFence(func(time.Duration) error { return nil }, prometheus.NewRegistry(), zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		transport := fence.guard(roundTrip(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))
		for _, step := range []struct {
			reason, holder, method string
			after                  time.Duration
			want                   int
		}{
			{reason: "nobody is known to hold the Lease", holder: "", method: http.MethodPost, after: 0, want: 0},
			{reason: "this replica holds it", holder: "tenon_a", method: http.MethodPost, after: 0, want: 1},
			{reason: "another one does", holder: "tenon_b", method: http.MethodPatch, after: 10 * time.Second, want: 1},
			{reason: "Karpenter holds it", holder: "karpenter-7d9f_1b2c", method: http.MethodDelete, after: 0, want: 0},
			{reason: "reading is for everybody", holder: "karpenter-7d9f_1b2c", method: http.MethodGet, after: 0, want: 1},
			{reason: "this process has slept", holder: "tenon_a", method: http.MethodPut, after: 15 * time.Second, want: 0},
		} {
			fence.see(step.holder, time.Now())
			time.Sleep(step.after)
			sent = 0
			request, err := http.NewRequest(step.method, "https://127.0.0.1/api/v1/nodes", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(request)
			if sent != step.want || (err == nil) != (sent == 1) {
				t.Errorf("%s: %d requests were sent, want %d: %v", step.reason, sent, step.want, err)
			}
			if err != nil {
				continue
			}
			if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
				t.Errorf("%s: %d", step.reason, response.StatusCode)
			}
		}
	})
}

// roundTrip answers requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
