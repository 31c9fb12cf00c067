package status

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// TestConditionsFollowWhatChanges takes a claim through all kinds of changes, and counts the writes.
func TestConditionsFollowWhatChanges(t *testing.T) {
	t.Parallel()
	w := newConditionWorld(t)
	w.step("a node that was initialized a moment ago", found{})
	w.clock(time.Minute)
	if next := w.step("it has been quiet for long enough, which is not worth a write at once", found{}); next != holdFor {
		t.Errorf("the next look is in %s, want %s", next, holdFor)
	}
	w.clock(holdFor)
	w.step("it is still there", found{writes: 1, consolidatable: true})
	w.step("and nothing changes", found{consolidatable: true})

	w.lastPod = w.time
	w.step("a pod came", found{writes: 1})
	w.clock(29 * time.Second)
	w.step("a second is left", found{})
	w.clock(time.Second)
	w.step("it is quiet again", found{})
	w.clock(holdFor)
	w.step("and still there", found{writes: 1, consolidatable: true})
	if got := w.claim().Status.LastPodEventTime; !got.Time.Equal(w.lastPod) {
		t.Errorf("lastPodEventTime is %v, want %v with the write that was made anyway", got, w.lastPod)
	}

	w.pool.Spec.Template.Labels = map[string]string{"team": "blue"}
	w.step("the template changed", found{writes: 1, drifted: plan.DriftNodePool, consolidatable: true})
	if got := w.claim().Condition(karpv1.ConditionTypeDrifted).Message; !strings.Contains(got, "labels[team]") {
		t.Errorf("message %q does not name the field", got)
	}
	w.pool.Spec.Template.Labels = nil
	w.step("and back", found{writes: 1, consolidatable: true})

	w.drift = cloud.Drift{Reason: "AMIDrift", Message: "an image"}
	w.step("the provider finds a newer image", found{writes: 1, drifted: "AMIDrift", consolidatable: true})
	w.drift, w.broken = cloud.Drift{}, errors.New("throttled")
	w.step("the provider does not answer, which takes nothing back", found{drifted: "AMIDrift", consolidatable: true})
	w.broken = nil
	w.class.Status.Conditions = nil
	w.step("the class is not resolved, which takes nothing back", found{drifted: "AMIDrift", consolidatable: true})
	w.ready()
	w.pool.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{}
	w.step("the image is the right one again, and consolidation is turned off: one write", found{writes: 1})

	w.drift = cloud.Drift{Reason: "AMIDrift", Message: "an image"}
	w.pool.DeletionTimestamp = new(metav1.Now())
	w.step("a pool that is being deleted takes its claims along", found{})
	w.pool.DeletionTimestamp = nil
	w.deleting = true
	w.step("a claim that is being deleted is left alone", found{})
}

// TestAChangedClassIsNamed checks that the message names the changed fields of a class, if its earlier spec was seen.
func TestAChangedClassIsNamed(t *testing.T) {
	t.Parallel()
	w := newConditionWorld(t)
	hashed := func(hash string) {
		w.class.Annotations = map[string]string{awsv1.AnnotationEC2NodeClassHash: hash}
	}
	message := func(why, want string) {
		t.Helper()
		if got := w.claim().Condition(karpv1.ConditionTypeDrifted).Message; got != want {
			t.Errorf("%s: the message is %q, want %q", why, got, want)
		}
	}
	w.classHash = "1"
	hashed("1")
	w.class.Name = "default"
	w.class.Spec.Tags = map[string]string{"team": "blue"}
	w.step("nothing has happened", found{})
	w.class.Spec.Tags = map[string]string{"team": "red"}
	w.class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: "subnet-2"}}
	w.step("the edit shows before its hash", found{})
	hashed("2")
	w.drift = cloud.Drift{Reason: cloud.DriftNodeClass, Message: "hash 1, now 2"}
	w.step("the hash has changed", found{writes: 1, drifted: cloud.DriftNodeClass})
	message("what changed is named", "EC2NodeClass default: spec.tags changed since the claim was made")
	w.keeper.drift.specs = newClassSpecs(nodeclass.Kind())
	w.step("another worker has not seen it", found{drifted: cloud.DriftNodeClass})
	hashed("1")
	w.drift = cloud.Drift{}
	w.step("the class is what it was", found{writes: 1})
	hashed("3")
	w.keeper.drift.specs = newClassSpecs(nodeclass.Kind())
	w.drift = cloud.Drift{Reason: cloud.DriftNodeClass, Message: "hash 1, now 3"}
	w.step("a change nobody saw", found{writes: 1, drifted: cloud.DriftNodeClass})
	message("only the hashes are known", "hash 1, now 3")
}

