package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// orphanAge is how old an instance without a claim must be before it counts as nobody's: Karpenter's thirty seconds.
	orphanAge = 30 * time.Second
	// adoptAge is how old a claim without instance and workflow must be before it is adopted: its Launch is on the way.
	adoptAge = time.Minute
	// tagMost bounds the names written onto instances in one sweep; EC2 grants few such calls.
	tagMost = 50
)

// The tags that tell people in the EC2 console what an instance is. The cloud needs neither.
const (
	tagName  = "Name"
	tagClaim = "karpenter.sh/nodeclaim"
)

// sweeper finds what was left over, and has it put right.
type sweeper struct {
	// cluster and clusterUID tell what is this cluster's from what is another's of its name.
	cluster    workflows.Cluster
	clusterUID string
	objects    objects
	mirror     Mirror
	cloud      cloud.Provider
	executions executions
	undoer     *undoer
	events     recorder
	// share is the share of the nodes that one sweep may end; see Config.SweepMost.
	share float64
	// metrics counts what sweeps do; nil where nobody does.
	metrics *SweepMetrics
	// swept is what workflows were told.
	swept swept
	log   *zap.Logger
}

// Sweep compares cloud, cluster and workflows. What it finds was left by a crash at an unlucky line, by a bug or by a
// person, so it is careful: it reads the claims after the instances, acts only on what is old enough, and asks Temporal
// about each workflow by id, since the list of workflows may lag. The cluster is compared as the mirror shows it; what
// looks wrong there is read from the API server before anything is concluded. What cannot be put right is named in the result, and
// keeps nothing else from being put right. How much one sweep ends is bounded; see sweepcap.go.
func (w *sweeper) Sweep(ctx context.Context, _ workflows.SweepInput) (workflows.SweepResult, error) {
	ctx, done := attend(ctx)
	defer done()
	instances, err := w.cloud.Instances(ctx, cloud.Query{})
	if err != nil {
		return workflows.SweepResult{}, cloudFailure("list instances", err)
	}
	if err := w.mirror.Fresh(freshEnough); err != nil {
		return workflows.SweepResult{}, fmt.Errorf("compare the cluster: %w", err)
	}
	claims := w.mirror.Claims()
	nodes := slices.DeleteFunc(w.mirror.Nodes(), func(node *corev1.Node) bool { return node.Labels[karpv1.NodeRegisteredLabelKey] == "" })
	s := sweep{sweeper: w, now: time.Now(), instances: map[string]cloud.Instance{}, claims: map[string]*karpv1.NodeClaim{},
		named: map[string]*karpv1.NodeClaim{}, alive: map[string]bool{},
		most:   sweepMost(w.share, len(instances)),
		result: workflows.SweepResult{Instances: len(instances), Claims: len(claims)}}
	for _, instance := range instances {
		s.instances[instance.ProviderID] = instance
		s.alive[instance.ID] = true
	}
	for _, claim := range claims {
		s.named[claim.Name] = claim
		if id := claim.Status.ProviderID; id != "" {
			s.claims[id] = claim
		}
	}
	if err := s.list(ctx); err != nil {
		return s.result, err
	}
	if s.vanished(); s.result.Stopped == "" {
		s.lives(ctx)
		s.orphans(ctx, instances)
	}
	s.adoptions(ctx, claims)
	s.strays(ctx)
	s.nodes(ctx, nodes)
	s.marks(ctx, nodes)
	s.nameInstances(ctx)
	s.stuck(ctx)
	w.metrics.swept(s.result)
	if r := s.result; len(r.Terminated)+len(r.Adopted)+len(r.Lost)+len(r.Nodes)+len(r.Unmarked)+len(r.Dropped)+len(r.Ended)+len(r.Failed)+len(r.Stuck)+r.Withheld > 0 || r.Stopped != "" {
		w.log.Warn("sweep put something right", zap.Strings("terminated", r.Terminated), zap.Strings("adopted", r.Adopted), zap.Strings("ended", r.Ended),
			zap.Strings("lost", r.Lost), zap.Strings("nodes", r.Nodes), zap.Strings("unmarked", r.Unmarked), zap.Strings("dropped", r.Dropped),
			zap.Strings("failed", r.Failed), zap.Strings("stuck", r.Stuck), zap.Int("withheld", r.Withheld), zap.String("stopped", r.Stopped))
	}
	return s.result, ctx.Err()
}

