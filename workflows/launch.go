package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Karpenter retries for as long as it gives a launch, with a new request each time. The pauses in between grow, so that a
// cause which passes is noticed soon and one that stays costs little history.
const (
	firstAskAnew = 2 * time.Second
	maxAskAnew   = 20 * time.Second
	// prepareTries is the number of tries in runs that began before there were pauses.
	prepareTries = 3
)

// askAnew waits before a launch is prepared and sent again. It returns false if there is no time left for that.
func askAnew(ctx workflow.Context, began time.Time, try int) bool {
	if workflow.GetVersion(ctx, "launch-asks-anew", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return try < prepareTries
	}
	wait := min(firstAskAnew<<min(try-1, 8), maxAskAnew)
	if workflow.Now(ctx).Add(wait).Sub(began) >= launchTimeout {
		return false
	}
	return workflow.Sleep(ctx, wait) == nil
}

// maxChildren is how many NodeClaim workflows a Launch starts as its children.
const maxChildren = 2

// Launch gives a group of alike claims their instances, exactly once. The request is prepared, and thereby recorded in this
// history, and then sent with a token made from this workflow's id and claims, so that all sends are the same request. Claim
// i gets instance i and its own NodeClaim workflow. Claims without an instance are released: they are deleted, and
// Provisioning is told to plan their pods again.
func Launch(ctx workflow.Context, in LaunchInput) (LaunchOutcome, error) {
	workflow.SetCurrentDetails(ctx, launchDetails(in, "Asking for instances."))
	claims, fleet, err := launch(ctx, in)
	if ctx.Err() != nil {
		return LaunchOutcome{}, err
	}
	launched := min(len(claims), len(fleet.Instances))
	if err := startNodeClaims(ctx, in, claims[:launched], fleet.Instances); err != nil {
		return LaunchOutcome{}, err
	}
	out := LaunchOutcome{Launched: launched}
	if left := claims[launched:]; len(left) > 0 {
		out.Released, out.Reason, out.Refused = len(left), releaseReason(err), fleet.Refused
		if _, err := ReleaseClaimsActivity.Run(ctx, ReleaseClaimsInput{Claims: left, Reason: out.Reason, Message: message(err)},
			fmt.Sprintf("give back %d claims: %s", len(left), out.Reason)); err != nil {
			return out, err
		}
		// Provisioning may not run where claims are made by hand only; then nobody has to plan again.
		refused := CapacityRefused{Group: in.Group, Refused: fleet.Refused}
		_ = workflow.SignalExternalWorkflow(ctx, in.Cluster.ProvisioningID(), "", SignalCapacityRefused, refused).Get(ctx, nil)
	}
	workflow.SetCurrentDetails(ctx, launchDetails(in, strings.TrimSpace(fmt.Sprintf("%d launched, %d given back. %s %s", out.Launched, out.Released, out.Reason, message(err)))))
	return out, nil
}

// launch returns the claims that are still wanted and the instances of the group. A nil error with fewer instances than
// claims means that capacity was refused; an error says why nothing could be launched.
func launch(ctx workflow.Context, in LaunchInput) ([]ClaimRef, Fleet, error) {
	if in.Adopted {
		found, err := FindInstancesActivity.Run(ctx, FindInstancesInput{Group: in.Group, Claims: in.Claims, Settle: true}, "look for "+in.Group)
		if err != nil || len(found.Instances) > 0 || len(found.Claims) == 0 {
			return found.Claims, found.Fleet, err
		}
		in.Claims = found.Claims
	}
	began := workflow.Now(ctx)
	for try := 1; ; try++ {
		prepared, err := PrepareLaunchActivity.Run(ctx, in.LaunchGroup, fmt.Sprintf("prepare %d claims", len(in.Claims)))
		if err != nil {
			return in.Claims, Fleet{}, err
		}
		if len(prepared.Claims) == 0 {
			return nil, Fleet{}, nil
		}
		request := prepared.Request
		request.Token = launchToken(workflow.GetInfo(ctx).WorkflowExecution.ID, in.Claims, try)
		fleet, err := CreateFleetActivity.Run(ctx, CreateFleetInput{Claims: prepared.Claims, Request: request, NodePool: in.NodePool},
			fmt.Sprintf("CreateFleet %d %s", request.Count, request.CapacityType))
		if err == nil {
			return prepared.Claims, fleet, nil
		}
		if FailureType(err) == FailureStaleRequest && askAnew(ctx, began, try) {
			continue
		}
		// The last request may have been received, so nothing is released before the cloud was searched.
		found, findErr := FindInstancesActivity.Run(ctx, FindInstancesInput{Group: in.Group, Claims: prepared.Claims, Settle: true}, "look for "+in.Group)
		if findErr != nil {
			return nil, Fleet{}, findErr
		}
		if FailureType(err) == FailureTokenSpent && len(found.Instances) == 0 && len(found.Claims) > 0 && askAnew(ctx, began, try) {
			continue
		}
		return found.Claims, found.Fleet, err
	}
}

