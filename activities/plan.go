package activities

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// freshEnough is how old the mirror may be for a plan, or for taking a node away.
	freshEnough = 30 * time.Second
	// groupMost bounds a launch group, and claimsMost a plan: what is beyond is planned again at once. A group's claims
	// are children of one workflow and names in one payload; EC2 takes a thousand instances in a call.
	groupMost, claimsMost = 250, 500
	// creators is how many claims are created at once.
	creators = 16
	// nameTries is how many further names are tried for a claim whose first one is taken.
	nameTries = 3
	// nominatedFor is how long pods that were planned for an existing node protect it: Karpenter's twice the window.
	nominatedFor = 20 * time.Second
	// promisedFor is how long pods that were planned for a claim are counted as its own: until it must have registered.
	promisedFor = workflows.RegistrationTimeout
)

// Plan waits until the burst of pending pods has ended, plans them over the mirror, and creates the NodeClaims: those that
// static pools lack, and those for the pods. Groups and claims are named after the plan's id, so that a second try finds
// what the first one created and plans nothing twice: it returns those groups, and what else is wanted is for the next
// plan.
func (a *Activities) Plan(ctx context.Context, in workflows.PlanInput) (workflows.PlanResult, error) {
	ctx, done := attend(ctx)
	defer done()
	if activity.GetInfo(ctx).Attempt > 1 {
		if earlier, err := a.created(ctx, in.Plan); err != nil || len(earlier.Groups) > 0 {
			return earlier, err
		}
	}
	if err := a.Mirror.AwaitClaims(ctx, in.SeenVersion); err != nil {
		return workflows.PlanResult{}, fmt.Errorf("wait for the claims of earlier plans: %w", err)
	}
	if err := a.Mirror.QuietPods(ctx, a.BatchIdle, a.BatchMost); err != nil {
		return workflows.PlanResult{}, fmt.Errorf("wait for pods: %w", err)
	}
	if err := a.Mirror.Fresh(freshEnough); err != nil {
		return workflows.PlanResult{}, fmt.Errorf("plan: %w", err)
	}
	began := time.Now()
	snapshot := a.Mirror.Snapshot()
	input := a.input(ctx, snapshot, in.Unavailable)
	input.Growth = a.growth(in.Grown, snapshot, input.Pools)
	a.Growth.planned(input.Growth, in.Grown, snapshot.Time)
	static, refused := plan.Static(input)
	packed := plan.Pack(input)
	packed.Claims = slices.Concat(static, packed.Claims)
	took := time.Since(began)
	a.Mirror.Planned(packed, snapshot.Time.Add(nominatedFor))
	a.Nominator.Placed(snapshot, packed.Placements)
	a.explain(packed.Unplaced, input.Growth, snapshot.Time)
	result := workflows.PlanResult{Note: planNote(packed, snapshot.Pending, refused), SeenVersion: in.SeenVersion, Looked: snapshot.Time,
		Grown: grown(input.Growth)}
	claims := packed.Claims
	if len(claims) > claimsMost {
		claims, result.Again = claims[:claimsMost], true
	}
	if err := a.create(ctx, in, claims, &result); err != nil {
		return workflows.PlanResult{}, err
	}
	a.Log.Info("planned", zap.String("plan", in.Plan), zap.Int("pending", len(snapshot.Pending)), zap.Int("claims", len(claims)), zap.Int("groups", len(result.Groups)),
		zap.Int("placed", len(packed.Placements)), zap.Int("unplaced", len(packed.Unplaced)), zap.Float64("pricePerHour", packed.PricePerHour()), zap.Duration("took", took))
	return result, nil
}

// created returns the groups an earlier try of a plan has created claims for.
func (a *Activities) created(ctx context.Context, id string) (workflows.PlanResult, error) {
	claims, err := a.listClaims(ctx)
	if err != nil {
		return workflows.PlanResult{}, err
	}
	result := workflows.PlanResult{Again: true, Note: "Continued after an interruption."}
	at := map[string]int{}
	for i := range claims {
		claim := &claims[i]
		group := claim.Annotations[karpv1.LaunchGroupAnnotationKey]
		if !strings.HasPrefix(group, id+"-") {
			continue
		}
		if _, known := at[group]; !known {
			at[group] = len(result.Groups)
			result.Groups = append(result.Groups, workflows.LaunchGroup{Group: group, NodePool: claim.Labels[karpv1.NodePoolLabelKey]})
		}
		g := &result.Groups[at[group]]
		g.Claims = append(g.Claims, workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)})
		result.SeenVersion = newer(result.SeenVersion, claim.ResourceVersion)
	}
	return result, nil
}

