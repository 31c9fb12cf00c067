package crash_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

// maxAwait is how long anything may take while the worker keeps dying. A shorter limit would prove nothing.
const maxAwait = 5 * time.Minute

// story is a course of events for the nodes of a pool.
type story struct {
	name string
	tell func(*telling)
}

// stories run at the same time within a chapter, each with its own NodePool and namespace: while one waits for a dead worker
// to be noticed, the others proceed to their points.
var stories = [][]story{{
	{"drained", drained},
	{"deleted", deleted},
	{"refused", refused},
	{"adopted", adopted},
	{"takenback", takenBack},
	{"deadline", deadline},
	{"counted", counted},
}, {
	{"replaced", replaced},
	{"unready", unready},
	{"unlaunched", unlaunched},
	{"overtaken", overtaken},
	{"poolless", poolless},
}}

// dry is the instance type without capacity.
const dry = "m5.large"

// lame is the instance type whose machines never become ready.
const lame = "m5.xlarge"

// refusing returns the faults under which the stories run. The lag makes a termination slow enough to be reported on the
// claim.
func refusing() ec2sim.Faults {
	return ec2sim.Faults{
		Capacity:    []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: dry}}},
		DescribeLag: ec2sim.Duration(9 * time.Second),
		NeverReady:  []ec2sim.BootFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: lame}}},
	}
}

// drained: a node is drained by hand under a disruption budget, then all pods are removed and the nodes with them.
func drained(s *telling) {
	s.pool(s.name, "c5.large", "")
	s.run(6, "")
	release := s.guard.Budget(s.World, s.namespace, 5)
	node := s.node()
	s.tenon("drain", node)
	s.awaitNoNode(node)
	s.AwaitRunning(s.namespace, 6, maxAwait)
	release()
	s.scaleToZero()
}

// deleted: the claim of a node with pods under a disruption budget is deleted.
func deleted(s *telling) {
	s.pool(s.name, "c5.large", "")
	s.run(6, "")
	release := s.guard.Budget(s.World, s.namespace, 5)
	node := s.node()
	s.deleteClaimOf(node)
	s.awaitNoNode(node)
	s.AwaitRunning(s.namespace, 6, maxAwait)
	release()
	s.scaleToZero()
}

// refused: the preferred pool has no capacity, so its claims are given back and the pods are planned for another pool.
func refused(s *telling) {
	s.pool(s.name, "c5.large", "")
	s.pool(s.name+"-preferred", dry, "weight: 10")
	s.run(2, "")
	s.scaleToZero()
}

