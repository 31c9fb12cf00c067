package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/workflows"
)

const (
	// freshEnough is how old the mirror may be for a plan, or for taking a node away.
	freshEnough = 30 * time.Second
	// seenWithin is how long one try waits for the mirror to show claims that were created elsewhere; it takes milliseconds
	// where all is well.
	seenWithin = 10 * time.Second
	// maxSeenAge is after how long a version counts as one that will never come, if the mirror is fresh. It leaves time to
	// plan within a minute.
	maxSeenAge = 30 * time.Second
)

// seen waits until the mirror shows what others have created.
type seen struct {
	cluster    workflows.Cluster
	clusterUID string
	mirror     Mirror
	log        *zap.Logger
}

// awaitClaims returns when the mirror shows every claim up to a resource version of a cluster, which may be unknown. Versions
// are numbers of one etcd: those of a cluster that had this one's name before are dropped, and so are those that a fresh
// mirror does not come to see, as after a backup was restored. Then anew is true.
func (s seen) awaitClaims(ctx context.Context, version, clusterUID string) (anew bool, err error) {
	if version == "" {
		return false, nil
	}
	if clusterUID != "" && s.clusterUID != "" && clusterUID != s.clusterUID {
		s.log.Warn("dropped what was known of another cluster of this name", zap.String("cluster", string(s.cluster)), zap.String("uid", s.clusterUID), zap.String("other", clusterUID))
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
	s.log.Warn("dropped a resource version that never came; the cluster was restored or rebuilt", zap.String("version", version))
	return true, nil
}