// input is what the planner is to know.
func (a *Activities) input(ctx context.Context, snapshot *plan.Snapshot, refused []workflows.Unavailable) plan.Input {
	return plan.Input{Snapshot: snapshot, Pools: a.pools(ctx), Unavailable: unavailable(refused), MinValues: a.MinValues, Preferences: a.Preferences,
		Nominates: a.Nominator.Works(), SpotToSpot: a.SpotToSpot}
}

// unavailable turns what Provisioning remembers into what the planner reads.
func unavailable(remembered []workflows.Unavailable) map[cloud.OfferingKey]time.Time {
	until := make(map[cloud.OfferingKey]time.Time, len(remembered))
	for _, u := range remembered {
		until[u.OfferingKey] = u.Until
	}
	return until
}

// create creates the claims of a plan. On an error some exist; the next try finds them.
func (a *Activities) create(ctx context.Context, in workflows.PlanInput, claims []plan.Claim, result *workflows.PlanResult) error {
	created := make([]*karpv1.NodeClaim, len(claims))
	groups := groupNames(in.Plan, claims)
	writing, ctx := errgroup.WithContext(ctx)
	writing.SetLimit(creators)
	for i := range claims {
		writing.Go(func() error {
			claim, err := a.createClaim(ctx, claims[i], groups[i], fmt.Sprintf("%s/%d", in.Plan, i))
			created[i] = claim
			return err
		})
	}
	if err := writing.Wait(); err != nil {
		return err
	}
	a.Mirror.Assume(created...)
	for i, claim := range created {
		a.Mirror.Promise(claim.Name, claims[i].Pods, time.Now().Add(promisedFor))
		ref := workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}
		if last := len(result.Groups) - 1; last >= 0 && result.Groups[last].Group == groups[i] {
			result.Groups[last].Claims = append(result.Groups[last].Claims, ref)
		} else {
			result.Groups = append(result.Groups, workflows.LaunchGroup{Group: groups[i], NodePool: claims[i].NodePool, Claims: []workflows.ClaimRef{ref},
				Unavailable: concerned(in.Unavailable, claims[i])})
		}
		result.SeenVersion = newer(result.SeenVersion, claim.ResourceVersion)
	}
	return nil
}

// concerned are the refused offerings that a claim allows.
func concerned(remembered []workflows.Unavailable, claim plan.Claim) []workflows.Unavailable {
	var kept []workflows.Unavailable
	for _, u := range remembered {
		if u.CapacityType == claim.CapacityType && slices.Contains(claim.InstanceTypes, u.InstanceType) && slices.Contains(claim.Zones, u.Zone) {
			kept = append(kept, u)
		}
	}
	return kept
}

// groupNames names the launch group of each claim. Alike claims stand next to each other.
func groupNames(id string, claims []plan.Claim) []string {
	names := make([]string, len(claims))
	group, size := 0, 0
	for i := range claims {
		if i > 0 && (claims[i].Group != claims[i-1].Group || size == groupMost) {
			group++
			size = 0
		}
		size++
		names[i] = fmt.Sprintf("%s-%d", id, group)
	}
	return names
}

// createClaim creates one claim under the first name made from the seed that is free.
func (a *Activities) createClaim(ctx context.Context, planned plan.Claim, group, seed string) (*karpv1.NodeClaim, error) {
	pool := a.Mirror.NodePool(planned.NodePool)
	if pool == nil {
		return nil, fmt.Errorf("NodePool %s is gone", planned.NodePool)
	}
	for try := 0; ; try++ {
		claim, err := a.draft(planned, pool, group, claimName(planned.NodePool, fmt.Sprintf("%s/%d", seed, try)))
		if err != nil {
			return nil, err
		}
		err = a.Kube.Create(ctx, claim)
		if err == nil {
			return claim, nil
		}
		if !apierrors.IsAlreadyExists(err) || try == nameTries {
			return nil, fmt.Errorf("create NodeClaim %s: %w", claim.Name, err)
		}
	}
}

// draft writes a planned claim as the object that is created.
func (a *Activities) draft(planned plan.Claim, pool *karpv1.NodePool, group, name string) (*karpv1.NodeClaim, error) {
	claim, err := planned.NodeClaim(pool, name)
	if err != nil {
		return nil, fmt.Errorf("claim for NodePool %s: %w", planned.NodePool, err)
	}
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[karpv1.LaunchGroupAnnotationKey] = group
	a.overlaid.annotate(claim, planned)
	if class := a.nodeClass(claim); class != nil {
		for _, key := range []string{awsv1.AnnotationEC2NodeClassHash, awsv1.AnnotationEC2NodeClassHashVersion} {
			claim.Annotations[key] = class.Annotations[key]
		}
	}
	return claim, nil
}

// claimName is the pool's name and five characters made from the seed, as the API server's generateName would make it.
func claimName(pool, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return pool + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:5]
}

// newer returns the later of two resource versions.
func newer(a, b string) string {
	if a == "" {
		return b
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order > 0 {
		return a
	}
	return b
}