// adopted: two claims of one launch group that no workflow launches, and one claim made by hand.
func adopted(s *telling) {
	group := fmt.Sprintf("by-hand-%d", s.round)
	names := []string{s.namespace + "-a", s.namespace + "-b", s.namespace + "-alone"}
	for _, name := range names {
		annotations := "{}"
		if !strings.HasSuffix(name, "alone") {
			annotations = fmt.Sprintf("{%s: %s}", karpv1.LaunchGroupAnnotationKey, group)
		}
		s.Apply(fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s, annotations: %s}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [c5.large]}
  - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
`, name, annotations))
	}
	for _, name := range names {
		s.Await("claim "+name+" initialized", maxAwait, func() (bool, string) {
			claim := s.claim(name)
			return claim != nil && claim.IsTrue(karpv1.ConditionTypeInitialized), fmt.Sprintf("%+v", claim)
		})
	}
	for _, name := range names {
		s.deleteClaim(name)
	}
	for _, name := range names {
		s.Await("claim "+name+" gone", maxAwait, func() (bool, string) { claim := s.claim(name); return claim == nil, fmt.Sprintf("%+v", claim) })
	}
}

// takenBack: a drain that a budget blocks for good is cancelled, and the node keeps serving.
func takenBack(s *telling) {
	s.pool(s.name, "c5.large", "")
	s.run(2, "")
	release := s.guard.Budget(s.World, s.namespace, 2)
	node := s.node()
	s.tenon("drain", node, "--keep")
	s.Await("node "+node+" cordoned", maxAwait, func() (bool, string) { return s.cordoned(node), "" })
	s.tenon("drain", "cancel", node)
	s.Await("node "+node+" given back", maxAwait, func() (bool, string) {
		out, err := s.Tenon("drain", "status", node)
		return err == nil && strings.Contains(out, "Canceled") && !s.cordoned(node), fmt.Sprintf("%v: %s", err, out)
	})
	s.AwaitRunning(s.namespace, 2, maxAwait)
	release()
	s.scaleToZero()
}

// deadline: a pod that may not be disrupted is deleted when the claim's terminationGracePeriod ends.
func deadline(s *telling) {
	s.pool(s.name, "c5.large", "terminationGracePeriod: 60s")
	s.run(1, "karpenter.sh/do-not-disrupt: 'true'")
	node := s.node()
	s.deleteClaimOf(node)
	s.awaitNoNode(node)
	s.AwaitRunning(s.namespace, 1, maxAwait)
	s.scaleToZero()
}

// counted: a static pool is scaled to three nodes, then to one and to none. Whatever dies in between, exactly three
// instances are launched.
func counted(s *telling) {
	before := s.launched()
	for _, replicas := range []int{3, 1, 0} {
		s.pool(s.name, "c5.large", fmt.Sprintf("replicas: %d", replicas))
		s.Await(fmt.Sprintf("%d nodes of a static pool", replicas), maxAwait, func() (bool, string) {
			ready, state := 0, ""
			for _, claim := range s.Claims() {
				if claim.Labels[karpv1.NodePoolLabelKey] != s.name {
					continue
				}
				state += fmt.Sprintf(" %s (initialized %t, deleted %t)", claim.Name, claim.IsTrue(karpv1.ConditionTypeInitialized), !claim.DeletionTimestamp.IsZero())
				if claim.IsTrue(karpv1.ConditionTypeInitialized) && claim.DeletionTimestamp.IsZero() {
					ready++
				} else {
					ready = -1 << 20
				}
			}
			return ready == replicas, state
		})
	}
	if launched := s.launched() - before; launched != 3 {
		s.T.Errorf("%d instances were launched for a pool of three nodes", launched)
	}
}

// launched counts the instances that were ever launched for the story's pool.
func (s *telling) launched() int {
	s.T.Helper()
	count := 0
	for _, instance := range s.Instances() {
		if instance.Tags[karpv1.NodePoolLabelKey] == s.name {
			count++
		}
	}
	return count
}

// telling is one run of a story.
type telling struct {
	*world.World
	guard           *world.Guard
	name, namespace string
	round           int
}

func newTelling(w *world.World, g *world.Guard, name string, round int) *telling {
	return &telling{w, g, name, fmt.Sprintf("%s-%d", name, round), round}
}

// pool applies a NodePool of one instance type whose empty nodes are removed soon. extra is a field of the NodePool's spec
// or of its template's, wherever it belongs.
func (s *telling) pool(name, instanceType, extra string) {
	s.T.Helper()
	pool, template := "", ""
	if strings.HasPrefix(extra, "weight") || strings.HasPrefix(extra, "replicas") {
		pool = extra
	} else {
		template = extra
	}
	s.Apply(fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  %s
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5s, budgets: [{nodes: "100%%"}]}
  template:
    metadata: {labels: {story: %s}}
    spec:
      %s
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
`, name, pool, s.name, template, instanceType))
}

// run runs pods in the story's namespace, three to a node.
func (s *telling) run(replicas int, annotation string) {
	s.T.Helper()
	s.create(replicas, annotation)
	s.AwaitRunning(s.namespace, replicas, maxAwait)
}

func (s *telling) deployment(replicas int, annotation string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}, annotations: {%[4]s}}
    spec:
      nodeSelector: {story: %[2]s}
      terminationGracePeriodSeconds: 40
      containers:
      - {name: app, image: app, resources: {requests: {cpu: 500m, memory: 256Mi}}}
