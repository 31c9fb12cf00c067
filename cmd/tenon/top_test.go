package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/live"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
)

func TestTopFlags(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		args   []string
		says   string // empty where nothing is wrong
	}{
		"Fine":     {reason: "as eks-node-viewer is called", args: []string{"--cluster=blue", "--resources=cpu,memory", "--node-selector=karpenter.sh/nodepool", "--extra-labels=a,b", "--node-sort=creation=dsc", "--style=#04B575,#FFFF00,#FF0000", "--disable-pricing"}},
		"Cluster":  {reason: "Temporal has many clusters", says: "which cluster?"},
		"Selector": {reason: "not a selector", args: []string{"--cluster=blue", "--node-selector=a in b"}, says: "--node-selector: "},
		"Sort":     {reason: "not an order", args: []string{"--cluster=blue", "--node-sort=cpu=up"}, says: `--node-sort "cpu=up": `},
		"Group":    {reason: "not a grouping", args: []string{"--cluster=blue", "--group=rack"}, says: `--group "rack": must be one of [pool zone owner none]`},
		"Style":    {reason: "not colours", args: []string{"--cluster=blue", "--style=red"}, says: `--style "red": `},
		"Output":   {reason: "not a format", args: []string{"--cluster=blue", "-o=yaml"}, says: "--output"},
		"Provider": {reason: "not a provider", args: []string{"--cluster=blue", "--provider=gcp"}, says: `--provider "gcp"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var flags topFlags
			cmd := newTopCommand()
			cmd.ResetFlags()
			flags.add(cmd)
			if err := cmd.ParseFlags(row.args); err != nil {
				t.Fatal(err)
			}
			_, err := flags.options()
			if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
				t.Errorf("got %v, want %q: %s", err, row.says, row.reason)
			}
		})
	}
}

// stillMirror never changes.
type stillMirror struct{ snapshot plan.Snapshot }

func (m *stillMirror) Snapshot() *plan.Snapshot  { return &m.snapshot }
func (m *stillMirror) Fresh(time.Duration) error { return nil }
func (m *stillMirror) NodeClasses() []cloud.NodeClass {
	return []cloud.NodeClass{&awsv1.EC2NodeClass{}}
}

// TestTopSaysWhyPricesAreNotThoseOfThisMoment shows that the prices at the launch are shown where AWS's cannot be read, and why.
func TestTopSaysWhyPricesAreNotThoseOfThisMoment(t *testing.T) {
	t.Parallel()
	mirror := &stillMirror{plan.Snapshot{Nodes: []*plan.Node{{Name: "a", Claim: "launched", InstanceType: "m5.large"}, {Name: "b", InstanceType: "m5.large"}}}}
	offline := errors.New("no region is configured")
	s := &topSource{launched: map[string]float64{"launched": 0.25}, away: errors.New("Temporal is away"), watches: &lastWords{}}
	s.source = live.New(live.Options{Mirror: mirror, Recorded: s, Types: func(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error) { return nil, offline }})
	s.source.ReadAll(t.Context())
	look := s.look(t.Context(), view.NewBuilder("blue"))
	if !strings.Contains(look.Unpriced, offline.Error()) || look.View.Nodes[0].PerHour != 0.25 || look.View.Cost.Unpriced != 1 {
		t.Errorf("%q, %+v", look.Unpriced, look.View.Cost)
	}
	if !strings.Contains(look.View.Trouble, "Temporal is away") {
		t.Errorf("without Temporal the trouble is %q", look.View.Trouble)
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	said := &lastWords{}
	log := said.logger()
	log.Info("listed")
	log.Error("failed to list pods", zap.Error(errors.New("forbidden")))
	if got := said.last(); !strings.Contains(got, "failed to list pods") || !strings.Contains(got, "forbidden") || strings.Contains(got, "\n") {
		t.Errorf("the last words are %q", got)
	}
}
