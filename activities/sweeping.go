package activities

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// adoptAge is how old a claim without instance and workflow must be before it is adopted: until then its Launch may be on
// the way.
const adoptAge = time.Minute

// sweeper finds what crashes, bugs and people have left over, and puts it right.
type sweeper struct {
	// cluster and clusterUID distinguish this cluster's objects from those of another cluster of the same name.
	cluster    workflows.Cluster
	clusterUID string
	objects    objects
	mirror     Mirror
	cloud      cloud.Provider
	executions executions
	undoer     *undoer
	approver   *approver
	catalogue  *catalogue
	events     recorder
	// share is the share of the nodes that one sweep may end; see Config.SweepMost.
	share float64
	// metrics counts what sweeps do; nil disables the metrics.
	metrics *SweepMetrics
	// swept remembers what workflows were told.
	swept swept
	// checked remembers which listed workflows were asked for by id.
	checked checked
	log     *zap.Logger
}

// sweep is one comparison: instances and launched claims by provider id.
type sweep struct {
	*sweeper
	now time.Time
	// listed are the running workflows according to Temporal's list, which may lag: the sweep asks by id for those it
	// lacks.
	listed    map[string]listedWorkflow
	instances map[string]cloud.Instance
	// alive has the ids of all instances.
	alive  map[string]bool
	claims map[string]*karpv1.NodeClaim
	// named holds all claims by name.
	named map[string]*karpv1.NodeClaim
	// most is how many nodes this sweep may still end.
	most   int
	result workflows.SweepResult
}

// listedWorkflow is a running workflow, as in Temporal's list.
type listedWorkflow struct {
	run     string
	started time.Time
	// uid, clusterUID and instance are from the memo and the search attributes; empty if missing there.
	uid, clusterUID, instance string
}

// maxFailed limits how many of the objects that a sweep could not put right its result names.
const maxFailed = 20

// fail records what could not be put right, if err is not nil. The next sweep tries again.
func (s *sweep) fail(what string, err error) {
	if err == nil {
		return
	}
	if len(s.result.Failed) < maxFailed {
		s.result.Failed = append(s.result.Failed, fmt.Sprintf("%s: %.*s", what, maxWhy, err))
	}
	s.result.Failures++
}

// running reports whether a workflow is running.
func (s *sweep) running(ctx context.Context, id string) (bool, error) {
	if _, listed := s.listed[id]; listed {
		return true, nil
	}
	return s.executions.runs(ctx, id)
}

// swept remembers what workflows were told. It is this process's memory only: another worker tells them once more, which
// changes nothing.
type swept struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// sweptAgain is how long a workflow is not told the same again, so that it has time to act.
const sweptAgain = 30 * time.Minute

// news reports whether something has not been told lately, and records it as told.
func (t *swept) news(key string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.told, func(_ string, at time.Time) bool { return now.Sub(at) >= sweptAgain })
	if _, known := t.told[key]; known {
		return false
	}
	if t.told == nil {
		t.told = map[string]time.Time{}
	}
	t.told[key] = now
	return true
}
