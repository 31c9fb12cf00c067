package handover_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The numbers of pods: those that stay, and those that come and go, each on its own node.
const (
	steadyPods = 3 * 4
	wavePods   = 2
)

// scene has Deployments whose pods stay where they are, since their NodePool removes empty nodes only, and two whose pods
// are alone on their nodes, in their own NodePool: one that grows and shrinks, and one that a budget blocks.
var scene = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5s, budgets: [{nodes: "100%"}]}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: wave}
spec:
  template:
    metadata: {labels: {pool: wave}}
    spec:
      taints: [{key: pool, value: wave, effect: NoSchedule}]
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5s, budgets: [{nodes: "100%"}]}
---
` + namespace("steady") + steady("web", "500m", "1Gi") + steady("api", "900m", "3Gi") + steady("batch", "1500m", "2Gi") +
	namespace("wave") + alone("wave", wavePods) +
	namespace("held") + alone("held", 1) + budget(0)

func namespace(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name)
}

// steady returns a Deployment of four pods.
func steady(name, cpu, memory string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: steady, name: %[1]s}
spec:
  replicas: 4
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: app, resources: {requests: {cpu: %[2]s, memory: %[3]s}}}]
---
`, name, cpu, memory)
}

// alone returns a Deployment whose pods each need a node of the NodePool wave.
func alone(namespace string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: app}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, alone: "true"}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {pool: wave}
      tolerations: [{key: pool, operator: Exists}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {alone: "true"}}, namespaceSelector: {}}
      containers: [{name: app, image: app, resources: {requests: {cpu: "1", memory: 1Gi}}}]
---
`, namespace, replicas)
}

// budget returns a PodDisruptionBudget that lets this many of the held pods be unavailable.
func budget(most int) string {
	return fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {namespace: held, name: app}\nspec: {maxUnavailable: %d, selector: {matchLabels: {app: held}}}\n", most)
}

// scaleUp adds two pods, each of which needs a node.
func (s *story) scaleUp() {
	s.T.Helper()
	s.Apply(alone("wave", wavePods+2))
	s.AwaitRunning("wave", wavePods+2, nodesWithin)
}

// scaleDown removes those two pods again, and waits until their nodes are gone.
func (s *story) scaleDown() {
	s.T.Helper()
	s.Apply(alone("wave", wavePods))
	s.awaitWave(wavePods + 1) // and the one of the held pod
}

// awaitWave waits until the NodePool wave has this many nodes, with as many claims and instances.
func (s *story) awaitWave(want int) {
	s.T.Helper()
	s.Await(fmt.Sprintf("%d nodes of wave", want), nodesWithin, func() (bool, string) {
		claims, nodes, instances := 0, 0, 0
		for _, claim := range s.Claims() {
			if claim.Labels[karpv1.NodePoolLabelKey] == "wave" {
				claims++
			}
		}
		for _, node := range s.Nodes() {
			if node.Labels[karpv1.NodePoolLabelKey] == "wave" {
				nodes++
			}
		}
		for _, instance := range s.Living() {
			if instance.Tags[karpv1.NodePoolLabelKey] == "wave" {
				instances++
			}
		}
		return claims == want && nodes == want && instances == want, fmt.Sprintf("%d claims, %d nodes, %d instances", claims, nodes, instances)
	})
}

// claimOf returns the claim of the node on which a namespace's first running pod is.
func (s *story) claimOf(namespace string) karpv1.NodeClaim {
	s.T.Helper()
	var node string
	s.Await("a pod of "+namespace, nodesWithin, func() (bool, string) {
		for _, pod := range s.Pods(namespace) {
			if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero() {
				node = pod.Spec.NodeName
				return true, ""
			}
		}
		return false, "none runs"
	})
	for _, claim := range s.Claims() {
		if claim.Status.NodeName == node {
			return claim
		}
	}
	s.T.Fatalf("node %s has no NodeClaim", node)
	return karpv1.NodeClaim{}
}

// awaitGone waits until a claim is gone.
func (s *story) awaitGone(claim karpv1.NodeClaim) {
	s.T.Helper()
	s.Await("NodeClaim "+claim.Name+" gone", nodesWithin, func() (bool, string) {
		var now karpv1.NodeClaim
		err := s.Get(s.Context(), client.ObjectKeyFromObject(&claim), &now)
		if err == nil && now.UID == claim.UID {
			return false, fmt.Sprintf("%+v", now.Status.Conditions)
		}
		return client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
	})
}

// drain removes a node on which pods run: by tenon drain in Tenon's turn, and by deleting its claim in Karpenter's.
func (s *story) drain(who controller) {
	s.T.Helper()
	claim := s.claimOf("wave")
	if who == byTenon {
		if out, err := s.Tenon("drain", claim.Status.NodeName); err != nil {
			s.T.Fatalf("tenon drain: %v\n%s", err, out)
		}
	} else if err := s.Delete(s.Context(), &claim); err != nil {
		s.T.Fatalf("delete NodeClaim %s: %v", claim.Name, err)
	}
	s.awaitGone(claim)
	s.AwaitRunning("wave", wavePods, nodesWithin)
	s.awaitWave(wavePods + 1)
}

// begin starts what the turn's holder cannot finish: it deletes a claim whose pod a budget blocks. It also adds nodes so
// late that the next holder finds them new.
func (s *story) begin() {
	s.T.Helper()
	claim := s.claimOf("held")
	if err := s.Delete(s.Context(), &claim); err != nil {
		s.T.Fatalf("delete NodeClaim %s: %v", claim.Name, err)
	}
	s.begun = &claim
	s.scaleUp()
}

// finish lets the other controller's drain finish, if there is one.
func (s *story) finish() {
	s.T.Helper()
	if s.begun == nil {
		return
	}
	var there karpv1.NodeClaim
	if err := s.Get(s.Context(), types.NamespacedName{Name: s.begun.Name}, &there); err != nil {
		s.T.Errorf("NodeClaim %s was drained although a budget held its pod: %v", s.begun.Name, err)
	}
	s.Apply(budget(1))
	s.awaitGone(*s.begun)
	s.AwaitRunning("held", 1, nodesWithin)
	s.Apply(budget(0))
	s.begun = nil
}
