package crash_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// opened lets the worker die when a node is drained, just before it calls EC2. Before another worker continues, somebody
// opens the node and a pod is bound to it: that pod is evicted like the others before the machine is terminated.
func opened(w *world.World, g *world.Guard, _ failpoints) {
	const point = "EC2 TerminateInstances before"
	s := newTelling(w, g, "opened", 1)
	f := newFailpoints(s.T, []string{point})
	if err := s.Lab.Halt(lab.Worker); err != nil {
		s.T.Fatal(err)
	}
	mortal := startWorker(s.World, f, s.Lab.Cluster()+"-worker")
	defer s.bringBack()
	defer mortal.end()
	mortal.awaitWork(s.World)
	s.pool(s.name, "c5.large", "")
	s.run(1, "")
	name := s.node()
	var node corev1.Node
	if err := s.Get(s.Context(), client.ObjectKey{Name: name}, &node); err != nil {
		s.T.Fatal(err)
	}
	at := slices.IndexFunc(s.ownClaims(), func(claim karpv1.NodeClaim) bool { return claim.Status.ProviderID == node.Spec.ProviderID })
	claim := s.ownClaims()[at].Name
	s.deleteClaim(claim)
	s.Await("the worker has died before it told EC2", maxAwait, func() (bool, string) {
		return len(failpoint.Struck(f.dir, []string{point})) > 0, "it lives"
	})
	if out, err := s.Kubectl("taint", "node", name, karpv1.DisruptedTaintKey+"-"); err != nil {
		s.T.Fatalf("kubectl taint: %v\n%s", err, out)
	}
	s.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: late}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  containers: [{name: app, image: app}]
`, s.namespace, node.Labels[corev1.LabelHostname]))
	s.Await("a pod that came to the node", maxAwait, func() (bool, string) {
		pods := s.Pods(s.namespace)
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == "late" && p.Spec.NodeName == name }), fmt.Sprint(len(pods))
	})
	s.awaitNoNode(name)
	var asked []string
	for _, write := range s.Writes() {
		if write.Namespace == s.namespace && write.Name == "late" {
			asked = append(asked, write.Verb+" "+write.Resource)
		}
	}
	if want := []string{"create pods/eviction"}; !slices.Equal(asked, want) {
		s.T.Errorf("Tenon did %v with the pod that came, want %v", asked, want)
	}
	s.AwaitRunning(s.namespace, 1, maxAwait)
	s.RecordLatest(workflows.Cluster(s.Lab.Cluster()).NodeClaimID(claim), "opened-after-its-drain")
	s.scaleToZero()
	g.AwaitQuiet(s.World)
}
