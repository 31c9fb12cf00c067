package workflows

import (
	"crypto/sha256"
	"encoding/hex"

	"go.temporal.io/sdk/workflow"
)

// seriesByHash marks workflows whose series is a hash of their run id. The run id begins with a timestamp, so two workflows
// started within a minute had the same series, and so the same ids for what they began.
const seriesByHash = "series-by-hash"

// newSeries returns a value that distinguishes a workflow from those of its id that ran before it.
func newSeries(ctx workflow.Context) string {
	run := workflow.GetInfo(ctx).OriginalRunID
	if workflow.GetVersion(ctx, seriesByHash, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return run
	}
	hash := sha256.Sum256([]byte(run))
	return hex.EncodeToString(hash[:8])
}
