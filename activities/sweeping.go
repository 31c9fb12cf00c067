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

// adoptAge is how old a claim without instance and workflow must be before it is adopted: its Launch is on the way.
const adoptAge = time.Minute

// sweeper finds what was left over, and has it put right.
type sweeper struct {
	// cluster and clusterUID tell what is this cluster's from what is another's of its name.
	cluster    workflows.Cluster
	clusterUID string
	objects    objects
	mirror     Mirror
	cloud      cloud.Provider
	executions executions
	undoer     *undoer
	events     recorder
	// share is the share of the nodes that one sweep may end; see Config.SweepMost.
	share float64
	// metrics counts what sweeps do; nil where nobody does.
	metrics *SweepMetrics
	// swept is what workflows were told.
	swept swept
	log   *zap.Logger
}

// sweep is one comparison: instances and launched claims by provider id.
type sweep struct {
	*sweeper
	now time.Time
	// listed are the workflows that run according to Temporal's list, which may lag: what it lacks is asked for by id.
	listed    map[string]listedWorkflow
	instances map[string]cloud.Instance
	// alive has the ids of all instances.
	alive  map[string]bool
	claims map[string]*karpv1.NodeClaim
	// named are all claims by name.
	named map[string]*karpv1.NodeClaim
	// most is how many nodes this sweep may still end.
	most   int
	result workflows.SweepResult
}

// listedWorkflow is a workflow that runs, as Temporal's list has it.
type listedWorkflow struct {
	run     string
	started time.Time
	// uid, clusterUID and instance are what its memo and its search attributes say; empty where they do not.
	uid, clusterUID, instance string
}

// maxFailed bounds what a sweep says of objects that it could not put right.
const maxFailed = 20

// fail notes what could not be put right, if there is an error. The next sweep tries again.
func (s *sweep) fail(what string, err error) {
	if err == nil {
		return
	}
	if len(s.result.Failed) < maxFailed {
		s.result.Failed = append(s.result.Failed, fmt.Sprintf("%s: %.*s", what, maxWhy, err))
	}
	s.result.Failures++
}

// running reports whether a workflow runs.
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

// sweptAgain is how long a workflow is not told the same again, which it may take its time to act upon.
const sweptAgain = 30 * time.Minute

// news reports whether something has not been told lately, and takes it as told.
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
