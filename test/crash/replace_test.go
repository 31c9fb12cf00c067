package crash_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// stable is how long replacements serve in this laboratory before the nodes are removed, and patience how long they may take
// to serve: long enough for workers to die meanwhile.
const stable, patience = 5 * time.Second, 75 * time.Second

// oneAtATime allows one node of a pool to be disrupted at a time, for a reason that calls for a replacement.
const oneAtATime = `{nodes: "1", reasons: [Drifted]}`

// replaced: the nodes of a pool have drifted and are replaced one by one, each when the pods of the previous one are Ready.
func replaced(s *telling) {
	s.replacing("c5.large")
	s.annotatePool("true")
	s.run(6, "")
	old := s.claimNames()
	release := s.replacements(1)
	s.replacing("c5d.large")
	s.awaitReplaced(old)
	s.AwaitRunning(s.namespace, 6, maxAwait)
	release()
	s.awaitUnmarked()
	s.scaleToZero()
}

// unready: what replaces a node never becomes ready, so it is taken back, and the node keeps serving until it is no longer
// needed.
func unready(s *telling) {
	s.takenBackFor(lame)
}

// unlaunched: there is no capacity to replace a node.
func unlaunched(s *telling) {
	s.takenBackFor(dry)
}

// takenBackFor lets a node drift towards a type that is unavailable or does not work, and back.
func (s *telling) takenBackFor(instanceType string) {
	s.T.Helper()
	s.replacing("c5.large")
	s.run(2, "")
	old := s.claimNames()
	release := s.replacements(1)
	s.replacing(instanceType)
	s.awaitMarked(old[0])
	s.replacing("c5.large")
	s.awaitReplacements()
	release()
	s.Await("only the old node", maxAwait, func() (bool, string) {
		names := s.claimNames()
		return len(names) == 1 && names[0] == old[0], strings.Join(names, ", ")
	})
	s.AwaitRunning(s.namespace, 2, maxAwait)
	s.awaitUnmarked()
	s.scaleToZero()
}

// overtaken: the claim of a node is deleted by hand while the node is being replaced. What was launched for its pods serves
// them.
func overtaken(s *telling) {
	s.replacing("c5.large")
	s.run(2, "")
	old := s.claimNames()
	s.replacing("c5d.large")
	s.awaitMarked(old[0])
	s.deleteClaim(old[0])
	s.awaitReplaced(old)
	s.AwaitRunning(s.namespace, 2, maxAwait)
	s.awaitReplacements()
	s.awaitUnmarked()
	s.scaleToZero()
}

// poolless: the NodePool is deleted while one of its nodes is being replaced; all its nodes are removed.
func poolless(s *telling) {
	s.replacing("c5.large")
	s.run(2, "")
	old := s.claimNames()
	s.replacing("c5d.large")
	s.awaitMarked(old[0])
	pool := &karpv1.NodePool{ObjectMeta: objectMeta(s.name)}
	if err := s.Delete(s.Context(), pool); err != nil {
		s.T.Fatalf("delete NodePool %s: %v", s.name, err)
	}
	s.awaitReplacements()
	s.scaleToZero()
}

