package ec2sim

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// event is what EventBridge would deliver for an instance: a detail type and its detail.
type event struct {
	detailType string
	detail     map[string]string
}

func interruptionEvent(i *instance) event {
	return event{"EC2 Spot Instance Interruption Warning", map[string]string{"instance-id": i.ID, "instance-action": "terminate"}}
}

func rebalanceEvent(i *instance) event {
	return event{"EC2 Instance Rebalance Recommendation", map[string]string{"instance-id": i.ID}}
}

func stateChangeEvent(i *instance, state string) event {
	return event{"EC2 Instance State-change Notification", map[string]string{"instance-id": i.ID, "state": state}}
}

// announce delivers an event to every queue, as if each were the target of a rule for EC2's events.
func (s *Server) announce(i *instance, at time.Time, e event) {
	if len(s.queues.rows) == 0 {
		return
	}
	body, err := json.Marshal(map[string]any{
		"version": "0", "id": uuid.NewString(), "detail-type": e.detailType, "source": "aws.ec2", "account": accountID,
		"time": at.UTC().Format(time.RFC3339), "region": s.account.region,
		"resources": []string{s.account.arn("ec2", "instance/"+i.ID)}, "detail": e.detail,
	})
	if err != nil {
		s.log.Error("encode event", zap.String("instance", i.ID), zap.Error(err))
		return
	}
	for _, q := range s.queues.sorted() {
		s.post(q, string(body), at, 0)
	}
}