// startNodeClaims starts the workflow of each claim with its instance. A few are started as children, at two events each,
// and three more if they start one after the other. Many are started by one activity, at eight events in all, including the
// version marker.
func startNodeClaims(ctx workflow.Context, in LaunchInput, claims []ClaimRef, instances []Instance) error {
	start := StartNodeClaimsInput{Cluster: in.Cluster, ClusterUID: in.ClusterUID, NodePool: in.NodePool, Group: in.Group, Claims: claims, Instances: instances[:len(claims)]}
	if len(claims) > maxChildren && workflow.GetVersion(ctx, "start-nodeclaims", workflow.DefaultVersion, 1) == 1 {
		_, err := StartNodeClaimsActivity.Run(ctx, start, fmt.Sprintf("start %d NodeClaim workflows", len(claims)))
		return err
	}
	started := make([]workflow.Future, 0, len(claims))
	for _, input := range start.NodeClaims() {
		child := workflow.ExecuteChildWorkflow(NodeClaimOptions(input).child(ctx), NodeClaim, input)
		started = append(started, child.GetChildWorkflowExecution())
	}
	for i, child := range started {
		if err := child.Get(ctx, nil); err != nil && !alreadyStarted(err) {
			return fmt.Errorf("start NodeClaim workflow of %s: %w", claims[i].Name, err)
		}
	}
	return nil
}

// launchToken makes the idempotency token of a try from the workflow's id and its claims, in any order. Both outlive a run:
// a run that is reset or started again uses the same token. A run that adopts other claims of the group needs another token,
// or it would be given the instances of the first. EC2 allows 64 ASCII characters.
func launchToken(workflowID string, claims []ClaimRef, try int) string {
	uids := make([]string, 0, len(claims))
	for _, claim := range claims {
		uids = append(uids, claim.UID)
	}
	slices.Sort(uids)
	named := workflowID + "\n" + strings.Join(uids, "\n") + "\n"
	sum := sha256.Sum256([]byte(named))
	return fmt.Sprintf("tenon-%s-%d", hex.EncodeToString(sum[:20]), try)
}

// releaseReason returns the reason for which claims are released.
func releaseReason(err error) string {
	switch {
	case err == nil, FailureType(err) == FailureInsufficientCapacity:
		return ReasonInsufficient
	case FailureType(err) == FailureNodeClassNotReady:
		return ReasonNodeClassNotReady
	case FailureType(err) == FailurePaused:
		return ReasonPaused
	default:
		return ReasonLaunchTimeout
	}
}

// message returns the activity's own message, without the layers Temporal wraps around it.
func message(err error) string {
	var failure *temporal.ApplicationError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failure):
		return failure.Message()
	default:
		return err.Error()
	}
}

func launchDetails(in LaunchInput, state string) string {
	details := fmt.Sprintf("Launch group **%s** of NodePool **%s**: %d claims.\n\n%s\n", in.Group, orNone(in.NodePool), len(in.Claims), state)
	for _, claim := range in.Claims {
		details += "\n- " + claim.Name
	}
	return details
}
