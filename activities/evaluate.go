package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// maxRemove limits the nodes that one evaluation removes as empty or overprovisioned, maxReplace the other commands it
// returns, and replaceBytes their size as JSON: a history records them three times, and a payload may have two megabytes.
const maxRemove, maxReplace, replaceBytes = 500, 100, 400 << 10

// evaluator decides which nodes are not needed, or are to be replaced.
type evaluator struct {
	cluster    workflows.Cluster
	mirror     Mirror
	seen       seen
	inputs     *inputs
	executions executions
	// disruptions caches the planner's last answer about nodes that may be removed, and lately holds what the last
	// evaluation knew of nodes that began to be disrupted.
	disruptions disruptions
	lately      lately
	counts      *Metrics
	log         *zap.Logger
}

// Evaluate decides over the mirror which nodes are not needed, exceed the requested number, or are to be replaced. It fails
// if the mirror may be stale, because nothing is disrupted on a stale view. It takes into account what Disruption has
// begun, even if this worker's mirror does not show it yet.
func (e *evaluator) Evaluate(ctx context.Context, in workflows.EvaluateInput) (workflows.Evaluation, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	anew, err := e.seen.awaitClaims(ctx, in.SeenVersion, in.ClusterUID)
	if err != nil {
		return workflows.Evaluation{}, fmt.Errorf("evaluate: %w", err)
	}
	if err := e.mirror.Fresh(freshEnough); err != nil {
		return workflows.Evaluation{}, fmt.Errorf("evaluate: %w", err)
	}
	began := time.Now()
	running, over, err := e.underWay(ctx, in.Running)
	if err != nil {
		return workflows.Evaluation{}, err
	}
	snapshot := e.mirror.Snapshot()
	if err := e.recall(ctx, snapshot); err != nil {
		return workflows.Evaluation{}, err
	}
	overlay(snapshot, going(running, in.Leaving))
	input := e.inputs.of(ctx, snapshot, in.Unavailable)
	disrupted := e.lately.counted(snapshot, remembered(in.Disrupted, e.lately.get()))
	input.Held, input.Settling, input.Begun = holds(in.Held, snapshot), settling(running), begun(disrupted)
	found := e.answer(input)
	result := e.commands(ctx, found, snapshot)
	e.counts.decided(result, found)
	e.counts.evaluated(time.Since(began))
	result.ClusterUID, result.Anew = e.seen.clusterUID, anew
	result.Over, result.NextLook, result.Note, result.Again = over, found.NextLook, verdictNote(found), result.Again || found.Again
	result.Disrupted = disrupted
	e.lately.set(e.lately.counted(snapshot, result.Begun(snapshot.Time)))
	logs.Of(ctx, e.log).Debug("evaluated", zap.Int("nodes", len(snapshot.Nodes)), zap.Int("removals", len(result.Commands)), zap.Int("replacements", len(result.Replacements)),
		zap.Int("underWay", len(running)))
	return result, nil
}

// Disrupt asks the planner which nodes may be removed. The starter asks it too, so that it wakes no workflow for nothing.
func (e *evaluator) Disrupt(ctx context.Context, snapshot *plan.Snapshot) plan.Disruption {
	input := e.inputs.of(ctx, snapshot, nil)
	input.Begun = begun(e.lately.counted(snapshot, e.lately.get()))
	return e.answer(input)
}

// Limits says how far the budgets and rates of the whole cluster, and the rates of NodePools, are used up. What began to be
// disrupted is what this process knows of it, as in Disrupt.
func (e *evaluator) Limits(snapshot *plan.Snapshot) []plan.Limit {
	return plan.Limits(plan.Input{Snapshot: snapshot, Rate: e.inputs.rate, Budgets: e.inputs.budgets, Begun: begun(e.lately.counted(snapshot, e.lately.get()))})
}

// answer asks the planner, and measures how long it takes.
func (e *evaluator) answer(input plan.Input) plan.Disruption {
	began := time.Now()
	found := e.disruptions.answer(input)
	e.counts.judged(time.Since(began))
	return found
}

// Pools returns every NodePool with what can be bought for it, as planning sees it.
func (e *evaluator) Pools(ctx context.Context) []plan.Pool { return e.inputs.catalogue.pools(ctx) }

// Observe says, by NodePool, what would be done now if no NodePool were only observed.
func (e *evaluator) Observe(ctx context.Context, snapshot *plan.Snapshot) map[string]plan.Observation {
	return plan.Observe(e.inputs.of(ctx, snapshot, nil))
}

// underWay separates the replacements that run from those whose workflow is over without having said so, for example
// because a person terminated it.
func (e *evaluator) underWay(ctx context.Context, said []workflows.Running) (running []workflows.Running, over []string, err error) {
	for _, r := range said {
		runs, err := e.executions.runs(ctx, e.cluster.ReplacementID(r.ID))
		switch {
		case err != nil:
			return nil, nil, err
		case runs:
			running = append(running, r)
		default:
			over = append(over, r.ID)
		}
	}
	return running, over, nil
}

