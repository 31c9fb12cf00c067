package v1_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func rolledOut(annotations map[string]string) *v1.NodePool {
	return &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: annotations}}
}

func TestRollout(t *testing.T) {
	t.Parallel()
	steps := func(texts ...string) (all []intstr.IntOrString) {
		for _, text := range texts {
			all = append(all, intstr.Parse(text))
		}
		return all
	}
	usual := v1.Rollout{Steps: steps("1", "10%", "100%"), Bake: v1.RolloutBakeDefault, ReadyWithin: v1.RolloutReadyWithinDefault, Nodes: true, Pods: true}
	with := func(change func(*v1.Rollout)) *v1.Rollout {
		changed := usual
		change(&changed)
		return &changed
	}
	for name, test := range map[string]struct {
		reason string
		steps  string
		more   map[string]string
		want   *v1.Rollout
		wrong  string
	}{
		"Usual":   {reason: "a number, shares, and what holds otherwise", steps: "1,10%,100%", want: &usual},
		"Spaces":  {reason: "people write spaces", steps: " 1, 10% ,100%", want: &usual},
		"Below":   {reason: "the last step may be below 100 %", steps: "1,50%", want: with(func(r *v1.Rollout) { r.Steps = steps("1", "50%") })},
		"Numbers": {reason: "numbers may follow shares", steps: "10%,50,100%", want: with(func(r *v1.Rollout) { r.Steps = steps("10%", "50", "100%") })},
		"Settings": {reason: "everything may be said", steps: "1,10%,100%", more: map[string]string{v1.RolloutBakeAnnotationKey: "30m", v1.RolloutReadyWithinAnnotationKey: "90s", v1.RolloutGateAnnotationKey: "nodes", v1.RolloutQueryAnnotationKey: " up "}, want: with(func(r *v1.Rollout) {
			r.Bake, r.ReadyWithin, r.Pods, r.Query = 30*time.Minute, 90*time.Second, false, "up"
		})},
		"NoGate":      {reason: "a rollout may only take its time", steps: "1,10%,100%", more: map[string]string{v1.RolloutGateAnnotationKey: "none"}, want: with(func(r *v1.Rollout) { r.Nodes, r.Pods = false, false })},
		"Empty":       {reason: "an empty value is a mistake, and no wish to do without", steps: "", wrong: "tenon.sh/rollout"},
		"Word":        {reason: "a word", steps: "1,all", wrong: `"1,all" must be numbers of nodes or percentages`},
		"Zero":        {reason: "a step of no nodes", steps: "0,100%", wrong: "tenon.sh/rollout"},
		"Shrinking":   {reason: "a step below the one before", steps: "10%,5%", wrong: "each larger than the one before"},
		"AfterAll":    {reason: "a step after all nodes", steps: "100%,200", wrong: "each larger than the one before"},
		"TooMuch":     {reason: "more than all nodes", steps: "1,110%", wrong: "tenon.sh/rollout"},
		"Bake":        {reason: "a time without a unit", steps: "1", more: map[string]string{v1.RolloutBakeAnnotationKey: "30"}, wrong: `tenon.sh/rollout-bake: "30" must be a time`},
		"TooLate":     {reason: "machines that never join are cleared away before", steps: "1", more: map[string]string{v1.RolloutReadyWithinAnnotationKey: "1h"}, wrong: "at most 10m0s"},
		"Gate":        {reason: "a word of the gate", steps: "1", more: map[string]string{v1.RolloutGateAnnotationKey: "nodes,pod"}, wrong: `"nodes,pod" must be nodes, pods`},
		"AllMistakes": {reason: "all mistakes are named at once", steps: "x", more: map[string]string{v1.RolloutBakeAnnotationKey: "x"}, wrong: "; annotation tenon.sh/rollout-bake"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := map[string]string{v1.RolloutAnnotationKey: test.steps}
			for key, value := range test.more {
				annotations[key] = value
			}
			got, err := rolledOut(annotations).Rollout()
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("%s: error %v, want %q", test.reason, err, test.wrong)
				}
				if why := rolledOut(annotations).RolloutStop(); !strings.Contains(why, "is held") {
					t.Errorf("%s: nothing is held: %q", test.reason, why)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", test.reason, err, diff)
			}
		})
	}
	if got, err := rolledOut(nil).Rollout(); got != nil || err != nil {
		t.Errorf("a pool without the annotation has %v, %v", got, err)
	}
}

func TestRolloutStop(t *testing.T) {
	t.Parallel()
	const order = `{"what":"stop","by":"alice","reason":"latency","at":"2026-01-02T03:04:05Z"}`
	for name, test := range map[string]struct{ reason, steps, state, order, want string }{
		"GoesOn":    {reason: "nothing stops it", steps: "1,100%", state: `{"target":"a","began":"2026-01-02T03:04:05Z","step":1}`},
		"ByItself":  {reason: "what went wrong is named", steps: "1,100%", state: `{"target":"a","began":"2026-01-02T03:04:05Z","step":0,"stopped":"node n is ill"}`, want: "the rollout of NodePool p is stopped at step 1 of 2 (1): node n is ill"},
		"ByPerson":  {reason: "a person has stopped it", steps: "1,100%", order: order, want: "the rollout of NodePool p is stopped at step 1 of 2 (1) by alice: latency"},
		"BadState":  {reason: "somebody has edited the state", steps: "1,100%", state: "x", want: "annotation tenon.sh/rollout-state: "},
		"BadOrder":  {reason: "somebody has written an order by hand", steps: "1,100%", order: `{"what":"halt"}`, want: `"halt" must be stop, resume or back`},
		"NoRollout": {reason: "orders to a pool without a rollout mean nothing", order: order},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := map[string]string{v1.RolloutStateAnnotationKey: test.state, v1.RolloutOrderAnnotationKey: test.order}
			if test.steps != "" {
				annotations[v1.RolloutAnnotationKey] = test.steps
			}
			got := rolledOut(annotations).RolloutStop()
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("%s: %q, want %q", test.reason, got, test.want)
			}
		})
	}
}