// sweep is one comparison: instances and launched claims by provider id.
type sweep struct {
	*sweeper
	now time.Time
	// listed are the workflows that run according to Temporal's list, which may lag: what it lacks is asked for by id.
	listed    map[string]listedWorkflow
	instances map[string]cloud.Instance
	// alive has the ids of all instances.
	alive  map[string]bool
	claims map[string]*karpv1.NodeClaim
	// named are all claims by name.
	named map[string]*karpv1.NodeClaim
	// most is how many nodes this sweep may still end.
	most   int
	result workflows.SweepResult
}

// failedMost bounds what a sweep says of objects that it could not put right.
const failedMost = 20

// fail notes what could not be put right, if there is an error. The next sweep tries again.
func (s *sweep) fail(what string, err error) {
	if err == nil {
		return
	}
	if len(s.result.Failed) < failedMost {
		s.result.Failed = append(s.result.Failed, fmt.Sprintf("%s: %.*s", what, whyMost, err))
	}
	s.result.Failures++
}

// orphans terminates instances that no claim has, whose claim's workflow does not run, and that no launch will still hand
// out.
func (s *sweep) orphans(ctx context.Context, instances []cloud.Instance) {
	held := map[string]bool{}
	for _, listed := range s.listed {
		held[listed.instance] = true
	}
	var suspects []cloud.Instance
	launching := map[string]bool{}
	for _, instance := range instances {
		if s.claims[instance.ProviderID] != nil || held[instance.ID] || s.now.Sub(instance.LaunchTime) < orphanAge {
			continue
		}
		if _, known := launching[instance.LaunchGroup]; !known && instance.LaunchGroup != "" {
			running, err := s.running(ctx, s.cluster.LaunchID(instance.LaunchGroup))
			s.fail("instance "+instance.ID, err)
			launching[instance.LaunchGroup] = running || err != nil
		}
		if !launching[instance.LaunchGroup] {
			suspects = append(suspects, instance)
		}
	}
	if len(suspects) == 0 {
		return
	}
	// What a Launch handed out before it ended is either written on a claim by now, or missing on one.
	claims, err := s.objects.listClaims(ctx)
	if err != nil {
		s.fail("instances nobody owns", err)
		return
	}
	claimed, waiting := map[string]bool{}, map[string]bool{}
	for i := range claims {
		claimed[claims[i].Status.ProviderID] = true
		waiting[launchGroup(&claims[i])] = waiting[launchGroup(&claims[i])] || claims[i].Status.ProviderID == ""
	}
	var ids []string
	for _, instance := range suspects {
		if !claimed[instance.ProviderID] && !waiting[instance.LaunchGroup] {
			ids = append(ids, instance.ID)
		}
	}
	if len(ids) > s.most && 2*len(ids) > len(instances) && s.share < 1 {
		s.result.Stopped = fmt.Sprintf("%d of %d instances have neither a NodeClaim nor a workflow; none is terminated. They may be another cluster's of this name. "+
			"Run the worker with --sweep-most=1 if they are to go", len(ids), len(instances))
		return
	}
	ids = ids[:len(ids)-s.spend(len(ids))]
	if len(ids) == 0 {
		return
	}
	if err := s.cloud.Terminate(ctx, ids); err != nil {
		s.fail("instances nobody owns", cloudFailure("terminate", err))
		return
	}
	s.result.Terminated = ids
}