// TestConsolidatableIsWrittenOnceQuietLasts checks that a short consolidateAfter does not cost two writes for every
// pod.
func TestConsolidatableIsWrittenOnceQuietLasts(t *testing.T) {
	t.Parallel()
	w := newConditionWorld(t)
	w.pool.Spec.Disruption.ConsolidateAfter = karpv1.NewNillableDuration(5 * time.Second)
	w.clock(time.Minute)
	w.step("quiet", found{})
	w.clock(holdFor)
	w.step("quiet for a while", found{writes: 1, consolidatable: true})
	for range 5 {
		w.clock(10 * time.Second)
		w.lastPod = w.time
		w.step("a pod comes", found{consolidatable: true})
	}
}

// TestWhatGoesIsNotConsolidatable checks that Consolidatable is not written while a node is being removed, and is
// written if the node stays after all.
func TestWhatGoesIsNotConsolidatable(t *testing.T) {
	t.Parallel()
	w := newConditionWorld(t)
	taints := []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
	w.clock(time.Minute)
	w.node.Spec.Taints = taints
	w.step("it is marked as soon as it is quiet", found{})
	w.clock(holdFor)
	w.step("it waits for what replaces it", found{})
	w.node.Spec.Taints = nil
	w.step("that was taken back", found{})
	w.clock(holdFor)
	w.step("it stays", found{writes: 1, consolidatable: true})
	w.node.Spec.Taints = taints
	w.lastPod = w.time
	w.step("it is marked again, and pods leave it", found{consolidatable: true})
	w.node.Spec.Taints = nil
	w.step("it stays again, and is not quiet", found{writes: 1})
}

// TestTheCloudIsAskedOnceForAll checks that claims cost no calls of their own.
func TestTheCloudIsAskedOnceForAll(t *testing.T) {
	t.Parallel()
	w := newConditionWorld(t)
	for range 3 {
		w.step("a look at the claims", found{})
	}
	if len(w.asked) != 1 {
		t.Errorf("the cloud was asked %d times, want once", len(w.asked))
	}
	w.clock(time.Minute)
	w.step("quiet", found{})
	w.clock(holdFor)
	w.step("quiet for a while", found{writes: 1, consolidatable: true})
	w.clock(factsEvery)
	if next := w.step("the facts are old", found{consolidatable: true}); next != factsEvery || len(w.asked) != 2 {
		t.Errorf("the cloud was asked %d times and will be in %s, want twice and in %s", len(w.asked), next, factsEvery)
	}
	w.down = errors.New("EC2 is away")
	w.clock(factsEvery)
	if next := w.step("the cloud is away", found{consolidatable: true}); next != factsRetry {
		t.Errorf("the cloud is asked again in %s, want %s", next, factsRetry)
	}
}

// TestNewInstancesAreAskedFor checks that the cloud is asked soon about an instance too new for its last answer, about
// no other, and not for ever.
func TestNewInstancesAreAskedFor(t *testing.T) {
	t.Parallel()
	w := newConditionWorld(t)
	w.pool.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{}
	w.missing = true
	if next := w.step("the instance is not known", found{}); next != factsSoon {
		t.Errorf("the cloud is asked again in %s, want in %s", next, factsSoon)
	}
	w.clock(factsSoon - time.Second)
	w.step("a moment later", found{})
	w.clock(time.Second)
	w.drift = cloud.Drift{Reason: "AMIDrift", Message: "an image"}
	w.step("still not, and what the claim knows is compared", found{writes: 1, drifted: "AMIDrift"})
	w.drift = cloud.Drift{}
	w.step("what does not follow from the claim takes nothing back", found{drifted: "AMIDrift"})
	w.missing = false
	w.clock(factsSoon)
	w.step("now it is known", found{writes: 1})
	w.missing = true
	w.clock(factsEvery)
	if next := w.step("it is gone", found{}); next != factsEvery {
		t.Errorf("the cloud is asked again in %s, want in %s", next, factsEvery)
	}
	one := cloud.Query{IDs: []string{"i-1"}}
	if diff := cmp.Diff([]cloud.Query{{}, one, one, {}}, w.asked); diff != "" {
		t.Errorf("what was asked for (-want +got):\n%s", diff)
	}
}

// conditionWorld is a cluster of one node in memory: the mirror shows what the API server has.
type conditionWorld struct {
	t        *testing.T
	client   kube.Client
	keeper   *NodeClaims
	time     time.Time
	pool     *karpv1.NodePool
	class    *awsv1.EC2NodeClass
	node     *corev1.Node
	lastPod  time.Time
	deleting bool
	writes   int
	// asked are the queries to the cloud.
	asked   []cloud.Query
	missing bool
	drift   cloud.Drift
	// classHash is the hash of the class that the claim was made from.
	classHash string
	// broken is the error of the provider's Drift, down that of its Instances.
	broken, down error
}

