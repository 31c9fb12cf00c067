package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// maxClaims limits the claims of one plan. The rest is planned again at once.
	maxClaims = 500
	// creators is how many claims are created at once.
	creators = 16
	// maxRefused limits the refused offerings that the groups of a plan name together: each takes one or two hundred bytes
	// of a payload that may have two megabytes.
	maxRefused = 2000
	// promisedFor is how long pods that were planned for a claim count as its own: until the claim must have registered.
	promisedFor = workflows.RegistrationTimeout
)

// creator creates the claims of plans.
type creator struct {
	objects   objects
	mirror    Mirror
	catalogue *catalogue
	events    recorder
	counts    *Metrics
	log       *zap.Logger
}

// create creates the claims of a plan. A claim that the API server refuses does not prevent the others: the note says why,
// and its pods are planned again for as long as they wait. An error means that the API server could not be asked; the next
// attempt finds what exists.
func (c *creator) create(ctx context.Context, in workflows.PlanInput, claims []plan.Claim, result *workflows.PlanResult) error {
	claims, err := c.notStopped(ctx, claims, result)
	if err != nil {
		return err
	}
	created, failed := make([]*karpv1.NodeClaim, len(claims)), make([]error, len(claims))
	groups := groupNames(in.Plan, claims)
	var writing errgroup.Group
	writing.SetLimit(creators)
	for i := range claims {
		writing.Go(func() error {
			created[i], failed[i] = c.createClaim(ctx, claims[i], groups[i], fmt.Sprintf("%s/%d", in.Plan, i))
			return nil
		})
	}
	_ = writing.Wait() // errors are in failed
	made := slices.DeleteFunc(slices.Clone(created), func(claim *karpv1.NodeClaim) bool { return claim == nil })
	unasked := slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return err == nil || refusedForGood(err) })
	if len(unasked) > 0 && (len(made) == 0 || ctx.Err() != nil) {
		return unasked[0]
	}
	result.Again = result.Again || len(unasked) > 0
	c.tellRefused(ctx, claims, failed, result)
	c.mirror.Assume(made...)
	for i, claim := range created {
		if claim == nil {
			continue
		}
		c.mirror.Promise(claim.Name, claims[i].Pods, time.Now().Add(promisedFor))
		ref := workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}
		if last := len(result.Groups) - 1; last >= 0 && result.Groups[last].Group == groups[i] {
			result.Groups[last].Claims = append(result.Groups[last].Claims, ref)
		} else {
			result.Groups = append(result.Groups, workflows.LaunchGroup{Group: groups[i], NodePool: claims[i].NodePool, Claims: []workflows.ClaimRef{ref},
				Unavailable: concerned(in.Unavailable, claims[i])})
		}
		result.SeenVersion = workflows.NewerVersion(result.SeenVersion, claim.ResourceVersion)
	}
	boundRefused(result.Groups)
	return nil
}

// notStopped returns the claims whose launch nobody has stopped since they were planned. The note names the others.
func (c *creator) notStopped(ctx context.Context, claims []plan.Claim, result *workflows.PlanResult) ([]plan.Claim, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	pools := make([]string, 0, len(claims))
	for i := range claims {
		pools = append(pools, claims[i].NodePool)
	}
	stopped, err := stops{objects: c.objects}.of(ctx, karpv1.PauseProvisioning, pools...)
	if err != nil || len(stopped) == 0 {
		return claims, err
	}
	for _, pool := range slices.Sorted(maps.Keys(stopped)) {
		result.Note += fmt.Sprintf("\n- NodePool %s: %s", pool, stopped[pool])
	}
	return slices.DeleteFunc(slices.Clone(claims), func(claim plan.Claim) bool { return stopped[claim.NodePool] != nil }), nil
}

