package starter

import (
	"context"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// launchPatience is how long a claim of a launch group may be without an instance before its Launch is requested again.
// Its Provisioning started one; a request costs nothing while that one runs.
const launchPatience = time.Minute

// launches makes sure that claims without an instance have a Launch.
type launches struct {
	mirror    Mirror
	workflows *signaller
	told      *dedup
	log       *zap.Logger
}

// want makes sure that a claim without an instance has a Launch: at once if a person made the claim, and after
// launchPatience if a plan did, since its own Launch is on the way. A claim made for a replacement is left to the
// sweep, which first checks whether the replacement is still running. It returns when to look again.
func (l *launches) want(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	if claim.Annotations[karpv1.ReplacementAnnotationKey] != "" && claim.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	byHand := claim.Annotations[karpv1.LaunchGroupAnnotationKey] == ""
	if age := time.Since(claim.CreationTimestamp.Time); !byHand && age < launchPatience {
		return launchPatience - age, nil
	}
	// A Launch that a plan has started already releases its claims if launches are paused.
	if byHand && stopped(l.mirror, karpv1.PauseProvisioning, claim.Labels[karpv1.NodePoolLabelKey], time.Now()) != nil {
		return 0, nil
	}
	if byHand && !l.told.isNew(claim.UID, "launch") {
		return launchPatience, nil
	}
	group := workflows.UnlaunchedGroup(claim, l.mirror.Claims())
	if err := l.workflows.launch(ctx, group, !byHand); err != nil {
		return 0, err
	}
	l.told.mark(claim.UID, "launch")
	l.log.Info("launch asked for", zap.String("claim", claim.Name), zap.String("group", group.Group), zap.Bool("byHand", byHand))
	return launchPatience, nil
}