func newConditionWorld(t *testing.T) *conditionWorld {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := &conditionWorld{t: t, time: start, pool: testPool("default"), class: &awsv1.EC2NodeClass{},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", CreationTimestamp: metav1.NewTime(start)}}}
	w.pool.Spec.Disruption.ConsolidateAfter = karpv1.NewNillableDuration(30 * time.Second)
	w.ready()
	made := plan.Claim{NodePool: "default"}
	claim, err := made.NodeClaim(w.pool, "default-abcde")
	if err != nil {
		t.Fatal(err)
	}
	claim.CreationTimestamp = metav1.NewTime(start)
	claim.Status.ProviderID, claim.Status.NodeName = "aws:///a/i-1", "node"
	for _, condition := range claim.ReadyParts() {
		claim.SetCondition(metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)})
	}
	w.client = countingClient(t, claim, &w.writes)
	w.keeper = NewNodeClaims(nodeclass.Kind(), w.client, w, w, zaptest.NewLogger(t))
	w.keeper.now = func() time.Time { return w.time }
	return w
}

func (w *conditionWorld) ready() {
	w.class.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: metav1.ConditionTrue}}
}

func (w *conditionWorld) clock(d time.Duration) { w.time = w.time.Add(d) }

// found is how many writes a pass takes, and the claim's conditions after it.
type found struct {
	writes         int
	drifted        string
	consolidatable bool
}

// step makes a pass and checks its result. It returns when the next is due.
func (w *conditionWorld) step(reason string, want found) time.Duration {
	w.t.Helper()
	w.writes = 0
	next, err := w.keeper.pass(context.Background())
	if err != nil {
		w.t.Errorf("%s: %v", reason, err)
	}
	claim := w.claim()
	got := found{writes: w.writes, consolidatable: claim.IsTrue(karpv1.ConditionTypeConsolidatable)}
	if condition := claim.Condition(karpv1.ConditionTypeDrifted); condition != nil {
		got.drifted = condition.Reason
	}
	if got != want {
		w.t.Errorf("%s: %+v, want %+v", reason, got, want)
	}
	for _, kind := range []string{karpv1.ConditionTypeDrifted, karpv1.ConditionTypeConsolidatable} {
		if condition := claim.Condition(kind); condition != nil && condition.Status != metav1.ConditionTrue {
			w.t.Errorf("%s: %s is %s, want True or nothing", reason, kind, condition.Status)
		}
	}
	return next
}

func (w *conditionWorld) claim() *karpv1.NodeClaim {
	w.t.Helper()
	var claim karpv1.NodeClaim
	if err := w.client.Get(context.Background(), kube.ObjectKey{Name: "default-abcde"}, &claim); err != nil {
		w.t.Fatal(err)
	}
	if w.classHash != "" {
		claim.Annotations[awsv1.AnnotationEC2NodeClassHash] = w.classHash
	}
	if w.deleting {
		claim.DeletionTimestamp = new(metav1.Now())
	}
	return &claim
}

func (w *conditionWorld) WaitSynced(context.Context) error                     { return nil }
func (w *conditionWorld) Fresh(time.Duration) error                            { return nil }
func (w *conditionWorld) Subscribe(...cluster.EventKind) *cluster.Subscription { return nil }
func (w *conditionWorld) Claims() []*karpv1.NodeClaim                          { return []*karpv1.NodeClaim{w.claim()} }
func (w *conditionWorld) NodeClass(string) cloud.NodeClass                     { return w.class }

func (w *conditionWorld) Snapshot() *plan.Snapshot {
	reduce := new(plan.Interner)
	node := reduce.Claim(w.claim()).Join(reduce.Node(w.node))
	node.LastPodEvent = w.lastPod
	return &plan.Snapshot{Time: w.time, Nodes: []*plan.Node{node}, NodePools: []*karpv1.NodePool{w.pool}}
}

func (w *conditionWorld) InstanceTypes(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error) {
	return nil, nil
}

func (w *conditionWorld) Instances(_ context.Context, query cloud.Query) ([]cloud.Instance, error) {
	w.asked = append(w.asked, query)
	if w.missing {
		return nil, w.down
	}
	return []cloud.Instance{{ProviderID: "aws:///a/i-1"}}, w.down
}

func (w *conditionWorld) Drift(_ context.Context, _ cloud.NodeClass, questions []cloud.DriftQuestion) ([]cloud.Drift, error) {
	return slices.Repeat([]cloud.Drift{w.drift}, len(questions)), w.broken
}