// replacing applies the story's pool, which allows one drifted node to be disrupted at a time.
func (s *telling) replacing(instanceType string) {
	s.T.Helper()
	s.Apply(fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5s, budgets: [{nodes: "100%%", reasons: [Empty]}, %[3]s]}
  template:
    metadata: {labels: {story: %[1]s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%[2]s]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
`, s.name, instanceType, oneAtATime))
}

// annotatePool sets the annotation by which moved pods must be Ready before the next node is removed.
func (s *telling) annotatePool(value string) {
	s.T.Helper()
	if out, err := s.Kubectl("annotate", "nodepool", s.name, "--overwrite", karpv1.WaitForReadyAnnotationKey+"="+value); err != nil {
		s.T.Fatalf("annotate NodePool %s: %v: %s", s.name, err, out)
	}
}

func (s *telling) claimNames() []string {
	s.T.Helper()
	var names []string
	for _, claim := range s.ownClaims() {
		names = append(names, claim.Name)
	}
	return names
}

// awaitMarked waits until the node of a claim is marked for removal.
func (s *telling) awaitMarked(name string) {
	s.T.Helper()
	s.Await("node of "+name+" marked", maxAwait, func() (bool, string) {
		claim := s.claim(name)
		return claim != nil && claim.IsTrue(karpv1.ConditionTypeDisruptionReason), fmt.Sprintf("%+v", claim)
	})
}

// awaitReplaced waits until the old claims are gone and others serve in their place.
func (s *telling) awaitReplaced(old []string) {
	s.T.Helper()
	s.Await("the nodes of "+s.name+" replaced", 2*maxAwait, func() (bool, string) {
		serving, state := 0, ""
		for _, claim := range s.ownClaims() {
			state += fmt.Sprintf(" %s (initialized %t, deleted %t)", claim.Name, claim.IsTrue(karpv1.ConditionTypeInitialized), !claim.DeletionTimestamp.IsZero())
			for _, name := range old {
				if claim.Name == name {
					return false, state
				}
			}
			if claim.IsTrue(karpv1.ConditionTypeInitialized) {
				serving++
			}
		}
		return serving > 0, state
	})
}

// awaitReplacements waits until no replacement of the story's pool is under way.
func (s *telling) awaitReplacements() {
	s.T.Helper()
	s.Await("no replacement in "+s.name, maxAwait, func() (bool, string) {
		running := s.Executions("ExecutionStatus = 'Running' AND WorkflowType = 'Replacement' AND NodePool = '" + s.name + "'")
		return len(running) == 0, fmt.Sprintf("%d run", len(running))
	})
}

// awaitUnmarked waits until no node that stays is marked for removal.
func (s *telling) awaitUnmarked() {
	s.T.Helper()
	s.Await("no node of "+s.name+" marked", maxAwait, func() (bool, string) {
		leaving := map[string]bool{}
		for _, claim := range s.ownClaims() {
			if !claim.DeletionTimestamp.IsZero() {
				leaving[claim.Status.NodeName] = true
			}
		}
		for _, node := range s.ownNodes() {
			if marked(&node) && !leaving[node.Name] {
				return false, fmt.Sprintf("%s: %v", node.Name, node.Spec.Taints)
			}
		}
		return true, ""
	})
}

func marked(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == karpv1.DisruptedTaintKey {
			return true
		}
	}
	return false
}

// replacements watches, until release is called, the story's nodes that are marked for removal or deleted and whose machine
// has not been terminated. It accuses if more of them are disrupted at once than the pool's budget allows.
func (s *telling) replacements(most int) (release func()) {
	s.T.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			var claims karpv1.NodeClaimList
			var nodes corev1.NodeList
			if s.List(s.Context(), &claims) != nil || s.List(s.Context(), &nodes) != nil {
				continue
			}
			if going := goingOf(s.name, claims.Items, nodes.Items); len(going) > most {
				s.guard.Accuse("%d nodes of %s are disrupted at once, and its budget allows %d: %s", len(going), s.name, most, strings.Join(going, ", "))
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// goingOf returns the claims of a pool's nodes that are disrupted, as budgets count them.
func goingOf(pool string, claims []karpv1.NodeClaim, nodes []corev1.Node) []string {
	markedNodes := map[string]bool{}
	for i := range nodes {
		markedNodes[nodes[i].Spec.ProviderID] = marked(&nodes[i])
	}
	var going []string
	for i := range claims {
		claim := &claims[i]
		if claim.Labels[karpv1.NodePoolLabelKey] == pool && claim.IsTrue(karpv1.ConditionTypeInitialized) && !claim.IsTrue(karpv1.ConditionTypeInstanceTerminating) &&
			(markedNodes[claim.Status.ProviderID] || !claim.DeletionTimestamp.IsZero()) {
			going = append(going, claim.Name)
		}
	}
	return going
}
