package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

func TestAWorkerSaysThatTemporalIsAway(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	r, err := newReach(nil, registry, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	began := r.answered
	refused := errors.New("connection refused")
	for _, step := range []struct {
		reason string
		after  time.Duration
		err    error
		up     float64
		away   string
	}{
		{reason: "nobody has asked yet", after: 0, err: refused, up: 0, away: "connection refused"},
		{reason: "it answers", after: time.Second, up: 1, away: ""},
		{reason: "one answer that is missing means little", after: 6 * time.Second, err: refused, up: 1, away: ""},
		{reason: "some that are do", after: 17 * time.Second, err: refused, up: 0, away: "the Temporal server has not answered for 16s: connection refused"},
		{reason: "it stays away", after: 2 * time.Minute, err: context.DeadlineExceeded, up: 0, away: "deadline"},
		{reason: "it is back", after: 3 * time.Minute, up: 1, away: ""},
	} {
		now := began.Add(step.after)
		r.hear(step.err, now)
		said := ""
		if err := r.away(now); err != nil {
			said = err.Error()
		}
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatal(families, err)
		}
		if up := families[0].GetMetric()[0].GetGauge().GetValue(); up != step.up || (said == "") != (step.away == "") || !strings.Contains(said, step.away) {
			t.Errorf("%s: up %v, away %q, want %v and %q", step.reason, up, said, step.up, step.away)
		}
	}
	// From the last answer until Temporal is reported away: the time allowed, one interval, and one check that times out.
	if longest := awayAfter + askEvery + askFor; longest > 30*time.Second {
		t.Errorf("it takes %s to say that Temporal is away", longest)
	}
}

func TestAWorkerWaitsForTemporalOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(12 * time.Second)
		r, err := newReach(func(context.Context) error {
			if time.Now().Before(back) {
				return errors.New("away")
			}
			return nil
		}, prometheus.NewRegistry(), zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.run(ctx) }()
		waiting, give := context.WithTimeout(ctx, 11*time.Second)
		defer give()
		if err := r.await(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited for a server that is away: %v", err)
		}
		if err := r.await(ctx); err != nil || time.Since(back) > askEvery {
			t.Errorf("it was back %s ago, %v", time.Since(back), err)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}
