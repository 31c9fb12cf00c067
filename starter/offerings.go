package starter

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// offeringOf is the offering a claim was launched from.
func offeringOf(claim *karpv1.NodeClaim) cloud.OfferingKey {
	return cloud.OfferingKey{InstanceType: claim.Labels[corev1.LabelInstanceTypeStable], Zone: claim.Labels[corev1.LabelTopologyZone],
		CapacityType: claim.Labels[karpv1.CapacityTypeLabelKey], ReservationID: claim.Labels[awsv1.LabelCapacityReservationID]}
}

// shunAgain is how long an offering that was told to be shunned need not be told again: what is remembered of it lasts
// three times as long.
const shunAgain = workflows.UnavailableFor / 3

// offerings has offerings left alone for a while from which no capacity comes, or is taken back.
type offerings struct {
	workflows *signaller
	// interruptions is this process's own view of the cloud; nil where there is none.
	interruptions   Interruptions
	recentlyRefused recentlyRefused
	log             *zap.Logger
}

// shun has offerings left alone: by this process's own view of the cloud, and by every plan, wherever it is made. It wakes
// nobody. What fails is only logged, since a launch that asks for such an offering is merely refused.
func (o *offerings) shun(ctx context.Context, keys []cloud.OfferingKey) {
	var fresh []cloud.OfferingKey
	for _, key := range keys {
		if o.interruptions != nil {
			o.interruptions.Shun(key)
		}
		if o.recentlyRefused.isNew(key, time.Now()) {
			fresh = append(fresh, key)
		}
	}
	if len(fresh) == 0 {
		return
	}
	if err := o.workflows.refused(ctx, workflows.CapacityRefused{Refused: fresh, Quiet: true}); err != nil {
		o.recentlyRefused.forget(fresh)
		o.log.Warn("could not mark the offerings that EC2 reclaims as unavailable", zap.Any("offerings", fresh), zap.Error(err))
	}
}

// recentlyRefused remembers which offerings were told to be left alone, so that a wave of interruptions of one sort costs one
// signal. It holds no more than what was told within shunAgain.
type recentlyRefused struct {
	mu   sync.Mutex
	told map[cloud.OfferingKey]time.Time
}

// news reports whether an offering has to be told now, and remembers that it is.
func (s *recentlyRefused) isNew(key cloud.OfferingKey, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, told := s.told[key]; told && now.Sub(at) < shunAgain {
		return false
	}
	for old, at := range s.told {
		if now.Sub(at) >= shunAgain {
			delete(s.told, old)
		}
	}
	if s.told == nil {
		s.told = map[cloud.OfferingKey]time.Time{}
	}
	s.told[key] = now
	return true
}

// forget takes back that offerings were told.
func (s *recentlyRefused) forget(keys []cloud.OfferingKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.told, key)
	}
}