// adoptions gives claims without a workflow theirs, and tells claims whose instance is gone.
func (s *sweep) adoptions(ctx context.Context, claims []*karpv1.NodeClaim) {
	launched, lost := 0, 0
	for _, claim := range claims {
		if claim.Status.ProviderID == "" {
			continue
		}
		launched++
		if s.lost(claim) {
			lost++
		}
	}
	doubtful := lost > sweepMost(s.share, launched) && 2*lost > launched && s.share < 1
	if doubtful {
		s.result.Stopped = fmt.Sprintf("the cloud shows no instance for %d of %d launched NodeClaims; none is ended for that. "+
			"Look whether the worker asks the right account and region, or run it with --sweep-most=1 if they are gone", lost, launched)
	}
	var strange []*karpv1.NodeClaim
	for _, claim := range claims {
		if doubtful && s.lost(claim) {
			continue
		}
		// Our own claims have their workflow before it writes down their instance. One that has an instance and no workflow
		// was launched by another controller, and is adopted however young it is.
		if s.now.Sub(claim.CreationTimestamp.Time) < adoptAge && (claim.Status.ProviderID == "" || s.lost(claim)) {
			continue
		}
		_, lives := s.listed[s.cluster.NodeClaimID(claim.Name)]
		switch {
		case claim.Status.ProviderID == "":
			s.fail("NodeClaim "+claim.Name, s.adoptLaunch(ctx, claim, claims))
		case s.lost(claim):
			s.fail("NodeClaim "+claim.Name, s.tellLost(ctx, claim))
		case !lives:
			strange = append(strange, claim)
		}
	}
	s.adoptClaims(ctx, strange)
}

// adoptLaunch has a claim launched that has neither instance nor workflow. One that was made for a replacement which is
// over would be launched for nothing.
func (s *sweep) adoptLaunch(ctx context.Context, claim *karpv1.NodeClaim, all []*karpv1.NodeClaim) error {
	if orphaned, err := s.dropOrphan(ctx, claim); orphaned || err != nil {
		return err
	}
	if running, err := s.running(ctx, s.cluster.NodeClaimID(claim.Name)); running || err != nil {
		return err
	}
	group := UnlaunchedGroup(claim, all)
	if running, err := s.running(ctx, s.cluster.LaunchID(group.Group)); running || err != nil {
		return err
	}
	in := workflows.LaunchInput{Cluster: s.cluster, ClusterUID: s.clusterUID, LaunchGroup: group, Adopted: true}
	if _, err := s.executions.ExecuteWorkflow(ctx, workflows.LaunchOptions(s.cluster, group).Client(), workflows.LaunchType, in); err != nil {
		return fmt.Errorf("adopt NodeClaim %s: %w", claim.Name, err)
	}
	s.result.Adopted = append(s.result.Adopted, claim.Name)
	return nil
}

// adoptAtOnce is how many claims are adopted at the same time. Each takes three questions, and after another controller
// there may be thousands.
const adoptAtOnce = 32

// adoptClaims starts the workflows of launched claims that have none.
func (s *sweep) adoptClaims(ctx context.Context, claims []*karpv1.NodeClaim) {
	adopted, failed := make([]bool, len(claims)), make([]error, len(claims))
	var group errgroup.Group
	group.SetLimit(adoptAtOnce)
	for i, claim := range claims {
		group.Go(func() error {
			adopted[i], failed[i] = s.adoptClaim(ctx, claim)
			return nil
		})
	}
	_ = group.Wait() // each says for itself why it failed
	for i, claim := range claims {
		s.fail("NodeClaim "+claim.Name, failed[i])
		if adopted[i] {
			s.result.Adopted = append(s.result.Adopted, claim.Name)
		}
	}
}

// adoptClaim starts the workflow of a launched claim, unless it runs or the claim is gone by now.
func (s *sweep) adoptClaim(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	in := ClaimInput(s.cluster, s.clusterUID, claim)
	options := workflows.NodeClaimOptions(in)
	if running, err := s.executions.runs(ctx, options.ID); running || err != nil {
		return false, err
	}
	if there, err := s.objects.claim(ctx, in.Claim); there == nil || err != nil {
		return false, err
	}
	if _, err := s.executions.ExecuteWorkflow(ctx, options.Client(), workflows.NodeClaimType, in); err != nil {
		return false, fmt.Errorf("adopt NodeClaim %s: %w", claim.Name, err)
	}
	return true, nil
}

