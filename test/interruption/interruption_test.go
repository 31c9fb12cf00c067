// Package interruption_test lets the cloud interrupt instances, in every way that it announces, on a laboratory with the
// real control plane and Temporal.
package interruption_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// queueName is the queue into which EventBridge puts events.
const queueName = lab.DefaultCluster // the one that deploy/iam lets the worker read

// soonEnough is how long it may take here until a claim's workflow hears of its interruption. It usually takes some twenty
// milliseconds and is promised within a second, but a test machine may be busy with other work.
const soonEnough = 5 * time.Second

func TestMain(m *testing.M) { os.Exit(world.Main(m, 8)) }

func TestInterruptions(t *testing.T) {
	w := world.Start(t, world.Options{Simulator: []string{"--queue=" + queueName}, Worker: []string{"--interruption-queue=" + queueName, "--rebalance=replace", "--enable-zonal-shift"}})
	// From the start, the queue has messages that are not about this cluster, or about nothing.
	w.Sim(http.MethodPost, "/_sim/message", map[string]string{"body": "this is not an event"}, nil)
	announce(w, "stopped", "i-0fffffffffffffff0")
	announce(w, "spot-interruption", "i-0fffffffffffffff1")
	t.Run("scenes", func(t *testing.T) {
		for name, play := range map[string]func(*testing.T, *world.World){
			"Spot": spot, "Joining": joining, "MakeBeforeBreak": makeBeforeBreak, "Rebalance": rebalance, "Reservation": reservation, "CapacityBlock": capacityBlock, "Kinds": kinds, "StatusChecks": statusChecks,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, w)
			})
		}
	})
	t.Run("ZonalShift", func(t *testing.T) { zonalShift(t, w) })
	w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).ProvisioningID(), "shunned")
	w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).DisruptionID(), "shunned")
	if !t.Failed() {
		w.Await("the queue is empty", 2*time.Minute, func() (bool, string) {
			left := messages(w)
			return left == "0 0", left + " messages visible and in flight"
		})
	}
}

// announce delivers an event about an instance without anything happening to it, and returns when.
func announce(w *world.World, event, instance string) time.Time {
	w.T.Helper()
	at := time.Now()
	w.Sim(http.MethodPost, "/_sim/event", map[string]any{"event": event, "instances": []string{instance}}, nil)
	return at
}

