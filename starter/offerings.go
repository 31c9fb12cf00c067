package starter

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// shunAgain is how long after a signal about an offering no other is needed: workflows remember it for three times as
// long.
const shunAgain = workflows.UnavailableFor / 3

// offerings shuns offerings for a while from which no capacity comes or whose capacity is taken back.
type offerings struct {
	workflows *signaller
	// interruptions is this process's own view of the cloud; nil if there is none.
	interruptions   Interruptions
	recentlyRefused recentlyRefused
	log             *zap.Logger
}

// of returns the offering that a claim was launched from.
func (o *offerings) of(claim *karpv1.NodeClaim) cloud.OfferingKey {
	return cloud.OfferingKey{InstanceType: claim.Labels[corev1.LabelInstanceTypeStable], Zone: claim.Labels[corev1.LabelTopologyZone],
		CapacityType: claim.Labels[karpv1.CapacityTypeLabelKey], ReservationID: claim.Labels[o.workflows.labelKeys.ReservationID]}
}

// shun excludes offerings for a while, from this process's own view of the cloud and from every plan, wherever it is
// made. It triggers no plan. Errors are only logged, since a launch that asks for such an offering is merely refused.
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

// recentlyRefused remembers which offerings were signalled recently, so that a wave of interruptions of one kind costs
// one signal. It holds only those signalled within shunAgain.
type recentlyRefused struct {
	mu   sync.Mutex
	told map[cloud.OfferingKey]time.Time
}

// isNew reports whether an offering has to be signalled now, and records it as signalled.
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

// forget removes offerings whose signal failed.
func (s *recentlyRefused) forget(keys []cloud.OfferingKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.told, key)
	}
}
