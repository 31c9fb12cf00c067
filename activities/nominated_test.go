package activities

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

func TestNominatedNamesTheClaimOfAPod(t *testing.T) {
	t.Parallel()
	var pending []*plan.Pod
	var uids []types.UID
	for i := range 2 * maxNominated {
		uid := types.UID(fmt.Sprint(i))
		pending, uids = append(pending, &plan.Pod{UID: uid, Namespace: "default", Name: fmt.Sprint("web-", i)}), append(uids, uid)
	}
	groups := []workflows.LaunchGroup{{Claims: []workflows.ClaimRef{{Name: "default-abcde"}}}}
	events := record.NewFakeRecorder(100)
	e := &explained{events: recorder{events}}
	e.tellNominated(pending, []plan.Claim{{Pods: uids}}, groups)
	if got := len(events.Events); got != maxNominated {
		t.Errorf("%d Events about %d pods, want %d", got, len(pending), maxNominated)
	}
	if got, want := <-events.Events, "Normal Nominated Pod should schedule on: nodeclaim/default-abcde"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for len(events.Events) > 0 {
		<-events.Events
	}
	e.tellNominated(pending, []plan.Claim{{Pods: uids}, {}}, groups)
	if len(events.Events) > 0 {
		t.Errorf("%q although a claim could not be created", <-events.Events)
	}
}
