package activities

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// TestSweepRelabels compares the labels of claims and Nodes with the reservation that the cloud says their instance runs in.
func TestSweepRelabels(t *testing.T) {
	t.Parallel()
	reserved := map[string]string{karpv1.CapacityTypeLabelKey: "reserved", awsv1.LabelCapacityReservationID: "cr-1",
		awsv1.LabelCapacityReservationType: "default", awsv1.LabelCapacityReservationInterruptible: "false"}
	onDemand := map[string]string{karpv1.CapacityTypeLabelKey: "on-demand"}
	elsewhere := map[string]string{karpv1.CapacityTypeLabelKey: "reserved", awsv1.LabelCapacityReservationID: "cr-2"}
	spot := map[string]string{karpv1.CapacityTypeLabelKey: "spot"}
	for name, test := range map[string]struct {
		reason                 string
		claim, node            map[string]string
		capacity, reservation  string
		young                  bool
		wantClaim, wantNode    map[string]string
		relabelled, registered bool
	}{
		"Same":         {reason: "nothing has changed", claim: reserved, node: reserved, capacity: "reserved", reservation: "cr-1", registered: true, wantClaim: reserved, wantNode: reserved},
		"FallenOut":    {reason: "the reservation has ended, and EC2 bills the instance on demand", claim: reserved, node: reserved, capacity: "on-demand", registered: true, wantClaim: onDemand, wantNode: onDemand, relabelled: true},
		"HalfDone":     {reason: "an earlier sweep died between the two writes", claim: onDemand, node: reserved, capacity: "on-demand", registered: true, wantClaim: onDemand, wantNode: onDemand, relabelled: true},
		"MovedInto":    {reason: "a person has moved the instance into a reservation that no class selects: only its id is known", claim: onDemand, node: onDemand, capacity: "reserved", reservation: "cr-2", registered: true, wantClaim: elsewhere, wantNode: elsewhere, relabelled: true},
		"MovedOn":      {reason: "or from one into another", claim: reserved, node: reserved, capacity: "reserved", reservation: "cr-2", registered: true, wantClaim: elsewhere, wantNode: elsewhere, relabelled: true},
		"Unregistered": {reason: "registration copies the claim's labels", claim: reserved, node: spot, capacity: "on-demand", wantClaim: onDemand, wantNode: spot, relabelled: true},
		"Young":        {reason: "what EC2 describes may lag behind the launch", claim: reserved, node: reserved, capacity: "on-demand", young: true, registered: true, wantClaim: reserved, wantNode: reserved},
		"Spot":         {reason: "a spot instance never was in a reservation", claim: spot, node: spot, capacity: "on-demand", registered: true, wantClaim: spot, wantNode: spot},
		"Unknown":      {reason: "a cloud that does not say proves nothing", claim: reserved, node: reserved, registered: true, wantClaim: reserved, wantNode: reserved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			age := old
			if test.young {
				age = consistencyLag / 2
			}
			claim, node, instance := sweptClaim("a", "g", "i-1", age), sweptNode("n", "i-1", true, age), sweptInstance("i-1", "g", age)
			claim.Status.NodeName, instance.CapacityType, instance.Reservation = "n", test.capacity, test.reservation
			claim.Labels, node.Labels = maps.Clone(test.claim), maps.Clone(test.node)
			if test.registered {
				node.Labels[karpv1.NodeRegisteredLabelKey] = "true"
			}
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim, node).Build()
			got := sweepOnce(t, New(Config{Cluster: "c", Kube: kube, Cloud: &sweptCloud{instances: []cloud.Instance{instance}}, Mirror: sweptMirror{kube: kube},
				Temporal: &sweptTemporal{running: []string{"c/nodeclaim/a"}, signaled: map[string]workflows.Ending{}}, Log: zap.NewNop()}))
			if (len(got.Relabelled) > 0) != test.relabelled || got.Failures > 0 {
				t.Errorf("%s: relabelled %v, failed %v", test.reason, got.Relabelled, got.Failed)
			}
			for object, want := range map[client.Object]map[string]string{claim: test.wantClaim, node: test.wantNode} {
				if err := kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				labels := map[string]string{}
				for key := range reserved {
					if value, has := object.GetLabels()[key]; has {
						labels[key] = value
					}
				}
				if diff := cmp.Diff(want, labels); diff != "" {
					t.Errorf("%s: labels of %s (-want +got):\n%s", test.reason, object.GetName(), diff)
				}
			}
		})
	}
}
