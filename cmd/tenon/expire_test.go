package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestExpireCommand(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	paused := paused(&now, "alice")
	for name, age := range map[string]time.Duration{"young": time.Hour, "old": 1000 * time.Hour, "other": 2000 * time.Hour, "leaving": 3000 * time.Hour} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.NodePoolLabelKey: "gpu"}, CreationTimestamp: metav1.NewTime(now.Add(-age))},
			Status: karpv1.NodeClaimStatus{NodeName: "node-" + name}}
		switch name {
		case "other":
			claim.Labels[karpv1.NodePoolLabelKey] = "cpu"
		case "leaving":
			claim.Finalizers = []string{karpv1.TerminationFinalizer}
		}
		if err := paused.kube.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if name == "leaving" {
			if err := paused.kube.Delete(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := &expireCommand{pauseCommand: *paused, progress: &bytes.Buffer{}}
	for _, step := range []struct {
		reason string
		names  []string
		flags  expireFlags
		want   string
		fails  string
	}{
		{reason: "a dry run marks nothing", flags: expireFlags{pool: "gpu", dryRun: true}, want: "leaving Leaving, old Marked, young Marked"},
		{reason: "of a NodePool, only nodes of an age", flags: expireFlags{pool: "gpu", olderThan: 720 * time.Hour, reason: "kernel CVE"}, want: "leaving Leaving, old Marked"},
		{reason: "a mark that is there stays", flags: expireFlags{pool: "gpu", reason: "another"}, want: "leaving Leaving, old AlreadyMarked, young Marked"},
		{reason: "a node is named by its Node or its NodeClaim", names: []string{"node-other", "young"}, want: "other Marked, young AlreadyMarked"},
		{reason: "marks are removed", flags: expireFlags{pool: "gpu", cancel: true}, want: "leaving Leaving, old Unmarked, young Unmarked"},
		{reason: "which is no mistake where there are none", names: []string{"young"}, flags: expireFlags{cancel: true}, want: "young NotMarked"},
		{reason: "everything is never meant", fails: "name nodes, or a NodePool"},
		{reason: "both is unclear", names: []string{"old"}, flags: expireFlags{pool: "gpu"}, fails: "name nodes, or a NodePool"},
		{reason: "a wrong name marks nothing at all", names: []string{"old", "olf"}, fails: "named olf"},
		{reason: "a NodePool that is not there", flags: expireFlags{pool: "gpus"}, fails: "--pool gpus"},
		{reason: "an age needs a NodePool", names: []string{"old"}, flags: expireFlags{olderThan: time.Hour}, fails: "--older-than"},
	} {
		out := c.out.(*bytes.Buffer)
		out.Reset()
		err := c.expire(t.Context(), step.names, step.flags)
		if (err != nil) != (step.fails != "") || err != nil && !strings.Contains(err.Error(), step.fails) {
			t.Fatalf("%s: error %v, want %q", step.reason, err, step.fails)
		}
		if err != nil {
			continue
		}
		var marked []markedNode
		if err := json.Unmarshal(out.Bytes(), &marked); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, m := range marked {
			words = append(words, m.Claim+" "+m.Result)
		}
		if got := strings.Join(words, ", "); got != step.want {
			t.Errorf("%s: %q, want %q", step.reason, got, step.want)
		}
	}
	var other, old karpv1.NodeClaim
	for name, claim := range map[string]*karpv1.NodeClaim{"other": &other, "old": &old} {
		if err := c.kube.Get(t.Context(), kube.ObjectKey{Name: name}, claim); err != nil {
			t.Fatal(err)
		}
	}
	order, err := other.ExpireOrder()
	if err != nil || order == nil || order.By != "alice" || !order.At.Equal(now) {
		t.Errorf("the mark says %+v, %v", order, err)
	}
	if len(old.Annotations) != 0 {
		t.Errorf("the mark is still there: %v", old.Annotations)
	}
}

func TestExpireNamesPauses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var notes bytes.Buffer
	c := &expireCommand{pauseCommand: *paused(&now, "alice"), progress: &notes}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{karpv1.NodePoolLabelKey: "gpu"}}}
	if err := c.kube.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := c.pause(t.Context(), "disruption", pauseFlags{reason: "peak"}); err != nil {
		t.Fatal(err)
	}
	if err := c.expire(t.Context(), []string{"c"}, expireFlags{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes.String(), "disruption is paused in the whole cluster by alice: peak") {
		t.Errorf("the notes are %q", notes.String())
	}
}
