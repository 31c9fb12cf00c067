package activities

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// The first window opens once in four years, the second is always open.
const (
	shut   = `[{"schedule": "0 0 29 2 *", "duration": "1m"}]`
	always = `[{"schedule": "* * * * *", "duration": "1h"}]`
	kindly = `[{"schedule": "0 0 29 2 *", "duration": "1m", "reasons": ["Unhealthy", "Interrupted"]}]`
)

// windowed is the NodePool of pooled claims with windows of its own.
func windowed(text string) *karpv1.NodePool {
	return &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pooled("a").Labels[karpv1.NodePoolLabelKey], Annotations: map[string]string{karpv1.MaintenanceWindowsAnnotationKey: text}}}
}

// TestDeleteClaimOutsideOfAWindow ends a claim for every kind of reason. The life of a claim that waits for a window is told when
// the next one opens, and needs nobody else to end then.
func TestDeleteClaimOutsideOfAWindow(t *testing.T) {
	t.Parallel()
	expires := workflows.DeleteClaimInput{Reason: workflows.ReasonExpired, Expires: true}
	for name, test := range map[string]struct {
		reason     string
		everywhere string
		objects    []client.Object
		ending     workflows.DeleteClaimInput
		postpone   bool
		again      bool
	}{
		"Expiry":       {reason: "an expired claim waits, also where it goes by force", everywhere: shut, ending: expires, postpone: true, again: true},
		"Open":         {reason: "in a window it goes", everywhere: always, ending: expires},
		"Own":          {reason: "a NodePool's windows take the place of the cluster's", everywhere: always, objects: []client.Object{windowed(shut)}, ending: expires, postpone: true, again: true},
		"Free":         {reason: "a NodePool may have none", everywhere: shut, objects: []client.Object{windowed("[]")}, ending: expires},
		"Misspelt":     {reason: "what nobody can read never opens, and the starter tells the life when somebody has corrected it", objects: []client.Object{windowed("sunday")}, ending: expires, postpone: true},
		"Repair":       {reason: "repair does not wait", everywhere: shut, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonUnhealthy, Pausable: true}},
		"RepairNamed":  {reason: "unless the windows name it", everywhere: kindly, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonUnhealthy, Pausable: true}, postpone: true, again: true},
		"Interruption": {reason: "interruptions do not wait", everywhere: shut, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonSpotInterrupted, Pausable: true}},
		"InterruptionNamed": {reason: "unless the windows name them", everywhere: kindly,
			ending: workflows.DeleteClaimInput{Reason: workflows.ReasonScheduledChange, Pausable: true}, postpone: true, again: true},
		"ManualDrain": {reason: "what a person wants is done", everywhere: shut, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonManualDrain, Pausable: true}},
		"NeverJoined": {reason: "a machine that never joined is cleared away", everywhere: shut, ending: workflows.DeleteClaimInput{Reason: workflows.ReasonRegistrationTimeout, Pausable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			windows, err := karpv1.ParseMaintenanceWindows(test.everywhere)
			if err != nil {
				t.Fatal(err)
			}
			kube := pausableKube(t, append(test.objects, pooled("a"))...)
			test.ending.Claim, test.ending.UID = "a", string(pooled("a").UID)
			got, err := runOnce(t, New(Config{Kube: kube, Windows: windows, Log: zap.NewNop()}).DeleteClaim, test.ending)
			if err != nil {
				t.Fatal(err)
			}
			var claim karpv1.NodeClaim
			if err := kube.Get(t.Context(), client.ObjectKey{Name: "a"}, &claim); err != nil {
				t.Fatal(err)
			}
			if deleted := !claim.DeletionTimestamp.IsZero(); deleted == test.postpone || got.Postponed != test.postpone || got.Again.After(time.Now()) != test.again {
				t.Errorf("%s: deleted %v, answer %+v", test.reason, deleted, got)
			}
			if test.postpone && !strings.Contains(got.Why, "window") {
				t.Errorf("%s: it says %q", test.reason, got.Why)
			}
		})
	}
}

// TestReplacementsOutsideOfAWindow begins and ends replacements when their window has closed. A person's order does not wait.
func TestReplacementsOutsideOfAWindow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, of string
		goes       bool
	}{
		{reason: "what has drifted waits", of: string(karpv1.DisruptionReasonDrifted)},
		{reason: "a person's order does not", of: workflows.ReasonManualReplacement, goes: true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			claim, node := serving("a")
			pool := windowed(shut)
			pool.Name = "p"
			r := newReplacing(t, nil, claim, node, pool)
			gone := workflows.RemovedNode{Node: node.Name, NodeUID: string(node.UID), NodePool: "p", Claim: workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}}
			_, err := run(t, r.acts.BeginReplacement, workflows.ReplacementCommand{ID: "r", Reason: test.of, Nodes: []workflows.RemovedNode{gone}})
			if (err == nil) != test.goes || err != nil && !strings.Contains(err.Error(), "maintenance windows of NodePool p") {
				t.Fatalf("it begins: %v", err)
			}
			result, err := run(t, r.acts.Retire, workflows.RetireInput{ID: "r", Reason: test.of, Nodes: []workflows.RemovedNode{gone}})
			if err != nil {
				t.Fatal(err)
			}
			if (len(result.Retired) == 1) != test.goes || result.ForGood == test.goes {
				t.Errorf("when what replaces it serves: %+v", result)
			}
			removed, err := run(t, r.acts.Remove, workflows.Removal{Reason: test.of, Nodes: []workflows.RemovedNode{gone}})
			if !test.goes && (err != nil || removed.Removed != 0) {
				t.Errorf("it is removed: %+v, %v", removed, err)
			}
		})
	}
}