// tellLost tells the workflow of a launched claim, which is started where there is none, that its instance is gone.
func (s *sweep) tellLost(ctx context.Context, claim *karpv1.NodeClaim) error {
	in := ClaimInput(s.cluster, s.clusterUID, claim)
	options := workflows.NodeClaimOptions(in)
	ending := workflows.Ending{Reason: workflows.ReasonInstanceGone, Lost: true, Deleting: !claim.DeletionTimestamp.IsZero()}
	err := s.executions.SignalWorkflow(ctx, options.ID, "", workflows.SignalEnding, ending)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		// A workflow ends after its claim. Where the claim is gone too, the node has gone for a reason of its own since the
		// claims were listed.
		there, claimErr := s.objects.claim(ctx, in.Claim)
		if there == nil || claimErr != nil {
			return claimErr
		}
		_, err = s.executions.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalEnding, ending, options.Client(), workflows.NodeClaimType, in)
	}
	if err != nil {
		return fmt.Errorf("tell NodeClaim %s that its instance is gone: %w", claim.Name, err)
	}
	s.result.Lost = append(s.result.Lost, claim.Name)
	return nil
}

// lost reports whether a claim's instance is gone: the cloud does not show it although it is old enough to be visible,
// nobody is terminating it, and its Node is not ready.
func (s *sweep) lost(claim *karpv1.NodeClaim) bool {
	if claim.Status.ProviderID == "" {
		return false
	}
	launched := claim.Condition(karpv1.ConditionTypeLaunched)
	if _, there := s.instances[claim.Status.ProviderID]; there || launched == nil || s.now.Sub(launched.LastTransitionTime.Time) < consistencyLag ||
		claim.IsTrue(karpv1.ConditionTypeInstanceTerminating) {
		return false
	}
	node := s.mirror.NodeByProviderID(claim.Status.ProviderID)
	return node == nil || !ready(node)
}

// nodes lets Node objects go that Tenon once registered and whose claim and instance are both gone.
func (s *sweep) nodes(ctx context.Context, list []*corev1.Node) {
	suspects := slices.DeleteFunc(slices.Clone(list), func(node *corev1.Node) bool {
		_, there := s.instances[node.Spec.ProviderID]
		return there || s.claims[node.Spec.ProviderID] != nil || s.now.Sub(node.CreationTimestamp.Time) < consistencyLag || ready(node)
	})
	if len(suspects) == 0 {
		return
	}
	claims, err := s.objects.listClaims(ctx)
	if err != nil {
		s.fail("Nodes nobody owns", err)
		return
	}
	for _, node := range suspects {
		if slices.ContainsFunc(claims, func(claim karpv1.NodeClaim) bool { return claim.Status.ProviderID == node.Spec.ProviderID }) {
			continue
		}
		err := s.letGo(ctx, node)
		s.fail("Node "+node.Name, err)
		if err == nil {
			s.result.Nodes = append(s.result.Nodes, node.Name)
		}
	}
}

// letGo deletes a Node object that is nobody's, unless it has become ready.
func (s *sweep) letGo(ctx context.Context, node *corev1.Node) error {
	node, err := s.objects.node(ctx, node.Name, string(node.UID))
	if err != nil || node == nil || ready(node) {
		return err
	}
	if _, err := s.objects.change(ctx, node, "take the finalizer off", func(node *corev1.Node) {
		controllerutil.RemoveFinalizer(node, karpv1.TerminationFinalizer)
	}); err != nil {
		return err
	}
	return ignoreNotFound("delete Node "+node.Name, s.objects.Delete(ctx, node, client.Preconditions{UID: &node.UID}))
}

// nameInstances writes onto instances which node and claim they are, a few in each sweep. A Name that the
// node class or a person has given stays. It is for people only, so a failure is logged and nothing more.
func (s *sweep) nameInstances(ctx context.Context) {
	ids := make([]string, 0, len(s.instances))
	for id, instance := range s.instances {
		if claim := s.claims[id]; claim != nil && claim.Status.NodeName != "" && instance.Tags[tagClaim] != claim.Name {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids[:min(len(ids), tagMost)] {
		claim := s.claims[id]
		tags := map[string]string{tagClaim: claim.Name}
		if _, named := s.instances[id].Tags[tagName]; !named {
			tags[tagName] = claim.Status.NodeName
		}
		if err := s.cloud.Tag(ctx, s.instances[id].ID, tags); err != nil {
			s.log.Warn("could not name an instance", zap.String("instance", s.instances[id].ID), zap.String("claim", claim.Name), zap.Error(err))
			return
		}
	}
}

// running reports whether a workflow runs.
func (s *sweep) running(ctx context.Context, id string) (bool, error) {
	if _, listed := s.listed[id]; listed {
		return true, nil
	}
	return s.executions.runs(ctx, id)
}