// going returns the claims that are on their way out, whatever the mirror shows, each with the id of the replacement that
// removes it, empty if there is none.
func going(running []workflows.Running, leaving []workflows.Leaving) map[string]string {
	claims := map[string]string{}
	for _, l := range leaving {
		claims[l.Claim] = ""
	}
	for _, r := range running {
		for _, claim := range r.Claims {
			claims[claim] = r.ID
		}
	}
	return claims
}

// overlay marks nodes as leaving that the snapshot does not show as such yet. It replaces the snapshot's list of nodes
// instead of changing it.
func overlay(snapshot *plan.Snapshot, claims map[string]string) {
	copied := false
	for i, node := range snapshot.Nodes {
		replacement, goes := claims[node.Claim]
		if !goes || node.Claim == "" || node.Disrupted {
			continue
		}
		if !copied {
			snapshot.Nodes, copied = slices.Clone(snapshot.Nodes), true
		}
		marked := *node
		marked.Disrupted, marked.Deleting, marked.Replacement = true, true, cmp.Or(node.Replacement, replacement)
		snapshot.Nodes[i] = &marked
	}
}

// holds returns the nodes that must be left alone for now.
func holds(held []workflows.Held, snapshot *plan.Snapshot) map[string]plan.Hold {
	holds := map[string]plan.Hold{}
	for _, h := range held {
		if h.Until.After(snapshot.Time) {
			holds[h.Claim] = plan.Hold{Until: h.Until, Why: h.Why}
		}
	}
	return holds
}

// settling returns the NodePools that have a replacement in progress, and whether they wait for moved pods to be Ready.
func settling(running []workflows.Running) map[string]bool {
	pools := map[string]bool{}
	for _, r := range running {
		for _, pool := range r.Pools {
			pools[pool] = pools[pool] || r.WaitForReady
		}
	}
	return pools
}

// commands turns the planner's decisions into names, UIDs and complete claims, so that any worker can carry them out.
func (e *evaluator) commands(ctx context.Context, found plan.Disruption, snapshot *plan.Snapshot) workflows.Evaluation {
	nodes := make(map[string]*plan.Node, len(snapshot.Nodes))
	for _, node := range snapshot.Nodes {
		nodes[node.Key()] = node
	}
	var result workflows.Evaluation
	var moving []plan.Command
	removals := maxRemove
	for _, command := range found.Commands {
		if len(command.Nodes) == 0 {
			continue
		}
		if command.Reason == karpv1.DisruptionReasonEmpty || command.Reason == plan.DisruptionReasonOverprovisioned {
			if len(command.Nodes) > removals {
				command.Nodes, result.Again = command.Nodes[:removals], true
			}
			if removals -= len(command.Nodes); len(command.Nodes) > 0 {
				result.Commands = append(result.Commands, workflows.Removal{Reason: string(command.Reason), Nodes: named(command.Nodes, nodes)})
			}
			continue
		}
		moving = append(moving, command)
	}
	bytes := 0
	waits := func(command plan.Command) bool { return e.waitsForReady(command.Nodes, nodes) }
	for _, command := range plan.Join(moving, waits) {
		replace := workflows.ReplacementCommand{Reason: string(command.Reason), Nodes: named(command.Nodes, nodes), Claims: frozen(command.Replacements), Moves: command.Moves,
			SavesPerHour: command.SavesPerHour, Zone: command.Zone, Why: command.Why, WaitForReady: waits(command), Independent: command.Independent}
		for i, why := range command.Whys {
			replace.Nodes[i].Why = why
		}
		encoded, err := json.Marshal(replace)
		if err != nil {
			logs.Of(ctx, e.log).Error("a command cannot be encoded", zap.String("reason", replace.Reason), zap.Int("nodes", len(replace.Nodes)), zap.Error(err))
			continue
		}
		if len(result.Replacements) == maxReplace || bytes+len(encoded) > replaceBytes && bytes > 0 {
			result.Again = true
			break
		}
		bytes += len(encoded)
		result.Replacements = append(result.Replacements, replace)
	}
	return result
}

// waitsForReady reports whether a NodePool of the nodes requires moved pods to be Ready before the next node is replaced.
func (e *evaluator) waitsForReady(keys []string, nodes map[string]*plan.Node) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		pool := e.mirror.NodePool(nodes[key].Pool)
		return pool != nil && pool.Annotations[karpv1.WaitForReadyAnnotationKey] == "true"
	})
}

func named(keys []string, nodes map[string]*plan.Node) []workflows.RemovedNode {
	var list []workflows.RemovedNode
	for _, key := range keys {
		node := nodes[key]
		list = append(list, workflows.RemovedNode{Node: node.Name, NodeUID: string(node.UID), NodePool: node.Pool,
			Claim: workflows.ClaimRef{Name: node.Claim, UID: string(node.ClaimUID)}})
	}
	return list
}
