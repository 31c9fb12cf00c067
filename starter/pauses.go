package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
)

// The reasons of the Events on a NodePool about what people have stopped for it.
const (
	// eventPaused says what is paused for a NodePool, by whom, until when and why.
	eventPaused = "Paused"
	// eventResumed says that nothing is paused for it any more.
	eventResumed = "Resumed"
)

// stopped says what stops a kind of work for a NodePool now, as the mirror shows it; nil if nothing does.
func stopped(mirror Mirror, scope karpv1.PauseScope, pool string, now time.Time) *karpv1.Stop {
	return karpv1.StopOf(scope, mirror.Pauses(), mirror.NodePool(pool), now)
}

// closed says why a NodePool's nodes are not removed for a reason now: what it belongs to is paused, or no maintenance window
// is open for it; nil if they may be.
func closed(mirror Mirror, scope karpv1.PauseScope, reason karpv1.DisruptionReason, pool string, now time.Time) *karpv1.Stop {
	if stop := stopped(mirror, scope, pool, now); stop != nil {
		return stop
	}
	return mirror.Windows().Stop(reason, mirror.NodePool(pool), now)
}

// PauseMetrics shows what people have paused, and which maintenance windows are open. A nil one shows nothing.
type PauseMetrics struct{ paused, windows *prometheus.GaugeVec }

// NewPauseMetrics registers the metrics. Metrics that are already registered are reused.
func NewPauseMetrics(registry prometheus.Registerer) (*PauseMetrics, error) {
	m := &PauseMetrics{paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tenon", Name: "paused",
		Help: "1 for what is paused: provisioning, disruption or interruption, for a NodePool that is paused or only observed, or for the whole cluster, with an empty NodePool. Only the leader shows it."},
		[]string{"what", "nodepool"})}
	m.windows = newWindowGauge()
	return m, errors.Join(register(registry, &m.paused), register(registry, &m.windows))
}

// show replaces what the metrics show.
func (m *PauseMetrics) show(everywhere []karpv1.Pause, pools []*karpv1.NodePool, now time.Time) {
	if m == nil {
		return
	}
	m.paused.Reset()
	for _, scope := range karpv1.PauseScopes() {
		if karpv1.StopOf(scope, everywhere, nil, now) != nil {
			m.paused.WithLabelValues(string(scope), "").Set(1)
		}
		for _, pool := range pools {
			if karpv1.StopOf(scope, nil, pool, now) != nil {
				m.paused.WithLabelValues(string(scope), pool.Name).Set(1)
			}
		}
	}
}

// pauses tells people what is paused, and which maintenance windows are open: by Events on NodePools, once for each change, and by metrics.
type pauses struct {
	mirror  Mirror
	events  record.EventRecorder
	metrics *PauseMetrics
	// said is what the last Event on each NodePool said.
	said map[string]string
	// windows is what the last Event on each NodePool said about its maintenance windows.
	windows map[string]windowState
}

// watch tells people of every change until ctx ends. The mirror announces also the end of a pause.
func (p *pauses) watch(ctx context.Context) error {
	events := p.mirror.Subscribe(cluster.PausesChanged)
	defer events.Close()
	for {
		p.tell(time.Now())
		awaitEvents(ctx, events, 0)
		if ctx.Err() != nil {
			p.metrics.show(nil, nil, time.Time{})
			p.tellWindows(nil, time.Time{})
			return ctx.Err()
		}
	}
}

// tell records an Event on each NodePool for which something else is stopped than last time, and shows the metrics.
func (p *pauses) tell(now time.Time) {
	everywhere, pools := p.mirror.Pauses(), p.mirror.Snapshot().NodePools
	p.metrics.show(everywhere, pools, now)
	p.tellWindows(pools, now)
	said := map[string]string{}
	for _, pool := range pools {
		text := stopsOf(everywhere, pool, now)
		if text != "" {
			said[pool.Name] = text
		}
		if p.events == nil || text == p.said[pool.Name] {
			continue
		}
		about := &corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID}
		if text == "" {
			p.events.Event(about, corev1.EventTypeNormal, eventResumed, "nothing is paused any more")
		} else {
			p.events.Event(about, corev1.EventTypeNormal, eventPaused, text)
		}
	}
	p.said = said
}

// stopsOf says what is stopped for a NodePool; empty if nothing is.
func stopsOf(everywhere []karpv1.Pause, pool *karpv1.NodePool, now time.Time) string {
	var texts []string
	for _, scope := range karpv1.PauseScopes() {
		if stop := karpv1.StopOf(scope, everywhere, pool, now); stop != nil && !slices.Contains(texts, stop.String()) {
			texts = append(texts, stop.String())
		}
	}
	return strings.Join(texts, "; ")
}

// errHeld is why a held interruption cannot be read.
var errHeld = errors.New("must be kinds, each with a time, such as SpotInterruption@2026-01-02T15:04:05Z")

// heldInterruption is an announcement of the cloud that waits for the end of a pause.
type heldInterruption struct {
	kind string
	at   time.Time
}

// readHeld reads the announcements that wait on a claim, the oldest first.
func readHeld(text string) ([]heldInterruption, error) {
	var all []heldInterruption
	if text == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		kind, when, _ := strings.Cut(entry, "@")
		at, err := time.Parse(time.RFC3339, when)
		if err != nil {
			return all, fmt.Errorf("%q %w", entry, errHeld)
		}
		all = append(all, heldInterruption{kind, at})
	}
	slices.SortStableFunc(all, func(a, b heldInterruption) int { return a.at.Compare(b.at) })
	return all, nil
}

// holding returns the announcements that wait on a claim with one more, unless that kind waits already.
func holding(text, kind string, at time.Time) string {
	held, err := readHeld(text)
	if err == nil && slices.ContainsFunc(held, func(h heldInterruption) bool { return h.kind == kind }) {
		return text
	}
	entry := kind + "@" + at.UTC().Format(time.RFC3339)
	if text == "" || err != nil {
		return entry
	}
	return text + "," + entry
}
