package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// askAgain is the interval at which a cluster that does not serve an optional resource is asked again, unanswered the
// one after a request that failed.
const (
	askAgain   = 30 * time.Second
	unanswered = 2 * time.Second
)

// A resource that is not served or not needed is idle: its feed is empty and not watched, and counts as current.

// whenNeeded makes the last opened feed wait until it is needed, and returns the function that says so; call that
// function with the mirror's lock held.
func (w *watches) whenNeeded() (need func()) {
	last := &w.all[len(w.all)-1]
	needed, run := make(chan struct{}), last.run
	pulse := last.pulse
	pulse.idle = true
	last.run = func(ctx context.Context) {
		select {
		case <-needed:
			run(ctx)
		case <-ctx.Done():
		}
	}
	return func() {
		if pulse.idle {
			pulse.idle = false
			close(needed)
		}
	}
}

// whenServed makes the last opened feed run only while the cluster serves its resource.
func (w *watches) whenServed(gv schema.GroupVersion, empty func()) {
	client, err := w.clients.client(gv)
	if err != nil {
		return // open has kept the error
	}
	last := &w.all[len(w.all)-1]
	pulse, run := last.pulse, last.run
	last.run = func(ctx context.Context) {
		for said := false; ctx.Err() == nil; {
			served, err := serves(ctx, client, gv, pulse.resource)
			switch {
			case err != nil:
				if ctx.Err() == nil {
					w.log.Warn("cannot find out whether an optional resource is served", zap.String("resource", pulse.resource), zap.Error(err))
				}
				w.pause(ctx, unanswered)
			case !served:
				if !said {
					w.log.Info("an optional resource is not served by this cluster; it is looked for again from time to time", zap.String("resource", pulse.resource))
					said = true
				}
				w.rest(pulse, empty)
				w.pause(ctx, askAgain)
			default:
				while, stop := context.WithCancel(ctx)
				w.mu.Lock()
				pulse.idle, pulse.unserved = false, stop
				w.mu.Unlock()
				run(while)
				stop()
				said = false
			}
		}
	}
}

// rest empties the feed of a resource that is not served.
func (w *watches) rest(pulse *pulse, empty func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !pulse.idle {
		pulse.idle, pulse.version = true, ""
		empty()
		w.publish(Event{Kind: synchronized})
	}
}

func (w *watches) pause(ctx context.Context, d time.Duration) {
	timer := w.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// serves asks the API server whether it serves a resource.
func serves(ctx context.Context, client rest.Interface, gv schema.GroupVersion, resource string) (bool, error) {
	var list metav1.APIResourceList
	raw, err := client.Get().AbsPath("/apis", gv.Group, gv.Version).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return false, fmt.Errorf("resources of %s: %w", gv, err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource {
			return true, nil
		}
	}
	return false, nil
}
