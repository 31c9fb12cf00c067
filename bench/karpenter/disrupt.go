package karpenter

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test"

	"github.com/tenon-sh/tenon/bench/compare"
)

// Disruptor is Karpenter's disruption controller without its loop: its mirror of a cluster, and its own methods.
type Disruptor struct {
	clock       clock.Clock
	client      *cache
	provider    *fake.CloudProvider
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	recorder    events.Recorder
	queue       *disruption.Queue
}

// quiet returns a context in which Karpenter logs nothing.
func quiet(ctx context.Context) context.Context {
	log.SetLogger(logging.NopLogger)
	ctx = injection.WithControllerName(log.IntoContext(ctx, logging.NopLogger), "disruption")
	return options.ToContext(ctx, test.Options())
}

// NewDisruptor fills Karpenter's mirror with the nodes and pods of a question. It fails if the question has waiting pods.
func NewDisruptor(ctx context.Context, q *compare.Question, clk clock.Clock) (*Disruptor, error) {
	if len(q.Pods) > 0 {
		return nil, errors.New("a cluster to take nodes from has no pods that wait")
	}
	ctx = quiet(ctx)
	d := &Disruptor{clock: clk, provider: fake.NewCloudProvider(), recorder: events.NewRecorder(&record.FakeRecorder{})}
	d.provider.InstanceTypesForNodePool = map[string][]*cloudprovider.InstanceType{}
	var objects []client.Object
	for _, pool := range q.Pools {
		converted, err := nodePool(pool)
		if err != nil {
			return nil, err
		}
		objects = append(objects, converted)
		d.provider.InstanceTypesForNodePool[pool.Name] = instanceTypes(q.Types[pool.Name])
	}
	d.client = newCache(newClient(add(objects, q.DaemonSets)))
	d.client.budgets = q.Budgets
	d.cluster = state.NewCluster(clk, d.client, d.provider)
	d.provisioner = provisioning.NewProvisioner(d.client, d.recorder, d.provider, d.cluster, clk, nil, nil)
	d.queue = disruption.NewQueue(d.client, d.recorder, d.cluster, clk, d.provisioner)
	for i := range q.Nodes {
		if err := d.add(ctx, &q.Nodes[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// add adds a node and its pods to the mirror.
func (d *Disruptor) add(ctx context.Context, n *compare.Node) error {
	claim, err := nodeClaim(n.Claim)
	if err != nil {
		return err
	}
	node := n.Node.DeepCopy()
	d.client.addNode(node)
	var pods []*corev1.Pod
	for _, pod := range n.Pods {
		pods = append(pods, pod.DeepCopy())
		d.client.addPod(pods[len(pods)-1])
	}
	d.cluster.UpdateNodeClaim(claim)
	if err := d.cluster.UpdateNode(ctx, node); err != nil {
		return fmt.Errorf("update node %s: %w", node.Name, err)
	}
	for _, pod := range pods {
		if err := d.cluster.UpdatePod(ctx, pod); err != nil {
			return fmt.Errorf("update pod %s: %w", compare.Key(pod), err)
		}
	}
	return nil
}

// Scan is the time that Karpenter's SimulateScheduling takes for one candidate.
type Scan struct {
	// Candidates is the number of nodes that it would try to consolidate; Asked is how many of them were timed here, taken
	// evenly.
	Candidates, Asked int
	// PerCandidate is the mean elapsed time of those, CPU their mean CPU time.
	PerCandidate, CPU time.Duration
	// Preparation is the time to find the candidates, once for each method.
	Preparation time.Duration
}

// Whole returns the time for all candidates, one simulation for each.
func (s Scan) Whole() time.Duration {
	return s.Preparation + time.Duration(s.Candidates)*s.PerCandidate
}

// Scan asks Karpenter about a sample of the candidates of its single-node consolidation, one by one, as that method does.
func (d *Disruptor) Scan(ctx context.Context, sample int) (Scan, error) {
	ctx = quiet(ctx)
	method := disruption.NewSingleNodeConsolidation(
		disruption.MakeConsolidation(d.clock, d.cluster, d.client, d.provisioner, d.provider, d.recorder, d.queue))
	start := time.Now()
	candidates, err := disruption.GetCandidates(ctx, d.cluster, d.client, d.recorder, d.clock, d.provider, method.ShouldDisrupt, method.Class(), d.queue)
	if err != nil {
		return Scan{}, fmt.Errorf("get candidates: %w", err)
	}
	scan := Scan{Candidates: len(candidates), Preparation: time.Since(start)}
	if len(candidates) == 0 {
		return scan, errors.New("Karpenter finds no candidates")
	}
	candidates = method.SortCandidates(ctx, candidates)
	scan.Asked = min(sample, len(candidates))
	start, used := time.Now(), compare.CPU()
	for i := range scan.Asked {
		candidate := candidates[i*len(candidates)/scan.Asked]
		_, err := disruption.SimulateScheduling(ctx, d.client, d.cluster, d.provisioner, d.clock, d.recorder,
			[]scheduling.Options{scheduling.IsConsolidationSimulation}, candidate)
		if err != nil {
			return scan, fmt.Errorf("simulate without %s: %w", candidate.Name(), err)
		}
	}
	scan.PerCandidate, scan.CPU = time.Since(start)/time.Duration(scan.Asked), (compare.CPU()-used)/time.Duration(scan.Asked)
	return scan, nil
}

// CommandDelay is how long Karpenter waits before it validates a command once more and carries it out
// (commandValidationDelay). It decides nothing else meanwhile.
const CommandDelay = 15 * time.Second

// Pass is the time that Karpenter takes to find a command.
type Pass struct {
	// First is the time to its first command of any kind, and FirstMove to the first that moves pods.
	First, FirstMove time.Duration
	// Commands is the number of commands found up to and including FirstMove; zero if none are found in the time that its
	// methods allow themselves.
	Commands int
}

// Pass runs Karpenter's methods in their order, each for as long as it allows itself, until one finds a command that moves
// pods. Karpenter's loop would wait for CommandDelay after each command.
func (d *Disruptor) Pass(ctx context.Context) (Pass, error) {
	ctx = quiet(ctx)
	var pass Pass
	start := time.Now()
	for i, method := range d.methods() {
		decisions, err := d.decide(ctx, method)
		if err != nil {
			return pass, err
		}
		if len(decisions) == 0 {
			continue
		}
		pass.Commands += len(decisions)
		if pass.First == 0 {
			pass.First = time.Since(start)
		}
		if i > 0 {
			pass.FirstMove = time.Since(start)
			return pass, nil
		}
	}
	return pass, nil
}

// methods returns those that remove nodes for lack of use, in Karpenter's order.
func (d *Disruptor) methods() []disruption.Method {
	common := disruption.MakeConsolidation(d.clock, d.cluster, d.client, d.provisioner, d.provider, d.recorder, d.queue)
	return []disruption.Method{
		disruption.NewEmptiness(common, disruption.WithValidator(believe{})),
		disruption.NewMultiNodeConsolidation(common, disruption.WithValidator(believe{})),
		disruption.NewSingleNodeConsolidation(common, disruption.WithValidator(believe{})),
	}
}

// Consolidate returns what Karpenter's disruption controller would remove for lack of use in one of its rounds: empty nodes;
// if there are none, several nodes at once; if none, a single one. It would wait for fifteen seconds and validate again
// before it acts; here nothing changes meanwhile.
func Consolidate(ctx context.Context, q *compare.Question) ([]compare.Decision, error) {
	d, err := NewDisruptor(ctx, q, clocktesting.NewFakeClock(q.At))
	if err != nil {
		return nil, err
	}
	ctx = quiet(ctx)
	for _, method := range d.methods() {
		decisions, err := d.decide(ctx, method)
		if err != nil || len(decisions) > 0 {
			return decisions, err
		}
	}
	return nil, nil
}

// believe is a validator that accepts every command.
type believe struct{}

// Validate implements disruption.Validator.
func (believe) Validate(_ context.Context, c disruption.Command, _ time.Duration) (disruption.Command, error) {
	return c, nil
}

// decide runs one method, as the controller does.
func (d *Disruptor) decide(ctx context.Context, method disruption.Method) ([]compare.Decision, error) {
	candidates, err := disruption.GetCandidates(ctx, d.cluster, d.client, d.recorder, d.clock, d.provider, method.ShouldDisrupt, method.Class(), d.queue)
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	budgets, err := disruption.BuildDisruptionBudgetMapping(ctx, d.cluster, d.clock, d.client, d.provider, d.recorder, method.Reason())
	if err != nil {
		return nil, err
	}
	commands, err := method.ComputeCommands(ctx, budgets, candidates...)
	if err != nil {
		return nil, err
	}
	var decisions []compare.Decision
	for _, command := range commands {
		if command.Decision() == disruption.NoOpDecision {
			continue
		}
		decision := compare.Decision{Reason: string(method.Reason())}
		for _, candidate := range command.Candidates {
			decision.Nodes = append(decision.Nodes, candidate.Name())
		}
		for _, replacement := range command.Replacements {
			decision.Buy = append(decision.Buy, machine(replacement.NodeClaim))
		}
		decisions = append(decisions, decision)
	}
	return decisions, nil
}
