package activities

import (
	"context"
	"time"

	"github.com/tenon-sh/tenon/activities/nominate"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// inputs builds the planner's input from the mirror and from what workflows remember.
type inputs struct {
	catalogue   *catalogue
	nominator   *nominate.Nominator
	minValues   plan.MinValuesPolicy
	preferences plan.PreferencePolicy
	spotToSpot  bool
	// rate limits how many nodes of the cluster begin to be disrupted within a period; nil means no limit.
	rate *karpv1.DisruptionRate
	// budgets limit how many nodes of the cluster are disrupted at once.
	budgets []karpv1.Budget
}

// of returns the planner's input for a snapshot.
func (i *inputs) of(ctx context.Context, snapshot *plan.Snapshot, refused []workflows.Unavailable) plan.Input {
	return plan.Input{Snapshot: snapshot, Pools: i.catalogue.pools(ctx), Unavailable: unavailable(refused), MinValues: i.minValues, Preferences: i.preferences,
		Nominates: i.nominator.Works(), SpotToSpot: i.spotToSpot, Rate: i.rate, Budgets: i.budgets, Targets: i.catalogue.targets(snapshot.NodePools)}
}

// unavailable converts what Provisioning remembers to what the planner reads.
func unavailable(remembered []workflows.Unavailable) map[cloud.OfferingKey]time.Time {
	until := make(map[cloud.OfferingKey]time.Time, len(remembered))
	for _, u := range remembered {
		until[u.OfferingKey] = u.Until
	}
	return until
}
