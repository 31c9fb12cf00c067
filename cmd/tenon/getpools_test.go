package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestListPools(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	direct := paused(&now, "alice").kube
	web := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: karpv1.NodePoolStatus{Nodes: new(int64(3))}}
	for _, condition := range []metav1.Condition{
		{Type: karpv1.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue}, {Type: karpv1.ConditionTypeNodeClassReady, Status: metav1.ConditionTrue},
		{Type: karpv1.ConditionTypeMaintenanceWindow, Status: metav1.ConditionFalse, Reason: "Closed", Message: "closed for Drifted until tomorrow"},
		{Type: karpv1.ConditionTypeDisruptionLimited, Status: metav1.ConditionTrue, Reason: "ClusterRate", Message: "the cluster's rate is used up"},
	} {
		web.SetCondition(condition)
	}
	if err := direct.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	var out, table bytes.Buffer
	if err := listPools(t.Context(), direct, &out, true); err != nil {
		t.Fatal(err)
	}
	var got []listedPool
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := []listedPool{{Name: "gpu", Open: true}, {Name: "web", Ready: true, Nodes: 3, Window: "closed for Drifted until tomorrow", Limited: "the cluster's rate is used up"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := listPools(t.Context(), direct, &table, false); err != nil {
		t.Fatal(err)
	}
	text := `NODEPOOL  READY  NODES  KEPT BY
gpu       false  0      -
web       true   3      the cluster's rate is used up; closed for Drifted until tomorrow
`
	if diff := cmp.Diff(text, table.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