// messages returns the numbers of the queue's visible messages and of those in flight.
func messages(w *world.World) string {
	w.T.Helper()
	queue := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: awssdk.String(w.Lab.EC2SimURL()), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	out, err := queue.GetQueueAttributes(w.Context(), &sqs.GetQueueAttributesInput{QueueUrl: awssdk.String(w.Lab.EC2SimURL() + "/1/" + queueName),
		AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil {
		w.T.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"] + " " + out.Attributes["ApproximateNumberOfMessagesNotVisible"]
}

// spot lets EC2 interrupt a spot instance whose pod a budget blocks: its replacement is launched nevertheless, in another
// zone, while the pod still runs, and takes the pod when the budget allows it.
func spot(t *testing.T, w *world.World) {
	s := enter(t, w, "spot", setting{capacity: "spot", replicas: 2, unavailable: "0"})
	before := s.claims()
	taken := s.sorted()[0]
	pod := s.runsOn(taken.Status.NodeName)
	sent := time.Now()
	s.Sim(http.MethodPost, "/_sim/interrupt", map[string]any{"instances": []string{instance(taken)}, "notice": "2m"}, nil)
	for range 3 {
		announce(s.World, "spot-interruption", instance(taken))
	}

	var replacement karpv1.NodeClaim
	s.Await("a replacement is launched", 30*time.Second, func() (bool, string) {
		for name, claim := range s.claims() {
			if _, old := before[name]; !old && claim.Status.ProviderID != "" {
				replacement = claim
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d claims", len(s.claims()))
	})
	if there := s.runsOn(taken.Status.NodeName); there.UID != pod.UID || there.DeletionTimestamp != nil || len(s.Pods(s.name)) != 2 {
		t.Errorf("the replacement came only when pods had been evicted: %d pods, %s on the old node", len(s.Pods(s.name)), there.Name)
	}
	if zone := replacement.Labels[corev1.LabelTopologyZone]; zone == taken.Labels[corev1.LabelTopologyZone] {
		t.Errorf("the replacement was bought in %s, where EC2 has just taken capacity back", zone)
	}
	for _, write := range s.Writes() {
		if write.Verb == "create" && write.Resource == "nodeclaims" && write.Name == replacement.Name {
			t.Logf("its replacement %s was asked for %d ms after the event", replacement.Name, write.At.Sub(sent).Milliseconds())
		}
	}
	s.hears(taken, workflows.ReasonSpotInterrupted, sent)
	s.told(taken, "SpotInterrupted")
	s.told(taken, "TerminatingOnInterruption")

	s.allow("1")
	if result := s.ends(taken.Name, time.Minute); result.Reason != workflows.ReasonSpotInterrupted || result.Drain != workflows.Drained {
		t.Errorf("the life ended as %+v, want it drained for being interrupted", result)
	}
	s.RecordLatest(s.life(taken.Name), "interrupted")
	s.goesFirst(taken)
	s.AwaitRunning(s.name, 2, time.Minute)
	s.runsOn(s.claims()[replacement.Name].Status.NodeName)
	if claims := s.claims(); len(claims) != 2 {
		t.Errorf("%d claims in the end, want 2: pods were planned for twice", len(claims))
	}
}

// makeBeforeBreak lets EC2 interrupt every node of forty pods at once: each pod keeps running until its successor has a
// place, and no successor waits for more than a second.
func makeBeforeBreak(t *testing.T, w *world.World) {
	s := enter(t, w, "made", setting{capacity: "spot", replicas: 40, together: true})
	before, pending := s.sorted(), s.watchPending()
	instances := make([]string, len(before))
	for i, claim := range before {
		instances[i] = instance(claim)
	}
	sent := time.Now()
	s.Sim(http.MethodPost, "/_sim/interrupt", map[string]any{"instances": instances, "notice": "2m"}, nil)
	for _, claim := range before {
		if result := s.ends(claim.Name, 2*time.Minute); result.Reason != workflows.ReasonSpotInterrupted || result.Drain != workflows.Drained {
			t.Errorf("the life of %s ended as %+v, want it drained for being interrupted", claim.Name, result)
		}
	}
	s.AwaitRunning(s.name, 40, time.Minute)
	waits := pending()
	t.Logf("%d nodes were drained %s after the notice; of %d new pods the one that waited longest was Pending for %s",
		len(before), time.Since(sent).Round(time.Second), len(waits), slices.Max(waits).Round(time.Millisecond))
	if most := world.Patience(time.Second); len(waits) < 40 || slices.Max(waits) > most {
		t.Errorf("%d new pods were Pending for %v, want 40 for at most %s each", len(waits), waits, most)
	}
	s.RecordLatest(s.life(before[0].Name), "made-before-break")
}

// rebalance lets EC2 recommend leaving a spot instance: its node is replaced, and its pod stays until there is a place.
func rebalance(t *testing.T, w *world.World) {
	s := enter(t, w, "rebalance", setting{capacity: "spot", replicas: 2})
	leaves, pending := s.sorted()[0], s.watchPending()
	sent := announce(s.World, "rebalance-recommendation", instance(leaves))
	s.told(leaves, "SpotRebalanceRecommendation")
	if result := s.ends(leaves.Name, 2*time.Minute); result.Reason != workflows.ReasonRebalanceRecommended || result.Drain != workflows.Drained {
		t.Errorf("the life ended as %+v, want it drained as EC2 recommends", result)
	}
	s.hears(leaves, workflows.ReasonRebalanceRecommended, sent)
	s.AwaitRunning(s.name, 2, time.Minute)
	if waits := pending(); len(waits) != 1 || waits[0] > world.Patience(time.Second) {
		t.Errorf("new pods were Pending for %v, want one, and that for a second at most", waits)
	}
}

// joining lets EC2 interrupt an instance that has not joined yet: its claim is deleted at once, and another is made instead.
func joining(t *testing.T, w *world.World) {
	s := enter(t, w, "joining", setting{capacity: "spot", replicas: 1})
	before := s.claims()
	if out, err := s.Kubectl("--namespace=joining", "scale", "deployment/app", "--replicas=2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var taken karpv1.NodeClaim
	s.Await("an instance that boots", time.Minute, func() (bool, string) {
		for name, claim := range s.claims() {
			if _, old := before[name]; !old && claim.Status.ProviderID != "" {
				taken = claim
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d claims", len(s.claims()))
	})
	sent := announce(s.World, "spot-interruption", instance(taken))
	s.Await("its claim to go", 5*time.Second, func() (bool, string) {
		claim, there := s.claims()[taken.Name]
		return !there || claim.DeletionTimestamp != nil, "it stays"
	})
	t.Logf("the claim went %d ms after the event", time.Since(sent).Milliseconds())
	s.hears(taken, workflows.ReasonSpotInterrupted, sent)
	if result := s.ends(taken.Name, time.Minute); result.Reason != workflows.ReasonSpotInterrupted {
		t.Errorf("the life ended as %+v", result)
	}
	s.RecordLatest(s.life(taken.Name), "interrupted-joining")
	s.AwaitRunning(s.name, 2, time.Minute)
}

// goesFirst checks that the activities which remove an interrupted node have Temporal's highest priority.
func (s *scene) goesFirst(claim karpv1.NodeClaim) {
	s.T.Helper()
	for workflow, activity := range map[string]string{s.life(claim.Name): workflows.TerminateActivity.Name,
		workflows.Cluster(s.Lab.Cluster()).DrainID(claim.Status.NodeName): workflows.EvictActivity.Name} {
		found := false
		for _, event := range s.History(workflow, "") {
			scheduled := event.GetActivityTaskScheduledEventAttributes()
			if scheduled.GetActivityType().GetName() != activity {
				continue
			}
			found = true
			// An activity without its own priority has that of its workflow.
			key := scheduled.GetPriority().GetPriorityKey()
			if key == 0 {
				key = s.History(workflow, "")[0].GetWorkflowExecutionStartedEventAttributes().GetPriority().GetPriorityKey()
			}
			if key != 1 {
				s.T.Errorf("%s of %s has the priority %d, want 1", activity, workflow, key)
			}
		}
		if !found {
			s.T.Errorf("%s has no %s", workflow, activity)
		}
	}
}

// hears checks that a claim's workflow received its ending once, and soon.
func (s *scene) hears(claim karpv1.NodeClaim, reason string, sent time.Time) {
	s.T.Helper()
	count := 0
	endings, at := s.signalled(claim.Name)
	for i, ending := range endings {
		if ending.Reason != reason {
			continue
		}
		if count++; count > 1 {
			s.T.Errorf("%s was told %s more than once: %+v", claim.Name, reason, endings)
			break
		}
		late := at[i].Sub(sent)
		s.T.Logf("%s was told %s %d ms after the event", claim.Name, reason, late.Milliseconds())
		if late > world.Patience(soonEnough) {
			s.T.Errorf("%s was told %s only after %s", claim.Name, reason, late)
		}
	}
	if count == 0 {
		s.T.Errorf("%s was never told %s: %+v", claim.Name, reason, endings)
	}
}

// reserve makes a capacity reservation and an EC2NodeClass of the same name that uses it.
func reserve(t *testing.T, w *world.World, name string, reservation ec2sim.Reservation) {
	t.Helper()
	reservation.Type, reservation.Targeted, reservation.Tags = "m5.large", true, map[string]string{"scene": name}
	w.Sim(http.MethodPost, "/_sim/reserve", reservation, nil)
	class := &unstructured.Unstructured{}
	class.SetAPIVersion("karpenter.k8s.aws/v1")
	class.SetKind("EC2NodeClass")
	if err := w.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(class.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	spec["capacityReservationSelectorTerms"] = []any{map[string]any{"tags": map[string]any{"scene": name}}}
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": map[string]any{"name": name}, "spec": spec}}
	if err := w.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
}

// zonalShift shifts traffic away from a zone: new nodes are launched in the others, and the NodePools say why, until traffic
// comes back.
func zonalShift(t *testing.T, w *world.World) {
	w = w.For(t)
	w.Sim(http.MethodPost, "/_sim/zonal-shift", map[string]string{"zone": "us-east-1a", "for": "1h"}, nil)
	says := func(reason string) {
		t.Helper()
		w.Await("a NodePool says "+reason, 2*time.Minute, func() (bool, string) {
			var events corev1.EventList
			if err := w.List(w.Context(), &events); err != nil {
				return false, err.Error()
			}
			return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return e.Reason == reason && e.InvolvedObject.Kind == "NodePool" && strings.Contains(e.Message, "us-east-1a (use1-az1)")
			}), "none does"
		})
	}
	says("ZonalShiftActive")
	s := enter(t, w, "shifted", setting{capacity: "on-demand", replicas: 3})
	for _, claim := range s.sorted() {
		if zone := claim.Labels[corev1.LabelTopologyZone]; zone == "us-east-1a" {
			t.Errorf("claim %s was launched in %s, from which traffic is shifted away", claim.Name, zone)
		}
	}
	w.Sim(http.MethodPost, "/_sim/zonal-shift", map[string]string{"zone": "us-east-1a"}, nil)
	says("ZonalShiftCleared")
}

// capacityBlock lets a capacity block end: its node is drained before EC2 terminates the instance.
func capacityBlock(t *testing.T, w *world.World) {
	w = w.For(t)
	// Its last forty minutes begin in two; the worker looks once a minute.
	reserve(t, w, "block", ec2sim.Reservation{Zone: "us-east-1b", Count: 1, Block: true, Duration: ec2sim.Duration(42 * time.Minute)})
	s := enter(t, w, "block", setting{capacity: "reserved, on-demand", class: "block", replicas: 1})
	taken := s.sorted()[0]
	if taken.Labels[karpv1.CapacityTypeLabelKey] != karpv1.CapacityTypeReserved {
		t.Fatalf("the node is %s, want it in the capacity block", taken.Labels[karpv1.CapacityTypeLabelKey])
	}
	if result := s.ends(taken.Name, 4*time.Minute); result.Reason != workflows.ReasonCapacityBlockEnding {
		t.Errorf("the life ended as %+v, want it ended by the capacity block", result)
	}
	s.told(taken, "CapacityBlockEnding")
	s.AwaitRunning(s.name, 1, time.Minute)
	for name, claim := range s.claims() {
		if claim.Labels[karpv1.CapacityTypeLabelKey] != karpv1.CapacityTypeOnDemand {
			t.Errorf("claim %s is %s, want it bought on demand", name, claim.Labels[karpv1.CapacityTypeLabelKey])
		}
	}
}

// reservation lets the owner of a capacity reservation interrupt it.
func reservation(t *testing.T, w *world.World) {
	w = w.For(t)
	reserve(t, w, "reserved", ec2sim.Reservation{Zone: "us-east-1a", Count: 2, Interruptible: true})
	s := enter(t, w, "reserved", setting{capacity: "reserved, on-demand", class: "reserved", replicas: 1})
	taken := s.sorted()[0]
	if taken.Labels[karpv1.CapacityTypeLabelKey] != karpv1.CapacityTypeReserved {
		t.Fatalf("the node is %s, want it in the reservation", taken.Labels[karpv1.CapacityTypeLabelKey])
	}
	sent := time.Now()
	s.Sim(http.MethodPost, "/_sim/interrupt", map[string]any{"instances": []string{instance(taken)}, "notice": "2m"}, nil)
	if result := s.ends(taken.Name, time.Minute); result.Reason != workflows.ReasonReservationInterrupted {
		t.Errorf("the life ended as %+v, want it ended by the reservation", result)
	}
	s.hears(taken, workflows.ReasonReservationInterrupted, sent)
	s.told(taken, "CapacityReservationInstanceInterrupted")
	s.AwaitRunning(s.name, 1, time.Minute)
	// The reservation has room for one more, but its owner wants it back.
	for name, claim := range s.claims() {
		if claim.Labels[karpv1.CapacityTypeLabelKey] != karpv1.CapacityTypeOnDemand {
			t.Errorf("claim %s is %s, want it bought on demand", name, claim.Labels[karpv1.CapacityTypeLabelKey])
		}
	}
}

// kinds announces every other event, each about its own node.
func kinds(t *testing.T, w *world.World) {
	s := enter(t, w, "kinds", setting{capacity: "on-demand", replicas: 4})
	claims := s.sorted()
	rows := []struct {
		event, reason, told string
		drain               workflows.DrainOutcome
	}{
		{event: "stopping", reason: workflows.ReasonInstanceStopping, told: "InstanceStopping", drain: workflows.Drained},
		{event: "scheduled-change", reason: workflows.ReasonScheduledChange, told: "InstanceUnhealthy", drain: workflows.Drained},
		{event: "shutting-down", reason: workflows.ReasonInstanceTerminated, told: "InstanceTerminating", drain: workflows.Drained},
		// EC2 itself reports that the machine runs, and that counts more than a message.
		{event: "terminated", reason: workflows.ReasonInstanceTerminated, told: "InstanceTerminating", drain: workflows.Drained},
	}
	sent := make([]time.Time, len(rows))
	for i, row := range rows {
		sent[i] = announce(s.World, row.event, instance(claims[i]))
	}
	for i, row := range rows {
		s.told(claims[i], row.told)
		result := s.ends(claims[i].Name, 2*time.Minute)
		if diff := cmp.Diff(workflows.NodeClaimResult{Reason: row.reason, Node: claims[i].Status.NodeName, Drain: row.drain}, result); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.event, diff)
		}
		s.hears(claims[i], row.reason, sent[i])
	}
	s.AwaitRunning(s.name, 4, 2*time.Minute)
}

// statusChecks lets instances fail EC2's status checks: nothing waits for their pods any longer.
func statusChecks(t *testing.T, w *world.World) {
	// Neither the budget nor the annotation counts where nothing can run any more.
	s := enter(t, w, "impaired", setting{capacity: "on-demand", replicas: 3, unavailable: "0", annotations: "karpenter.sh/do-not-disrupt: 'true'"})
	claims := s.sorted()
	serving, draining, scheduled := claims[0], claims[1], claims[2]
	if err := s.Delete(t.Context(), &draining); err != nil {
		t.Fatal(err)
	}
	status := func(claim karpv1.NodeClaim, status ec2sim.Status) {
		s.Sim(http.MethodPost, "/_sim/status", struct {
			Instances []string `json:"instances"`
			ec2sim.Status
		}{[]string{instance(claim)}, status}, nil)
	}
	impaired := ec2sim.Duration(3 * time.Minute)
	status(serving, ec2sim.Status{System: "impaired", For: impaired})
	status(draining, ec2sim.Status{Instance: "impaired", For: impaired})
	status(scheduled, ec2sim.Status{Event: "instance-retirement"})
	for _, row := range []struct {
		claim  karpv1.NodeClaim
		reason string
	}{{serving, workflows.ReasonSystemStatusImpaired}, {draining, workflows.ReasonClaimDeleted}} {
		if result := s.ends(row.claim.Name, 3*time.Minute); result.Reason != row.reason {
			t.Errorf("the life of %s ended as %+v, want %s", row.claim.Name, result, row.reason)
		}
		s.told(row.claim, "InstanceUnhealthy")
	}
	s.RecordLatest(s.life(serving.Name), "forced")
	s.RecordLatest(s.life(draining.Name), "hurried")
	s.RecordLatest(workflows.Cluster(s.Lab.Cluster()).DrainID(draining.Status.NodeName), "hurried")
	// What was removed by force is replaced like anything else.
	s.AwaitRunning(s.name, 3, time.Minute)
	// A scheduled event is not forceful: the drain respects what blocks the pod.
	s.Await("the node that is to be retired is being drained", time.Minute, func() (bool, string) {
		endings, _ := s.signalled(scheduled.Name)
		return len(endings) > 0 && endings[0].Reason == workflows.ReasonScheduledChange, fmt.Sprint(endings)
	})
	if pod := s.runsOn(scheduled.Status.NodeName); pod.DeletionTimestamp != nil {
		t.Errorf("pod %s was evicted against its annotation", pod.Name)
	}
}
