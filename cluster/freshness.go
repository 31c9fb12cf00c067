package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
)

// StaleError means that the mirror is too old to act on.
type StaleError struct {
	// Age is how long ago the mirror was last known to be complete; math.MaxInt64 when it never was.
	Age time.Duration
	// Cause names the resource whose watch is behind, or says how the API server's readiness check failed.
	Cause string
}

// Error implements error.
func (e *StaleError) Error() string {
	if e.Age == math.MaxInt64 {
		return "the view of the cluster is not complete yet: " + e.Cause
	}
	return fmt.Sprintf("the view of the cluster is %s old: %s", e.Age.Round(time.Millisecond), e.Cause)
}

// freshness is the age of the mirror, as the heartbeat and the watches tell it.
type freshness struct {
	*shared
	log       *zap.Logger
	heartbeat time.Duration
	clients   *clients
	watches   *watches
	// heard is when the last successful heartbeat was sent; unheard is why the last one failed, if it did.
	heard   time.Time
	unheard error
}

// Staleness returns how long ago the mirror was last known to show the current state, or math.MaxInt64 if it never was.
func (f *freshness) Staleness() time.Duration {
	age, _ := f.staleness()
	return age
}

// Fresh returns nil if the mirror is not older than most, and a *StaleError otherwise.
func (f *freshness) Fresh(most time.Duration) error {
	if age, cause := f.staleness(); age > most {
		return &StaleError{Age: age, Cause: cause}
	}
	return nil
}

// staleness finds the oldest of the facts that make the mirror current, and names it.
func (f *freshness) staleness() (time.Duration, string) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	now := f.clock.Now()
	if f.heard.IsZero() {
		return math.MaxInt64, "the API server has not answered yet" + because(f.unheard)
	}
	oldest, cause := f.heard, "the API server has not answered since"+because(f.unheard)
	for _, watched := range f.watches.all {
		if watched.pulse.idle {
			continue
		}
		if !watched.pulse.synced() {
			return math.MaxInt64, watched.pulse.resource + " are not listed yet"
		}
		if asOf := watched.pulse.asOf(now); asOf.Before(oldest) {
			oldest, cause = asOf, "the watch of "+watched.pulse.resource+" is interrupted"
		}
	}
	return max(now.Sub(oldest), 0), cause
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// WaitSynced waits until every resource has been listed once and the API server has answered a heartbeat.
func (f *freshness) WaitSynced(ctx context.Context) error {
	if err := f.Await(ctx, func() (bool, error) { return f.Staleness() < math.MaxInt64, nil }, Event{Kind: synchronized}); err != nil {
		_, cause := f.staleness()
		return fmt.Errorf("wait for the view of the cluster: %s: %w", cause, err)
	}
	return nil
}

// beat asks the API server regularly whether it is ready, over the connection that the watches use.
func (f *freshness) beat(ctx context.Context) error {
	url, _, err := rest.DefaultServerUrlFor(f.clients.config)
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	target := strings.TrimSuffix(url.String(), "/") + "/readyz"
	ticker := f.clock.NewTicker(f.heartbeat)
	defer ticker.Stop()
	for {
		sent := f.clock.Now()
		err := f.beatOnce(ctx, target)
		f.mu.Lock()
		first := err == nil && f.heard.IsZero()
		recovered, lost := err == nil && f.unheard != nil, err != nil && f.unheard == nil
		f.unheard = err
		if err == nil {
			f.heard = sent
		}
		f.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case lost:
			f.log.Warn("the API server does not answer", zap.Error(err))
		case recovered:
			f.log.Info("the API server answers again")
		}
		if first {
			f.publish(Event{Kind: synchronized})
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *freshness) beatOnce(ctx context.Context, target string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, f.heartbeat)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	response, err := f.clients.http.Do(request)
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("heartbeat: the API server is not ready: %s", response.Status)
	}
	return nil
}
