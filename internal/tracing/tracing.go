// Package tracing exports one trace per node: from the creation of the pods that it was launched for, over plan, launch,
// registration and initialization, until they are bound to it.
//
// No part of the work emits spans while it runs. Temporal's histories and the conditions of objects say when everything
// happened, so the trace is made of them once the node serves; its ids follow from the claim's UID. That needs no state and
// no context that is passed on: a crash loses no span, a retry and a replay make no second one, and whoever exports a trace
// twice exports the same one. An interceptor of Temporal's would have traced workflows instead: one Provisioning that plans
// for all pods, for ever, and lives that last for weeks.
//
// Reading order: spans, ids, exporter, histories, tracing.
package tracing

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// lookEvery is how often claims are looked at.
	lookEvery = 5 * time.Second
	// settle is how long after its node serves a claim is exported: by then the kube-scheduler has bound its pods.
	settle = 10 * time.Second
	// tracedFor is how long after its node serves a claim is still exported, by a leader that has just begun or after the
	// receiver was away.
	tracedFor = 15 * time.Minute
	// exportWithin is how long one trace may take.
	exportWithin = 10 * time.Second
)

// Mirror is what is asked of the worker's copy of the cluster.
type Mirror interface {
	Claims() []*karpv1.NodeClaim
	Node(name string) *corev1.Node
}

// Tracer exports traces of claims.
type Tracer struct {
	cluster   workflows.Cluster
	mirror    Mirror
	pods      kube.Reader
	histories Histories
	leads     func() bool
	exporter  *exporter
	log       *zap.Logger
	// exported are the claims that are done, with the time at which their nodes served.
	exported map[types.UID]time.Time
	// away says that the last export failed, so that a receiver that is away is told of once.
	away bool
}

// New returns a tracer that has not contacted the receiver. It exports while leads returns true: one replica is enough.
func New(ctx context.Context, o Options, mirror Mirror, pods kube.Reader, histories Histories, leads func() bool, log *zap.Logger) (*Tracer, error) {
	exporter, err := newExporter(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Tracer{cluster: workflows.Cluster(o.Cluster), mirror: mirror, pods: pods, histories: histories, leads: leads, exporter: exporter, log: log, exported: map[types.UID]time.Time{}}, nil
}

// Run exports the traces of claims whose nodes serve, until ctx ends.
func (t *Tracer) Run(ctx context.Context) error {
	defer func() {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = t.exporter.close(last)
	}()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-ticker.C:
			if t.leads() {
				t.look(ctx, now)
			}
		}
	}
}

// look exports the traces that are due. A receiver that is away ends the look: the rest is tried again with the next.
func (t *Tracer) look(ctx context.Context, now time.Time) {
	for claim, served := range t.exported {
		if now.Sub(served) > tracedFor {
			delete(t.exported, claim)
		}
	}
	recorded := newRecorded(t.histories)
	for _, claim := range t.mirror.Claims() {
		served, is := servesSince(claim)
		if _, done := t.exported[claim.UID]; done || !is || now.Sub(served) < settle || now.Sub(served) > tracedFor || !t.exporter.sampled(claim.UID) {
			continue
		}
		err := t.trace(ctx, recorded, claim)
		if err == nil {
			t.exported[claim.UID], t.away = served, false
			continue
		}
		if ctx.Err() == nil && !t.away {
			t.log.Warn("a trace could not be exported; it will be tried again", zap.String("claim", claim.Name), zap.Error(err))
		}
		t.away = true
		return
	}
}

// trace exports the trace of one claim.
func (t *Tracer) trace(ctx context.Context, recorded *recorded, claim *karpv1.NodeClaim) error {
	ctx, stop := context.WithTimeout(ctx, exportWithin)
	defer stop()
	s := story{claim: claim, node: t.mirror.Node(claim.Status.NodeName)}
	var pods corev1.PodList
	if err := t.pods.List(ctx, &pods, kube.MatchingFields{"spec.nodeName": claim.Status.NodeName}); err != nil {
		return fmt.Errorf("list the pods of node %s: %w", claim.Status.NodeName, err)
	}
	s.pods = pods.Items
	if err := recorded.tell(ctx, t.cluster, &s); err != nil {
		return err
	}
	spans := s.spans()
	if err := t.exporter.export(ctx, claim.UID, spans); err != nil {
		return err
	}
	t.log.Debug("traced", zap.String("claim", claim.Name), zap.Stringer("trace", traceID(claim.UID)), zap.Int("spans", len(spans)))
	return nil
}

// servesSince returns since when a claim's node serves pods.
func servesSince(claim *karpv1.NodeClaim) (time.Time, bool) {
	condition := claim.Condition(karpv1.ConditionTypeInitialized)
	if condition == nil || condition.Status != "True" || claim.Status.NodeName == "" {
		return time.Time{}, false
	}
	return condition.LastTransitionTime.Time, true
}
