package disrupt

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The reasons that no API names. DisruptionReasonOverprovisioned is in lifecycle/static.go.
const (
	// DisruptionReasonExpired is why a node goes that is older than its expireAfter and may be replaced gracefully.
	DisruptionReasonExpired karpv1.DisruptionReason = "Expired"
)
