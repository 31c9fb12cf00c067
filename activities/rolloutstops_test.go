package activities

import (
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// TestStoppedRolloutsMoveNothing begins and ends replacements that were decided before the rollout of their NodePool stopped.
func TestStoppedRolloutsMoveNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why         string
		reason      karpv1.DisruptionReason
		annotations map[string]string
		stops       bool
	}{
		{why: "a rollout goes on", reason: karpv1.DisruptionReasonDrifted, annotations: map[string]string{karpv1.RolloutAnnotationKey: "1,100%"}},
		{why: "it has stopped by itself", reason: karpv1.DisruptionReasonDrifted, annotations: map[string]string{karpv1.RolloutAnnotationKey: "1,100%", karpv1.RolloutStateAnnotationKey: `{"stopped":"node n is ill"}`}, stops: true},
		{why: "a person has stopped it", reason: karpv1.DisruptionReasonDrifted, annotations: map[string]string{karpv1.RolloutAnnotationKey: "1,100%", karpv1.RolloutOrderAnnotationKey: `{"what":"stop"}`}, stops: true},
		{why: "an annotation has become unreadable", reason: karpv1.DisruptionReasonDrifted, annotations: map[string]string{karpv1.RolloutAnnotationKey: "all"}, stops: true},
		{why: "other reasons are none of its business", reason: karpv1.DisruptionReasonUnderutilized, annotations: map[string]string{karpv1.RolloutAnnotationKey: "1,100%", karpv1.RolloutOrderAnnotationKey: `{"what":"stop"}`}},
		{why: "a NodePool without a rollout", reason: karpv1.DisruptionReasonDrifted},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			kube := pausableKube(t, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: test.annotations}})
			nodes := []workflows.RemovedNode{{Node: "a", NodePool: "p"}, {Node: "b", NodePool: "gone"}}
			begins := &replacer{objects: objects{kube}, stops: stops{objects: objects{kube}}, log: zap.NewNop()}
			err := begins.checkNotStopped(t.Context(), workflows.ReplacementCommand{ID: "r", Reason: string(test.reason), Nodes: nodes})
			if stopped := workflows.FailureType(err) == workflows.FailureChanged; stopped != test.stops {
				t.Errorf("to begin: %v", err)
			}
			ends := &retirer{objects: objects{kube}, stops: stops{objects: objects{kube}}, log: zap.NewNop()}
			var result workflows.RetireResult
			going, err := ends.notStopped(t.Context(), workflows.RetireInput{Reason: string(test.reason), Nodes: nodes}, []candidate{{gone: nodes[0]}, {gone: nodes[1]}}, &result)
			if err != nil || (len(going) == 1) != test.stops || len(result.Blocked) != 2-len(going) || len(result.Left) != 2-len(going) {
				t.Errorf("to end: %d go, %v stay, %v", len(going), result.Blocked, err)
			}
		})
	}
}
