package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/recorded"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/internal/view/viewtest"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// silentAfter answers so many questions, and then no more.
type silentAfter struct{ answers, asked int }

func (s *silentAfter) Pod(_ context.Context, _, name string) (workflows.PodAnswer, error) {
	s.asked++
	if s.asked > s.answers {
		return workflows.PodAnswer{}, errors.New("no worker answered")
	}
	return workflows.PodAnswer{Verdict: workflows.PodUnplaced, Reasons: []workflows.PodReason{{NodePool: "a", Message: name + " is too large"}, {NodePool: "b", Message: "tainted"}}}, nil
}

func TestAskWhy(t *testing.T) {
	t.Parallel()
	pods := []*plan.Pod{{UID: "judged", Name: "judged", Unschedulable: true}, {UID: "unjudged"}, {UID: "virtual", Unschedulable: true, Virtual: true}, {UID: "second", Unschedulable: true},
		{UID: "third", Unschedulable: true}}
	for name, row := range map[string]struct {
		reason       string
		answers, ask int
		want         map[types.UID]string
	}{
		"Answers": {"only pods that the kube-scheduler found no node for are asked about", 9, 3, map[types.UID]string{"judged": "no node can be provisioned for it: NodePool a: judged is too large; NodePool b: tainted"}},
		"Silent":  {"nobody waits for a silent worker twice", 0, 1, map[types.UID]string{"judged": "no worker answered"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := &silentAfter{answers: row.answers}
			got := askWhy(t.Context(), worker, pods)
			if worker.asked != row.ask {
				t.Errorf("%d questions, want %d: %s", worker.asked, row.ask, row.reason)
			}
			for uid, want := range row.want {
				if got[uid] != want {
					t.Errorf("pod %s: %q, want %q: %s", uid, got[uid], want, row.reason)
				}
			}
			if got["unjudged"] != "" || got["virtual"] != "" {
				t.Errorf("got %v: %s", got, row.reason)
			}
		})
	}
}

func TestGetTables(t *testing.T) {
	t.Parallel()
	town := viewtest.New(2, 6, 60)
	seen := view.NewBuilder("blue").Build(view.Input{Snapshot: town.Snapshot(), Prices: viewtest.Prices().Of})
	pool := seen.Nodes[0].Pool
	only := ofPool(seen, pool)
	for _, node := range only.Nodes {
		if node.Pool != pool {
			t.Errorf("node %s of NodePool %s is listed under %s", node.Name, node.Pool, pool)
		}
	}
	for name, row := range map[string]struct {
		reason string
		write  func(*bytes.Buffer) error
		want   []string
	}{
		"Nodes":  {"the sum is below", func(b *bytes.Buffer) error { return writeNodes(b, seen, false) }, []string{"NODE ", seen.Nodes[0].Name, "\n6 nodes with 59 pods, "}},
		"Claims": {"a claim has its node beside it", func(b *bytes.Buffer) error { return writeClaims(b, seen, false) }, []string{"NODECLAIM ", seen.Nodes[0].Claim, seen.Nodes[0].Name}},
		"Pods":   {"those that wait come first", func(b *bytes.Buffer) error { return writePods(b, seen, false) }, []string{"POD ", seen.Pending[0].Key(), seen.Nodes[0].Pods[0].Key()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := row.write(&out); err != nil {
				t.Fatal(err)
			}
			rest := out.String()
			for _, want := range row.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%s: %q does not come next in\n%s", row.reason, want, out.String())
				}
				rest = after
			}
		})
	}
}

// TestHistoryStaysInItsTable shows that what others have written neither breaks the table nor reaches the terminal as a
// control sequence.
func TestHistoryStaysInItsTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	err := printHistory(&out, recorded.Story{Lives: []recorded.Life{{Claim: "a", NodePool: "default", Zone: "us-east-1a", PerHour: 0.5, Cost: 1, Began: at, Ended: at.Add(2 * time.Hour)}},
		Events: []recorded.Event{{At: at, What: "drain", Who: "eve", Why: "two\nlines \x1b[2J and\ttabs"}}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(out.String(), '\x1b') || !strings.Contains(out.String(), "two lines  [2J and tabs") || !strings.Contains(out.String(), "$1.0000 at $0.5000 per hour") {
		t.Errorf("the table is\n%q", out.String())
	}
}