// created returns the groups for which an earlier attempt of a plan has created claims.
func (c *creator) created(ctx context.Context, id string) (workflows.PlanResult, error) {
	result := workflows.PlanResult{Again: true, Note: "Continued after an interruption."}
	at := map[string]int{}
	err := c.objects.eachClaim(ctx, nil, func(claim *karpv1.NodeClaim) {
		group := claim.Annotations[karpv1.LaunchGroupAnnotationKey]
		if !strings.HasPrefix(group, id+"-") {
			return
		}
		if _, known := at[group]; !known {
			at[group] = len(result.Groups)
			result.Groups = append(result.Groups, workflows.LaunchGroup{Group: group, NodePool: claim.Labels[karpv1.NodePoolLabelKey]})
		}
		g := &result.Groups[at[group]]
		g.Claims = append(g.Claims, workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)})
		result.SeenVersion = workflows.NewerVersion(result.SeenVersion, claim.ResourceVersion)
	})
	return result, err
}

// createClaim creates one claim under the first free name derived from the seed.
func (c *creator) createClaim(ctx context.Context, planned plan.Claim, group, seed string) (*karpv1.NodeClaim, error) {
	pool := c.mirror.NodePool(planned.NodePool)
	if pool == nil {
		return nil, fmt.Errorf("claim for NodePool %s: %w", planned.NodePool, errPoolGone)
	}
	for try := 0; ; try++ {
		claim, err := c.catalogue.draft(planned, pool, group, claimName(planned.NodePool, fmt.Sprintf("%s/%d", seed, try)))
		if err != nil {
			return nil, err
		}
		err = c.objects.Create(ctx, claim)
		if err == nil {
			c.counts.claimCreated(claim, reasonProvisioned)
			return claim, nil
		}
		if !apierrors.IsAlreadyExists(err) || try == nameTries {
			return nil, fmt.Errorf("create NodeClaim %s: %w", claim.Name, err)
		}
	}
}

// tellRefused reports which NodePools' claims could not be created, in the plan's note and as an Event on each NodePool.
func (c *creator) tellRefused(ctx context.Context, claims []plan.Claim, failed []error, result *workflows.PlanResult) {
	count, why := map[string]int{}, map[string]error{}
	for i, err := range failed {
		if err != nil {
			count[claims[i].NodePool]++
			why[claims[i].NodePool] = cmp.Or(why[claims[i].NodePool], err)
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(count)) {
		text := fmt.Sprintf("%s could not be created: %v", counted(count[pool], "claim", "claims"), why[pool])
		result.Note += fmt.Sprintf("\n- NodePool %s: %.*s", pool, maxWhy, text)
		logs.Of(ctx, c.log).Warn("claims could not be created", zap.String("pool", pool), zap.Int("claims", count[pool]), zap.Error(why[pool]))
		if object := c.mirror.NodePool(pool); object != nil {
			c.events.tell(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool, UID: object.UID},
				corev1.EventTypeWarning, eventClaimRefused, fmt.Sprintf("%.*s", maxWhy, text))
		}
	}
}

// boundRefused leaves each group of a plan its share of the refused offerings, keeping the newest. At worst, an offering is
// refused once more.
func boundRefused(groups []workflows.LaunchGroup) {
	for i := range groups {
		known := groups[i].Unavailable
		groups[i].Unavailable = known[max(0, len(known)-max(1, maxRefused/len(groups))):]
	}
}

// errPoolGone means that a claim's NodePool has been deleted since the claim was planned.
var errPoolGone = errors.New("the NodePool is gone")

// refusedForGood reports whether an error means that the same claim will be refused again.
func refusedForGood(err error) bool {
	return errors.Is(err, errPoolGone) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// concerned returns the refused offerings that a claim allows.
func concerned(remembered []workflows.Unavailable, claim plan.Claim) []workflows.Unavailable {
	var kept []workflows.Unavailable
	for _, u := range remembered {
		if u.CapacityType == claim.CapacityType && slices.Contains(claim.InstanceTypes, u.InstanceType) && slices.Contains(claim.Zones, u.Zone) {
			kept = append(kept, u)
		}
	}
	return kept
}
