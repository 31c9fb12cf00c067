package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// freshEnough is how old the mirror may be for a plan, or for removing a node.
	freshEnough = 30 * time.Second
	// seenWithin is how long one attempt waits for the mirror to show claims that were created elsewhere; normally that
	// takes milliseconds.
	seenWithin = 10 * time.Second
	// maxSeenAge is how long after the activity was scheduled a version that a fresh mirror lacks counts as one that will
	// never come. It leaves time to plan within a minute.
	maxSeenAge = 30 * time.Second
)

// seen waits until the mirror shows what others have created.
type seen struct {
	cluster    workflows.Cluster
	clusterUID string
	mirror     Mirror
	log        *zap.Logger
}

// awaitClaims returns when the mirror shows every claim up to a resource version. clusterUID is the cluster that the
// version is from; it may be empty. Versions belong to one etcd, so awaitClaims drops a version of an earlier cluster of
// the same name, and one that a fresh mirror does not reach, as after a backup was restored. Then anew is true.
func (s seen) awaitClaims(ctx context.Context, version, clusterUID string) (anew bool, err error) {
	if version == "" {
		return false, nil
	}
	if clusterUID != "" && s.clusterUID != "" && clusterUID != s.clusterUID {
		logs.Of(ctx, s.log).Warn("dropped what was known of another cluster of this name", zap.String("cluster", string(s.cluster)), zap.String("uid", s.clusterUID), zap.String("other", clusterUID))
		return true, nil
	}
	waiting, stop := context.WithTimeout(ctx, seenWithin)
	defer stop()
	err = s.mirror.AwaitClaims(waiting, version)
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return false, fmt.Errorf("wait for claims: %w", err)
	}
	if time.Since(activity.GetInfo(ctx).ScheduledTime) < maxSeenAge {
		return false, fmt.Errorf("the view of NodeClaims has not come to resource version %s within %s", version, seenWithin)
	}
	if err := s.mirror.Fresh(freshEnough); err != nil {
		return false, fmt.Errorf("wait for claims: %w", err)
	}
	logs.Of(ctx, s.log).Warn("dropped a resource version that never came; the cluster was restored or rebuilt", zap.String("version", version))
	return true, nil
}
