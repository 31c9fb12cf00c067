package interruption_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// scene is a NodePool of m5.large machines of one capacity type, and a Deployment of one pod per node, in a namespace of the
// same name.
type scene struct {
	*world.World
	name string
}

// setting is what differs between scenes.
type setting struct {
	// capacity is the capacity type, class the EC2NodeClass.
	capacity, class string
	replicas        int
	// unavailable is the maxUnavailable of the pods' PodDisruptionBudget, annotations are the pods' annotations.
	unavailable string
	annotations string
	// together lets the pods share nodes.
	together bool
}

// enter sets up a scene and waits until its pods run.
func enter(t *testing.T, w *world.World, name string, as setting) *scene {
	t.Helper()
	s := &scene{w.For(t), name}
	apart := name
	if as.together {
		apart = ""
	}
	if as.class == "" {
		as.class = "default"
	}
	s.Apply(fmt.Sprintf(strings.TrimSpace(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[2]s}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [%[3]s]}
`), name, as.class, as.capacity) + "\n---\n" +
		flow.Workload{Namespace: name, Replicas: as.replicas, Requests: "cpu: 100m", Pool: name, Apart: apart, Annotations: as.annotations}.Manifest())
	if as.unavailable != "" {
		s.allow(as.unavailable)
	}
	s.AwaitRunning(name, as.replicas, 3*time.Minute)
	return s
}

// allow sets how many of the scene's pods may be unavailable at once.
func (s *scene) allow(unavailable string) {
	s.T.Helper()
	s.Apply(fmt.Sprintf(strings.TrimSpace(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: %[1]s, name: app}
spec: {maxUnavailable: %[2]s, selector: {matchLabels: {app: %[1]s}}}
`), s.name, unavailable))
}

// claims returns the scene's NodeClaims, by name.
func (s *scene) claims() map[string]karpv1.NodeClaim {
	s.T.Helper()
	var list karpv1.NodeClaimList
	if err := s.List(s.Context(), &list, client.MatchingLabels{karpv1.NodePoolLabelKey: s.name}); err != nil {
		s.T.Fatal(err)
	}
	claims := map[string]karpv1.NodeClaim{}
	for _, claim := range list.Items {
		claims[claim.Name] = claim
	}
	return claims
}

// sorted returns the scene's NodeClaims ordered by name.
func (s *scene) sorted() []karpv1.NodeClaim {
	s.T.Helper()
	var claims []karpv1.NodeClaim
	for _, claim := range s.claims() {
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b karpv1.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return claims
}

// instance returns the instance id of a claim.
func instance(claim karpv1.NodeClaim) string {
	return claim.Status.ProviderID[strings.LastIndexByte(claim.Status.ProviderID, '/')+1:]
}

// runsOn returns the scene's pod on a node.
func (s *scene) runsOn(node string) corev1.Pod {
	s.T.Helper()
	for _, pod := range s.Pods(s.name) {
		if pod.Spec.NodeName == node {
			return pod
		}
	}
	s.T.Fatalf("no pod of %s runs on %s", s.name, node)
	return corev1.Pod{}
}

// watchPending watches the scene's pods that are created from now on. The function it returns says how long each of them was
// Pending, by the times at which that was seen.
func (s *scene) watchPending() func() []time.Duration {
	s.T.Helper()
	from := time.Now()
	var mu sync.Mutex
	pending, waits := map[types.UID]time.Time{}, map[types.UID]time.Duration{}
	s.Observe(map[client.Object]func(any, bool){&corev1.Pod{}: func(object any, _ bool) {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Namespace != s.name || pod.CreationTimestamp.Time.Before(from.Truncate(time.Second)) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if _, known := pending[pod.UID]; !known {
			pending[pod.UID] = time.Now()
		}
		if _, ran := waits[pod.UID]; !ran && pod.Status.Phase == corev1.PodRunning {
			waits[pod.UID] = time.Since(pending[pod.UID])
		}
	}})
	return func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return slices.Collect(maps.Values(waits))
	}
}

// life returns the id of a claim's workflow.
func (s *scene) life(claim string) string {
	return workflows.Cluster(s.Lab.Cluster()).NodeClaimID(claim)
}

// ends waits until a claim's workflow has ended, and returns its result.
func (s *scene) ends(claim string, within time.Duration) workflows.NodeClaimResult {
	s.T.Helper()
	ctx, stop := context.WithTimeout(s.Context(), world.Patience(within))
	defer stop()
	var result workflows.NodeClaimResult
	if err := s.Temporal.GetWorkflow(ctx, s.life(claim), "").Get(ctx, &result); err != nil {
		s.T.Fatalf("%s: the life of %s has not ended well within %s: %v", s.name, claim, within, err)
	}
	return result
}

// signalled returns the endings that a claim's workflow has received, with their times.
func (s *scene) signalled(claim string) (endings []workflows.Ending, at []time.Time) {
	s.T.Helper()
	for _, event := range s.History(s.life(claim), "") {
		attributes := event.GetWorkflowExecutionSignaledEventAttributes()
		if event.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED || attributes.GetSignalName() != workflows.SignalEnding {
			continue
		}
		var ending workflows.Ending
		if err := converter.GetDefaultDataConverter().FromPayloads(attributes.GetInput(), &ending); err != nil {
			s.T.Fatal(err)
		}
		endings, at = append(endings, ending), append(at, event.GetEventTime().AsTime())
	}
	return endings, at
}

// told waits until both a claim and its Node have an Event with a reason.
func (s *scene) told(claim karpv1.NodeClaim, reason string) {
	s.T.Helper()
	s.Await("Events "+reason+" on "+claim.Name, 30*time.Second, func() (bool, string) {
		var list corev1.EventList
		if err := s.List(s.Context(), &list); err != nil {
			return false, err.Error()
		}
		var on []string
		for _, event := range list.Items {
			about := event.InvolvedObject
			if event.Reason == reason && (about.Kind == "NodeClaim" && about.Name == claim.Name || about.Kind == "Node" && about.Name == claim.Status.NodeName) {
				on = append(on, about.Kind)
			}
		}
		slices.Sort(on)
		return slices.Equal(slices.Compact(on), []string{"Node", "NodeClaim"}), fmt.Sprintf("on %v", on)
	})
}
