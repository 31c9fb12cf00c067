package starter

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// TestEndingCapacityBlocksAreDrained has the cloud say that a capacity block ends. The claim in it ends once, and notes when
// its instance does; a claim in a reservation that goes on is left alone.
func TestEndingCapacityBlocksAreDrained(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for instance, reservation := range map[string]string{"i-a": "cr-block", "i-b": "cr-stays"} {
		labels := e.mirror.claims[instance].Labels
		labels[karpv1.CapacityTypeLabelKey], labels[awsv1.LabelCapacityReservationID] = karpv1.CapacityTypeReserved, reservation
	}
	emptied := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e.cloud.ending = map[string]time.Time{"cr-block": emptied}
	for range 2 {
		e.notices.endingBlocks(t.Context())
	}
	if diff := cmp.Diff([]string{"cr-block", "cr-stays", "cr-block", "cr-stays"}, e.cloud.asked); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: workflows.ReasonCapacityBlockEnding}}}, e.temporal.endings()); diff != "" {
		t.Errorf("endings (-want +got):\n%s", diff)
	}
	if got := e.kube.notes["a"][karpv1.InstanceEndsAnnotationKey]; got != "2026-01-02T03:04:05Z" {
		t.Errorf("the claim notes that its instance ends at %q, want the moment at which EC2 begins to empty the block", got)
	}
	if told := e.told(); !slices.Contains(told, "CapacityBlockEnding") {
		t.Errorf("Events %v, want one about the block", told)
	}
}

// TestNobodyAsksAboutCapacityBlocksWithoutReservations holds that a cluster without reserved nodes makes no calls for them.
func TestNobodyAsksAboutCapacityBlocksWithoutReservations(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.notices.endingBlocks(t.Context())
	if len(e.cloud.asked) > 0 {
		t.Errorf("asked about %v", e.cloud.asked)
	}
}
