package starter

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// interruption is what an announcement of the cloud leads to.
type interruption struct {
	// ending is why the claim ends; empty where it does not.
	ending string
	// lost says that nothing runs on the instance any more, forced that nothing there is worth waiting for.
	lost, forced bool
	// takesBack says that the cloud wants the capacity itself.
	takesBack bool
	// announces says that it is known by when the cloud ends the instance: as long as notice after it has said so.
	announces bool
	notice    time.Duration
	// event and message are what people read; the events are Karpenter's.
	event, message string
	// label is the kind's name in Karpenter's metrics.
	label string
}

// kind is what an announcement leads to here, and whether it leads to anything.
func (s *Starter) kind(announced cloud.InterruptionKind) (interruption, bool) {
	is, known := interruptionKinds[announced]
	if announced == cloud.RebalanceRecommendation && s.ReplacesAtRisk {
		is.ending, is.takesBack = workflows.ReasonRebalanceRecommended, true
	}
	return is, known
}

// interruptionKinds are all announcements that lead to something.
var interruptionKinds = map[cloud.InterruptionKind]interruption{
	cloud.SpotInterruption: {ending: workflows.ReasonSpotInterrupted, takesBack: true, announces: true, notice: 2 * time.Minute,
		event: "SpotInterrupted", message: "EC2 takes this spot instance back in two minutes", label: "spot_interrupted"},
	cloud.RebalanceRecommendation: {
		event: "SpotRebalanceRecommendation", message: "EC2 may take this spot instance back soon", label: "rebalance_recommendation"},
	cloud.ReservationInterruption: {ending: workflows.ReasonReservationInterrupted, takesBack: true, announces: true, notice: 2 * time.Minute,
		event: "CapacityReservationInstanceInterrupted", message: "The capacity reservation of this instance is taken back in two minutes", label: "capacity_reservation_interrupted"},
	cloud.ScheduledChange: {ending: workflows.ReasonScheduledChange,
		event: "InstanceUnhealthy", message: "AWS will work on the machine below this instance", label: "scheduled_change"},
	cloud.InstanceStopping: {ending: workflows.ReasonInstanceStopping, announces: true,
		event: "InstanceStopping", message: "The instance is being stopped", label: "instance_stopped"},
	cloud.InstanceTerminating: {ending: workflows.ReasonInstanceTerminated, announces: true,
		event: "InstanceTerminating", message: "The instance is being terminated", label: "instance_terminated"},
	cloud.InstanceTerminated: {ending: workflows.ReasonInstanceTerminated, lost: true,
		event: "InstanceTerminating", message: "The instance has been terminated", label: "instance_terminated"},
	cloud.InstanceImpaired: {ending: workflows.ReasonInstanceStatusImpaired, forced: true,
		event: "InstanceUnhealthy", message: "The instance fails EC2's status check", label: "instance_status"},
	cloud.SystemImpaired: {ending: workflows.ReasonSystemStatusImpaired, forced: true,
		event: "InstanceUnhealthy", message: "The machine below this instance fails EC2's status check", label: "system_status"},
}

// tellInterrupted tells people with kubectl, on the claim and on its Node. A claim that was on its way out before goes for
// another reason, and an instance Tenon itself terminates is not worth a word.
func (s *Starter) tellInterrupted(claim *karpv1.NodeClaim, is interruption) {
	ending := !claim.DeletionTimestamp.IsZero()
	if s.Events == nil || ending && !is.takesBack && !is.forced {
		return
	}
	node := s.Mirror.Node(claim.Status.NodeName)
	tell := func(reason, message string) {
		s.Events.Event(claim, corev1.EventTypeWarning, reason, message)
		if node != nil {
			s.Events.Event(node, corev1.EventTypeWarning, reason, message)
		}
	}
	tell(is.event, is.message)
	if is.ending != "" && !ending {
		tell("TerminatingOnInterruption", "The node is drained and its instance terminated: "+is.ending)
	}
}

// takenBack are the offerings whose capacity the cloud wants for itself.
func (s *Starter) takenBack(notices []cloud.Notice) []cloud.OfferingKey {
	var keys []cloud.OfferingKey
	for i := range notices {
		if is, _ := s.kind(notices[i].Kind); !is.takesBack {
			continue
		}
		for _, instance := range notices[i].Instances {
			if claim := s.Mirror.ClaimByInstance(instance); claim != nil {
				keys = append(keys, offeringOf(claim))
			}
		}
	}
	return keys
}

// offeringOf is the offering a claim was launched from.
func offeringOf(claim *karpv1.NodeClaim) cloud.OfferingKey {
	return cloud.OfferingKey{InstanceType: claim.Labels[corev1.LabelInstanceTypeStable], Zone: claim.Labels[corev1.LabelTopologyZone],
		CapacityType: claim.Labels[karpv1.CapacityTypeLabelKey], ReservationID: claim.Labels[awsv1.LabelCapacityReservationID]}
}

// shunAgain is how long an offering that was told to be shunned need not be told again: what is remembered of it lasts
// three times as long.
const shunAgain = workflows.UnavailableFor / 3

// shun has offerings left alone: by this process's own view of the cloud, and by every plan, wherever it is made. It wakes
// nobody. What fails is only logged, since a launch that asks for such an offering is merely refused.
func (s *Starter) shun(ctx context.Context, keys []cloud.OfferingKey) {
	var fresh []cloud.OfferingKey
	for _, key := range keys {
		if s.Interruptions != nil {
			s.Interruptions.Shun(key)
		}
		if s.shunned.news(key, time.Now()) {
			fresh = append(fresh, key)
		}
	}
	if len(fresh) == 0 {
		return
	}
	told := workflows.CapacityRefused{Refused: fresh, Quiet: true}
	err := s.signal(ctx, workflows.ProvisioningOptions(s.Cluster), workflows.ProvisioningType, workflows.ProvisioningInput{Cluster: s.Cluster, ClusterUID: s.ClusterUID},
		workflows.SignalCapacityRefused, told)
	if err == nil {
		err = s.signal(ctx, workflows.DisruptionOptions(s.Cluster), workflows.DisruptionType, workflows.DisruptionInput{Cluster: s.Cluster, ClusterUID: s.ClusterUID},
			workflows.SignalCapacityRefused, told)
	}
	if err != nil {
		s.shunned.forget(fresh)
		s.Log.Warn("could not have offerings left alone that EC2 takes back", zap.Any("offerings", fresh), zap.Error(err))
	}
}