`, s.namespace, s.name, replicas, annotation)
}

// scaleToZero removes all pods, and waits until every node of the story is gone.
func (s *telling) scaleToZero() {
	s.T.Helper()
	s.Apply(s.deployment(0, ""))
	s.Await("the nodes of "+s.name+" gone", maxAwait, func() (bool, string) {
		claims, nodes, instances := len(s.ownClaims()), len(s.ownNodes()), len(s.ownInstances())
		return claims+nodes+instances == 0, fmt.Sprintf("%d claims, %d nodes, %d instances", claims, nodes, instances)
	})
}

// node returns a node on which a pod of the story runs.
func (s *telling) node() string {
	s.T.Helper()
	for _, pod := range s.Pods(s.namespace) {
		if pod.Spec.NodeName != "" {
			return pod.Spec.NodeName
		}
	}
	s.T.Fatalf("no pod of %s has a node", s.namespace)
	return ""
}

// tenon runs the command, and again if it fails because no worker answers.
func (s *telling) tenon(args ...string) {
	s.T.Helper()
	s.Await("tenon "+strings.Join(args, " "), maxAwait, func() (bool, string) {
		out, err := s.Tenon(args...)
		return err == nil, fmt.Sprintf("%v: %s", err, out)
	})
}

func (s *telling) awaitNoNode(name string) {
	s.T.Helper()
	s.Await("node "+name+" gone", maxAwait, func() (bool, string) {
		var node corev1.Node
		err := s.Get(s.Context(), client.ObjectKey{Name: name}, &node)
		return apierrors.IsNotFound(err), fmt.Sprintf("%v %v %v", node.Spec.Taints, node.Finalizers, err)
	})
}

// cordoned reports whether a node carries the taint of a node that is being removed.
func (s *telling) cordoned(name string) bool {
	s.T.Helper()
	var node corev1.Node
	if err := s.Get(s.Context(), client.ObjectKey{Name: name}, &node); err != nil {
		s.T.Fatalf("read node %s: %v", name, err)
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == karpv1.DisruptedTaintKey {
			return true
		}
	}
	return false
}

// claim reads a NodeClaim; it returns nil if there is none.
func (s *telling) claim(name string) *karpv1.NodeClaim {
	s.T.Helper()
	claim := &karpv1.NodeClaim{}
	err := s.Get(s.Context(), client.ObjectKey{Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.T.Fatalf("read NodeClaim %s: %v", name, err)
	}
	return claim
}

func (s *telling) deleteClaim(name string) {
	s.T.Helper()
	if err := s.Delete(s.Context(), &karpv1.NodeClaim{ObjectMeta: objectMeta(name)}); err != nil {
		s.T.Fatalf("delete NodeClaim %s: %v", name, err)
	}
}

// deleteClaimOf deletes the claim of a node. It finds it by provider ID, because pods may run before the claim has its
// node's name.
func (s *telling) deleteClaimOf(name string) {
	s.T.Helper()
	var node corev1.Node
	if err := s.Get(s.Context(), client.ObjectKey{Name: name}, &node); err != nil {
		s.T.Fatalf("read node %s: %v", name, err)
	}
	for _, claim := range s.Claims() {
		if claim.Status.ProviderID == node.Spec.ProviderID {
			s.deleteClaim(claim.Name)
			return
		}
	}
	s.T.Fatalf("node %s has no claim", name)
}

// create creates the story's namespace and Deployment.
func (s *telling) create(replicas int, annotation string) {
	s.T.Helper()
	s.Apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", s.namespace) + s.deployment(replicas, annotation))
}

// ownClaims returns the claims of the story's pools.
func (s *telling) ownClaims() []karpv1.NodeClaim {
	s.T.Helper()
	return slices.DeleteFunc(s.Claims(), func(claim karpv1.NodeClaim) bool { return claim.Labels["story"] != s.name })
}

// ownNodes returns the nodes of the story's pools.
func (s *telling) ownNodes() []corev1.Node {
	s.T.Helper()
	return slices.DeleteFunc(s.Nodes(), func(node corev1.Node) bool { return node.Labels["story"] != s.name })
}

// ownInstances returns the living instances of the story's pools.
func (s *telling) ownInstances() []ec2sim.Instance {
	s.T.Helper()
	return slices.DeleteFunc(s.Living(), func(instance ec2sim.Instance) bool {
		return !strings.HasPrefix(instance.Tags[karpv1.NodePoolLabelKey], s.name)
	})
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
