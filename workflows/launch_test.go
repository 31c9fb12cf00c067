package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

// launched runs a Launch and returns which claim got which instance, and what Provisioning was told.
func launched(t *testing.T, f *fakes, in LaunchInput) (pairs map[string]string, told []CapacityRefused, out LaunchOutcome) {
	t.Helper()
	env := environment(t, f)
	pairs = map[string]string{}
	env.OnWorkflow(NodeClaimType, anything, anything).Return(func(_ workflow.Context, in NodeClaimInput) (NodeClaimResult, error) {
		pairs[in.Claim.Name] = in.Instance.ID
		return NodeClaimResult{}, nil
	})
	env.OnSignalExternalWorkflow(anything, in.Cluster.ProvisioningID(), anything, SignalCapacityRefused, anything).Return(
		func(_, _, _, _ string, fact any) error {
			told = append(told, fact.(CapacityRefused))
			return nil
		})
	env.ExecuteWorkflow(LaunchType, in)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatalf("launch failed: %v", err)
	}
	if err := env.GetWorkflowResult(&out); err != nil {
		t.Fatal(err)
	}
	return pairs, told, out
}

func TestLaunch(t *testing.T) {
	t.Parallel()
	a, b := ClaimRef{"a", "1"}, ClaimRef{"b", "2"}
	refused := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	give := func(failure string) error { return temporal.NewNonRetryableApplicationError(failure, failure, nil) }
	tests := map[string]struct {
		reason   string
		fleets   []Fleet
		errs     []error
		found    Fleet
		has      []ClaimRef
		adopted  bool
		pairs    map[string]string
		released []ClaimRef
		because  string
		fleetsAt int
		told     bool
	}{
		"all": {
			reason: "claim i gets instance i",
			fleets: []Fleet{{Instances: []Instance{instance("i-1"), instance("i-2")}}},
			pairs:  map[string]string{"a": "i-1", "b": "i-2"}, fleetsAt: 1,
		},
		"too few": {
			reason: "what capacity refused is given back and planned again",
			fleets: []Fleet{{Instances: []Instance{instance("i-1")}, Refused: []cloud.OfferingKey{refused}}},
			pairs:  map[string]string{"a": "i-1"}, released: []ClaimRef{b}, because: ReasonInsufficient, fleetsAt: 1, told: true,
		},
		"stale request": {
			reason: "a request that names something gone launched nothing, so a new one with a new token is sent",
			fleets: []Fleet{{}, {Instances: []Instance{instance("i-1"), instance("i-2")}}}, errs: []error{give(FailureStaleRequest), nil},
			pairs: map[string]string{"a": "i-1", "b": "i-2"}, fleetsAt: 2,
		},
		"lost for good": {
			reason: "when nobody knows what became of the request, the cloud is searched and what is found is used",
			fleets: []Fleet{{}}, errs: []error{give("whatever")}, found: Fleet{Instances: []Instance{instance("i-1"), instance("i-2")}},
			pairs: map[string]string{"a": "i-1", "b": "i-2"}, fleetsAt: 1,
		},
		"nothing launched": {
			reason: "only when the search finds nothing are the claims given back",
			fleets: []Fleet{{}}, errs: []error{give("whatever")},
			pairs: map[string]string{}, released: []ClaimRef{a, b}, because: ReasonLaunchTimeout, fleetsAt: 1, told: true,
		},
		"spent token": {
			reason: "a token that was used for another request is followed by another, once nothing of it was found",
			fleets: []Fleet{{}, {Instances: []Instance{instance("i-1"), instance("i-2")}}}, errs: []error{give(FailureTokenSpent), nil},
			pairs: map[string]string{"a": "i-1", "b": "i-2"}, fleetsAt: 2,
		},
		"spent token with instances": {
			reason: "what was launched with a token that is spent is used, and nothing else is launched",
			fleets: []Fleet{{}}, errs: []error{give(FailureTokenSpent)}, found: Fleet{Instances: []Instance{instance("i-1"), instance("i-2")}},
			pairs: map[string]string{"a": "i-1", "b": "i-2"}, fleetsAt: 1,
		},
		"adopted in part": {
			reason: "a claim whose workflow runs has its instance, even if it is not written down yet", adopted: true, has: []ClaimRef{a},
			fleets: []Fleet{{Instances: []Instance{instance("i-2")}}}, pairs: map[string]string{"b": "i-2"}, fleetsAt: 1,
		},
		"adopted in vain": {
			reason: "a group whose claims all have their workflows needs nothing, and nothing is given back", adopted: true, has: []ClaimRef{a, b},
			pairs: map[string]string{},
		},
		"adopted": {
			reason: "a group that an earlier run may have launched is looked for before anything is asked", adopted: true,
			found: Fleet{Instances: []Instance{instance("i-1"), instance("i-2")}}, pairs: map[string]string{"a": "i-1", "b": "i-2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tokens []string
			var released []ClaimRef
			because := ""
			f := &fakes{
				prepare: func(g LaunchGroup) (PreparedLaunch, error) { return prepared(g.Claims...), nil },
				fleet: func(in CreateFleetInput) (Fleet, error) {
					at := len(tokens)
					tokens = append(tokens, in.Request.Token)
					if at < len(test.errs) && test.errs[at] != nil {
						return Fleet{}, test.errs[at]
					}
					return test.fleets[at], nil
				},
				find: func(in FindInstancesInput) (Found, error) {
					return Found{test.found, slices.DeleteFunc(in.Claims, func(c ClaimRef) bool { return slices.Contains(test.has, c) })}, nil
				},
				release: func(in ReleaseClaimsInput) { released, because = in.Claims, in.Reason },
			}
			pairs, told, out := launched(t, f, LaunchInput{Cluster: "c", Adopted: test.adopted,
				LaunchGroup: LaunchGroup{Group: "g", NodePool: "p", Claims: []ClaimRef{a, b}}})
			if diff := cmp.Diff(test.pairs, pairs); diff != "" {
				t.Errorf("%s: pairs (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.released, released); diff != "" || because != test.because {
				t.Errorf("%s: released for %q, want %q (-want +got):\n%s", test.reason, because, test.because, diff)
			}
			if len(tokens) != test.fleetsAt || len(told) > 0 != test.told {
				t.Errorf("%s: %d fleet calls, want %d; Provisioning told: %v", test.reason, len(tokens), test.fleetsAt, told)
			}
			if out.Launched != len(test.pairs) || out.Released != len(test.released) {
				t.Errorf("%s: outcome %+v", test.reason, out)
			}
			for i, token := range tokens {
				if len(token) > 64 || i > 0 && token == tokens[i-1] {
					t.Errorf("%s: token %q of try %d", test.reason, token, i)
				}
			}
		})
	}
}

func TestLaunchRetriesWithTheSameToken(t *testing.T) {
	t.Parallel()
	var asked []CreateFleetInput
	f := &fakes{
		prepare: func(g LaunchGroup) (PreparedLaunch, error) { return prepared(g.Claims...), nil },
		fleet: func(in CreateFleetInput) (Fleet, error) {
			if asked = append(asked, in); len(asked) < 3 {
				return Fleet{}, errors.New("connection reset")
			}
			return Fleet{Instances: []Instance{instance("i-1")}}, nil
		},
	}
	launched(t, f, LaunchInput{Cluster: "c", LaunchGroup: LaunchGroup{Group: "g", Claims: []ClaimRef{{"a", "1"}}}})
	for _, again := range asked[1:] {
		if diff := cmp.Diff(asked[0], again); diff != "" {
			t.Errorf("a retry must ask the same question (-first +again):\n%s", diff)
		}
	}
}

// TestManyNodeClaimsAreStartedTogether checks that a large group needs one activity for its NodeClaim workflows, that the
// activity is tried until it succeeds, and that each workflow gets what a child would have got.
func TestManyNodeClaimsAreStartedTogether(t *testing.T) {
	t.Parallel()
	claims := []ClaimRef{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}
	var started []NodeClaimInput
	tries := 0
	f := &fakes{
		prepare: func(g LaunchGroup) (PreparedLaunch, error) { return prepared(g.Claims...), nil },
		fleet: func(CreateFleetInput) (Fleet, error) {
			return Fleet{Instances: []Instance{instance("i-1"), instance("i-2"), instance("i-3")}}, nil
		},
		release: func(ReleaseClaimsInput) {},
		start: func(in StartNodeClaimsInput) error {
			if tries++; tries == 1 {
				return errors.New("connection reset")
			}
			started = in.NodeClaims()
			return nil
		},
	}
	children, _, out := launched(t, f, LaunchInput{Cluster: "c", LaunchGroup: LaunchGroup{Group: "g", NodePool: "p", Claims: claims}})
	var want []NodeClaimInput
	for i, claim := range claims[:3] {
		want = append(want, NodeClaimInput{Cluster: "c", Claim: claim, NodePool: "p", Group: "g", Instance: instance(fmt.Sprintf("i-%d", i+1)), DrainTells: true})
	}
	if diff := cmp.Diff(want, started); diff != "" || len(children) > 0 {
		t.Errorf("%d children; started together (-want +got):\n%s", len(children), diff)
	}
	if out.Launched != 3 || out.Released != 1 {
		t.Errorf("outcome %+v, want 3 launched and the one that got no instance released", out)
	}
}

func TestLaunchTokenOutlivesRuns(t *testing.T) {
	t.Parallel()
	id := Cluster("prod").LaunchID("group-" + strings.Repeat("x", 60))
	first, second := []ClaimRef{{"a", "1"}}, []ClaimRef{{"b", "2"}}
	if a, b := launchToken(id, first, 1), launchToken(id, first, 1); a != b || len(a) > 64 {
		t.Errorf("token %q then %q: must be a function of workflow id, claims and try, at most 64 characters", a, b)
	}
	if launchToken(id, first, 1) == launchToken(id, first, 2) {
		t.Error("another try must have another token")
	}
	if launchToken(id, []ClaimRef{{"a", "1"}, {"b", "2"}}, 1) != launchToken(id, []ClaimRef{{"b", "2"}, {"a", "1"}}, 1) {
		t.Error("a launch that is adopted reads its claims in another order, and asks with another token")
	}
	if launchToken(id, first, 1) == launchToken(id, second, 1) {
		t.Error("claims of one group that are adopted one by one would be given the same instance")
	}
}

func TestEveryActivityIsInTheTable(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	RegisterActivities(env, &fakes{})
	for _, a := range []struct {
		name   string
		policy Policy
	}{
		{PlanActivity.Name, PlanActivity.Policy}, {PrepareLaunchActivity.Name, PrepareLaunchActivity.Policy}, {CreateFleetActivity.Name, CreateFleetActivity.Policy},
		{FindInstancesActivity.Name, FindInstancesActivity.Policy}, {ReleaseClaimsActivity.Name, ReleaseClaimsActivity.Policy},
		{StartNodeClaimsActivity.Name, StartNodeClaimsActivity.Policy}, {JoinActivity.Name, JoinActivity.Policy},
		{TerminateActivity.Name, TerminateActivity.Policy}, {DeleteClaimActivity.Name, DeleteClaimActivity.Policy}, {EvictActivity.Name, EvictActivity.Policy},
		{UncordonActivity.Name, UncordonActivity.Policy}, {EvaluateActivity.Name, EvaluateActivity.Policy}, {RemoveActivity.Name, RemoveActivity.Policy},
		{SweepActivity.Name, SweepActivity.Policy},
	} {
		if a.policy.Attempt == 0 || a.policy.Heartbeat == 0 || a.policy.Heartbeat > a.policy.Attempt || a.policy.First == 0 || a.policy.Most < a.policy.First {
			t.Errorf("policy of %s is incomplete: %s", a.name, fmt.Sprintf("%+v", a.policy))
		}
	}
}
