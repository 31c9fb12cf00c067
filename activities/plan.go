package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
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
	// refusedMost bounds the refused offerings that the groups of a plan name together: each is a hundred bytes or two of
	// a payload that may have two megabytes.
	refusedMost = 2000
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
	anew, err := a.awaitClaims(ctx, in.SeenVersion, in.ClusterUID)
	if err != nil {
		return workflows.PlanResult{}, fmt.Errorf("plan: %w", err)
	}
	if anew {
		in.SeenVersion = ""
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
	result := workflows.PlanResult{Note: planNote(packed, snapshot.Pending, refused), SeenVersion: in.SeenVersion, ClusterUID: a.ClusterUID, Anew: anew, Looked: snapshot.Time,
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
	claims, err := a.objects.listClaims(ctx)
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
		Nominates: a.Nominator.Works(), SpotToSpot: a.SpotToSpot, Rate: a.Rate}
}

// unavailable turns what Provisioning remembers into what the planner reads.
func unavailable(remembered []workflows.Unavailable) map[cloud.OfferingKey]time.Time {
	until := make(map[cloud.OfferingKey]time.Time, len(remembered))
	for _, u := range remembered {
		until[u.OfferingKey] = u.Until
	}
	return until
}

// create creates the claims of a plan. One that the API server refuses keeps none of the others from being created: the
// note says why, and its pods are planned for again for as long as they wait. An error means that the API server could
// not be asked; the next try finds what exists.
func (a *Activities) create(ctx context.Context, in workflows.PlanInput, claims []plan.Claim, result *workflows.PlanResult) error {
	created, failed := make([]*karpv1.NodeClaim, len(claims)), make([]error, len(claims))
	groups := groupNames(in.Plan, claims)
	var writing errgroup.Group
	writing.SetLimit(creators)
	for i := range claims {
		writing.Go(func() error {
			created[i], failed[i] = a.createClaim(ctx, claims[i], groups[i], fmt.Sprintf("%s/%d", in.Plan, i))
			return nil
		})
	}
	_ = writing.Wait() // what failed stands beside each claim
	made := slices.DeleteFunc(slices.Clone(created), func(claim *karpv1.NodeClaim) bool { return claim == nil })
	unasked := slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return err == nil || refusedForGood(err) })
	if len(unasked) > 0 && (len(made) == 0 || ctx.Err() != nil) {
		return unasked[0]
	}
	result.Again = result.Again || len(unasked) > 0
	a.tellRefused(claims, failed, result)
	a.Mirror.Assume(made...)
	for i, claim := range created {
		if claim == nil {
			continue
		}
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
	boundRefused(result.Groups)
	return nil
}

// boundRefused leaves each group of a plan its share of the refused offerings, the newest ones. The worst that follows
// is one more refusal.
func boundRefused(groups []workflows.LaunchGroup) {
	for i := range groups {
		known := groups[i].Unavailable
		groups[i].Unavailable = known[max(0, len(known)-max(1, refusedMost/len(groups))):]
	}
}

// errPoolGone means that a claim's NodePool is gone since it was planned.
var errPoolGone = errors.New("the NodePool is gone")

// refusedForGood says of an error that the same claim will be refused again.
func refusedForGood(err error) bool {
	return errors.Is(err, errPoolGone) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// tellRefused says which NodePools' claims could not be created, in the plan's note and by an Event of each pool.
func (a *Activities) tellRefused(claims []plan.Claim, failed []error, result *workflows.PlanResult) {
	count, why := map[string]int{}, map[string]error{}
	for i, err := range failed {
		if err != nil {
			count[claims[i].NodePool]++
			why[claims[i].NodePool] = cmp.Or(why[claims[i].NodePool], err)
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(count)) {
		text := fmt.Sprintf("%s could not be created: %v", counted(count[pool], "claim", "claims"), why[pool])
		result.Note += fmt.Sprintf("\n- NodePool %s: %.*s", pool, whyMost, text)
		a.Log.Warn("claims could not be created", zap.String("pool", pool), zap.Int("claims", count[pool]), zap.Error(why[pool]))
		if object := a.Mirror.NodePool(pool); object != nil {
			a.events.tell(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool, UID: object.UID},
				corev1.EventTypeWarning, "ClaimRefused", fmt.Sprintf("%.*s", whyMost, text))
		}
	}
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
		return nil, fmt.Errorf("claim for NodePool %s: %w", planned.NodePool, errPoolGone)
	}
	for try := 0; ; try++ {
		claim, err := a.draft(planned, pool, group, claimName(planned.NodePool, fmt.Sprintf("%s/%d", seed, try)))
		if err != nil {
			return nil, err
		}
		err = a.objects.Create(ctx, claim)
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
