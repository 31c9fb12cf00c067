package disruption_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// Machines of this type never become ready with this release of the image. No other scenario may buy them.
const rolledType, lameRelease = "m5dn.large", "v20260928"

func lameImage() ec2sim.BootFault {
	return ec2sim.BootFault{PoolPattern: ec2sim.PoolPattern{InstanceType: rolledType}, Image: "*" + lameRelease}
}

// rolloutScenarios are about drifted nodes that are replaced in steps.
func rolloutScenarios(l *laboratory) []scenario {
	const count = 3
	web := workload{name: "web", count: count, requests: whole}
	class := func(image string) string {
		return nodeClass("rollout-image", l.Lab.Cluster(), map[string]string{"amiSelectorTerms": "[{alias: " + image + "}]"})
	}
	return []scenario{{
		name: "rollout-image", rule: "an image whose nodes do not become Ready stops at the first step, and goes back on request", objects: class("al2023@latest"),
		pools: []pool{{class: "rollout-image", types: []string{rolledType}, annotations: `tenon.sh/rollout: "1,100%", tenon.sh/rollout-ready-within: 10s, tenon.sh/rollout-bake: 0s`}},
		steps: []step{deploy(web), rolloutIs(karpv1.RolloutComplete, "no node has drifted"), mark, create(class("al2023@" + lameRelease)), drifted("AMIDrift"),
			rolloutIs(karpv1.RolloutStopped, "step 1 of 2 (1): node"), told("RolloutStopped", "is not Ready 10s after its launch"), made(count + 1), tellsWhy("is stopped at step 1 of 2 (1)"),
			rolledBack("back", "changed EC2NodeClass rollout-image", "--yes"), pinnedAgain, serve(count), rolloutIs(karpv1.RolloutComplete, ""), made(count + 1)},
	}, {
		name: "rollout-ill", rule: "a new node that is ill stops a rollout, until a person has it go on", pools: []pool{{annotations: `tenon.sh/rollout: "1,100%", tenon.sh/rollout-bake: 1h`}},
		steps: []step{deploy(web), rolloutIs(karpv1.RolloutComplete, "no node has drifted"), mark, changePools(relabelled), rolloutIs(karpv1.RolloutBaking, "step 1 of 2 (1) is watched until"), made(count + 1),
			onNew(ill("KernelReady", 2*time.Minute)), rolloutIs(karpv1.RolloutStopped, "is ill: condition KernelReady is False (Test)"), tellsWhy("is stopped at step 1 of 2 (1)"), made(count + 1),
			changePools(`{"metadata":{"annotations":{"tenon.sh/rollout-bake":"0s"}}}`), onNew(ill("KernelReady", 0)), rolledBack("resume", "", "--reason=it was a probe"), replaced(count),
			have("version", "two"), rolloutIs(karpv1.RolloutComplete, "no node has drifted any more"), preSpun},
		takes: takes{"Drifted": count},
	}}
}

// rolloutIs waits until the condition Rollout of the scenario's NodePool says this, and checks that tenon rollout status does.
func rolloutIs(reason, text string) step {
	return func(p *play) {
		p.T.Helper()
		name := p.pools[0].name(p.name)
		p.Await("the rollout "+reason, p.within(), func() (bool, string) {
			var pool karpv1.NodePool
			if err := p.view.Get(p.Context(), client.ObjectKey{Name: name}, &pool); err != nil {
				return false, err.Error()
			}
			condition := pool.Condition(karpv1.ConditionTypeRollout)
			return condition != nil && condition.Reason == reason && strings.Contains(condition.Message, text), fmt.Sprintf("%+v", condition)
		})
		out, err := p.Tenon("rollout", "status", name, "-o", "json")
		var shown []struct{ Reason, Message string }
		if err == nil {
			err = json.Unmarshal([]byte(out), &shown)
		}
		if err != nil || len(shown) != 1 || shown[0].Reason != reason || !strings.Contains(shown[0].Message, text) {
			p.T.Errorf("tenon rollout status: %v:\n%s", err, out)
		}
	}
}

// rolledBack runs a command of tenon rollout for the scenario's NodePool.
func rolledBack(what, says string, args ...string) step {
	return func(p *play) {
		p.T.Helper()
		out, err := p.Tenon(append([]string{"rollout", what, p.pools[0].name(p.name)}, args...)...)
		if err != nil || !strings.Contains(out, says) {
			p.T.Fatalf("tenon rollout %s: %v:\n%s", what, err, out)
		}
	}
}

// pinnedAgain checks that the class chooses by its version the image that it chose as the newest.
func pinnedAgain(p *play) {
	p.T.Helper()
	var class awsv1.EC2NodeClass
	if err := p.Get(p.Context(), client.ObjectKey{Name: "rollout-image"}, &class); err != nil {
		p.T.Fatal(err)
	}
	if alias, some := class.Alias(); !some || alias.Version == awsv1.AliasVersionLatest || alias.Version == lameRelease {
		p.T.Errorf("the class chooses %+v", class.Spec.AMISelectorTerms)
	}
}

// tellsWhy waits until tenon why node says why some old node stays although it has drifted.
func tellsWhy(text string) step {
	return func(p *play) {
		p.T.Helper()
		p.Await("the verdict of the rollout", p.within(), func() (bool, string) {
			for _, l := range p.view.of(p.name) {
				if !p.marked[l.claim] || l.gone || l.tainted {
					continue
				}
				for _, v := range p.why(l.node) {
					if v.Reason == "Drifted" && v.Cause == "Rollout" && strings.Contains(v.Message, text) {
						return true, ""
					}
				}
			}
			return false, fmt.Sprint(p.answers)
		})
	}
}

// onNew does something with the nodes that are not marked.
func onNew(act func(*play, string)) step {
	return func(p *play) {
		p.T.Helper()
		var names []string
		for _, l := range p.view.of(p.name) {
			if !p.marked[l.claim] && !l.gone {
				names = append(names, l.node)
			}
		}
		if len(names) == 0 {
			p.T.Fatal("there are no new nodes")
		}
		for _, name := range names {
			act(p, name)
		}
	}
}
