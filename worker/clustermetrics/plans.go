package clustermetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
)

// forgetAfter is how long a pod is remembered that was planned and never started.
const forgetAfter = 24 * time.Hour

// Plans measures how long pods take from the first plan that has a place for them. It knows only the plans of this process.
type Plans struct {
	decided, bound, started *prometheus.HistogramVec
	unbound, unstarted      *prometheus.Desc

	mu sync.Mutex
	// placed are the pods with a place that do not serve yet; seen are those that a plan has looked at, by when.
	placed map[types.UID]placed
	seen   map[types.UID]time.Time
}

// placed is a pod that has got a place.
type placed struct {
	namespace, name string
	at              time.Time
	bound           bool
}

// NewPlans makes the metrics in a set.
func NewPlans(set *metrics.Set) *Plans {
	p := &Plans{
		decided: set.Histogram("karpenter_pods_scheduling_decision_duration_seconds"),
		bound:   set.Histogram("karpenter_pods_provisioning_bound_duration_seconds"),
		started: set.Histogram("karpenter_pods_provisioning_startup_duration_seconds"),
		unbound: metrics.Desc("karpenter_pods_provisioning_unbound_time_seconds"), unstarted: metrics.Desc("karpenter_pods_provisioning_unstarted_time_seconds"),
		placed: map[types.UID]placed{}, seen: map[types.UID]time.Time{},
	}
	set.Collect(metrics.Every, p)
	return p
}

// Planned records which of the pending pods a plan has a place for.
func (p *Plans) Planned(pending []*plan.Pod, unplaced []plan.Unplaced, now time.Time) {
	without := make(map[types.UID]bool, len(unplaced))
	for i := range unplaced {
		without[unplaced[i].Pod.UID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, at := range p.seen {
		if now.Sub(at) > forgetAfter {
			delete(p.seen, uid)
			delete(p.placed, uid)
		}
	}
	for _, pod := range pending {
		if pod.Virtual || !pod.Provisionable() {
			continue
		}
		if _, known := p.seen[pod.UID]; !known {
			p.seen[pod.UID] = now
			p.decided.WithLabelValues().Observe(now.Sub(pod.Created).Seconds())
		}
		if _, known := p.placed[pod.UID]; !known && !without[pod.UID] {
			p.placed[pod.UID] = placed{namespace: pod.Namespace, name: pod.Name, at: now}
		}
	}
}

// podChanged measures a pod that is bound or starts.
func (p *Plans) podChanged(old, now cluster.PodSeen) {
	pod := now
	if now.Pod == nil || old.Pod != nil && old.UID != now.UID {
		pod = old
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known, is := p.placed[pod.UID]
	switch {
	case pod.Pod == old.Pod:
		delete(p.placed, pod.UID)
		delete(p.seen, pod.UID)
	case is && pod.ReadySince != 0:
		if !known.bound {
			p.bound.WithLabelValues().Observe(max(0, time.Unix(pod.Bound, 0).Sub(known.at).Seconds()))
		}
		p.started.WithLabelValues().Observe(max(0, time.Unix(pod.ReadySince, 0).Sub(known.at).Seconds()))
		delete(p.placed, pod.UID)
	case is && pod.Bound != 0 && !known.bound:
		p.bound.WithLabelValues().Observe(max(0, time.Unix(pod.Bound, 0).Sub(known.at).Seconds()))
		known.bound = true
		p.placed[pod.UID] = known
	}
}

// Describe implements prometheus.Collector.
func (p *Plans) Describe(to chan<- *prometheus.Desc) {
	to <- p.unbound
	to <- p.unstarted
}

// Collect implements prometheus.Collector.
func (p *Plans) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range p.placed {
		labels := []*dto.LabelPair{pair("name", pod.name), pair("namespace", pod.namespace)}
		if !pod.bound {
			to <- gauge(p.unbound, now.Sub(pod.at).Seconds(), labels...)
		}
		to <- gauge(p.unstarted, now.Sub(pod.at).Seconds(), labels...)
	}
}
