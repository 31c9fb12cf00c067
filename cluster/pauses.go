package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// pauses are what people have paused in the whole cluster. What is paused for a NodePool is in its annotations.
type pauses struct {
	*shared
	pools  *feed[*karpv1.NodePool]
	claims *feed[*promised]
	// windows are the maintenance windows of the whole cluster, which a worker is told.
	windows karpv1.MaintenanceWindows
	// feed is nil where they are not watched.
	feed *feed[*pauseList]
}

// pauseList is the ConfigMap of pauses, reduced to what it says.
type pauseList struct {
	name   string
	pauses []karpv1.Pause
}

func (l *pauseList) key() string { return l.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (l *pauseList) GetObjectMeta() metav1.Object { return named("", l.name) }

// newPauses prepares the watch of the one ConfigMap, if follow is set.
func newPauses(w *watches, follow bool, windows karpv1.MaintenanceWindows, pools *feed[*karpv1.NodePool], claims *feed[*promised]) *pauses {
	p := &pauses{shared: w.shared, pools: pools, claims: claims, windows: windows}
	if follow {
		only := fields.OneTermEqualSelector(metav1.ObjectNameField, karpv1.PauseConfigMapName)
		p.feed = openIn(w, corev1.SchemeGroupVersion, "configmaps", karpv1.PauseNamespace, &corev1.ConfigMap{}, only, reducePauses, (*pauseList).key, p.pausesChanged)
	}
	return p
}

func reducePauses(_ *plan.Interner, obj any) (*pauseList, error) {
	from, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return nil, unexpected(from, obj)
	}
	return &pauseList{name: from.Name, pauses: karpv1.ReadPauses(from.Data[karpv1.PauseConfigMapKey])}, nil
}

func (p *pauses) pausesChanged(_, _ *pauseList, _, _ bool) {
	p.changed()
	p.publish(Event{Kind: PausesChanged})
}

// Pauses returns what people have paused in the whole cluster, also pauses that are over.
func (p *pauses) Pauses() []karpv1.Pause {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.now()
}

// Windows returns the maintenance windows of the whole cluster.
func (p *pauses) Windows() karpv1.MaintenanceWindows { return p.windows }

// now returns what people have paused in the whole cluster. The lock is held.
func (p *pauses) now() []karpv1.Pause {
	if p.feed == nil {
		return nil
	}
	var all []karpv1.Pause
	for _, list := range p.feed.items {
		all = append(all, list.pauses...)
	}
	return all
}

// announceChanges announces what pauses begin and end to stop, and which maintenance windows open and close, until ctx ends.
// Both come without any change in the API server, and whoever has waited for it has to look again.
func (p *pauses) announceChanges(ctx context.Context) {
	subscription := p.Subscribe(PausesChanged, PoolChanged)
	defer subscription.Close()
	last, ends := p.inForce()
	for {
		if wait := p.until(ends); wait > 0 {
			timer := p.clock.NewTimer(wait)
			select {
			case <-subscription.C:
				subscription.Take()
			case <-timer.C():
			case <-ctx.Done():
			}
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
		var now string
		if now, ends = p.inForce(); now != last {
			last = now
			p.announce()
		}
	}
}

// noEnd is how long announceChanges waits where no pause ends by itself.
const noEnd = 24 * time.Hour

func (p *pauses) until(ends time.Time) time.Duration {
	if ends.IsZero() {
		return noEnd
	}
	return max(ends.Sub(p.clock.Now()), 0)
}

// inForce describes what is stopped now, and says when the first pause ends or the first window opens or closes; zero if none
// does.
func (p *pauses) inForce() (stops string, ends time.Time) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	now, everywhere := p.clock.Now(), p.now()
	var text strings.Builder
	note := func(of string, all []karpv1.Pause) {
		for _, pause := range all {
			if !pause.Holds(pause.What, now) {
				continue
			}
			fmt.Fprintf(&text, "%s %s\n", of, pause.What)
			if !pause.Until.IsZero() && (ends.IsZero() || pause.Until.Before(ends)) {
				ends = pause.Until
			}
		}
	}
	note("", everywhere)
	for _, pool := range sorted(p.pools.items) {
		note(pool.Name, pool.Pauses())
		if pool.Observed() {
			fmt.Fprintf(&text, "%s observed\n", pool.Name)
		}
		if state := p.windows.State(pool, now); state != nil {
			fmt.Fprintf(&text, "%s closed for %v, open for %v: %s\n", pool.Name, state.Closed, state.Open, state.Problem)
			if !state.Changes.IsZero() && (ends.IsZero() || state.Changes.Before(ends)) {
				ends = state.Changes
			}
		}
	}
	return text.String(), ends
}

// announce publishes a change of all NodePools, and of the claims that may have waited for the end of a pause: those
// without an instance, and those whose interruption was announced.
func (p *pauses) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed()
	p.publish(Event{Kind: PausesChanged})
	for name := range p.pools.items {
		p.publish(Event{Kind: PoolChanged, Name: name})
		p.publish(Event{Kind: PoolEdited, Name: name})
	}
	waits := []string{karpv1.HeldInterruptionsAnnotationKey, karpv1.InterruptionAnnotationKey}
	for name, item := range p.claims.items {
		claim := item.claim
		if claim.Status.ProviderID == "" || slices.ContainsFunc(waits, func(key string) bool { return claim.Annotations[key] != "" }) {
			p.publish(Event{Kind: ClaimChanged, Name: name})
		}
	}
}
