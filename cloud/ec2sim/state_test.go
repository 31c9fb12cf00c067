package ec2sim_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestStateSurvivesAKill opens the state file of a simulator that is still running, as after a SIGKILL: the simulator
// flushes nothing when it stops.
func TestStateSurvivesAKill(t *testing.T) {
	t.Parallel()
	path := stateFile(t)
	killed := start(t, ec2sim.Options{StateFile: path})
	name := killed.template(t, "x86_64")
	if _, err := killed.iam().CreateInstanceProfile(ctx(t), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("p")}); err != nil {
		t.Fatal(err)
	}
	killed.faults(t, ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: "c*"}}}})
	in := fleetInput(name, 3, onDemand, killed.override(t, "m5.large", "us-east-1a"))
	in.ClientToken = aws.String("t")
	first, err := killed.ec2.CreateFleet(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		data   []byte
	}{
		{"the file as it is", data},
		{"a request was being written", append(bytes.Clone(data), `[{"t":"instance","id":"i-1","v":{"ID":`...)},
	} {
		copied := stateFile(t)
		if err := os.WriteFile(copied, tc.data, 0o600); err != nil {
			t.Fatal(err)
		}
		a := start(t, ec2sim.Options{StateFile: copied})
		if diff := cmp.Diff(killed.sim.Instances(), a.sim.Instances()); diff != "" {
			t.Errorf("%s: instances (-want +got):\n%s", tc.reason, diff)
		}
		if diff := cmp.Diff(killed.sim.Faults(), a.sim.Faults()); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s", tc.reason, diff)
		}
		again, err := a.ec2.CreateFleet(ctx(t), in)
		if err != nil {
			t.Fatalf("%s: the same token after the restart: %v", tc.reason, err)
		}
		if diff := cmp.Diff(launched(first), launched(again)); diff != "" {
			t.Errorf("%s: the same token launched others: %s", tc.reason, diff)
		}
		if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: launched(first)[:1]}); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if _, err := a.iam().GetInstanceProfile(ctx(t), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("p")}); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if err := a.sim.Close(); err != nil {
			t.Fatal(err)
		}
		if reopened := start(t, ec2sim.Options{StateFile: copied}); reopened.living() != 2 {
			t.Errorf("%s: after another restart %d instances live, want 2", tc.reason, reopened.living())
		}
	}
}

func TestDamagedStateIsRefused(t *testing.T) {
	t.Parallel()
	for reason, text := range map[string]string{
		"garbage in the middle": "{]\n[]\n",
		"an unknown table":      `[{"t":"dreams","id":"1","v":{}}]` + "\n",
		"an unknown type":       `[{"t":"instance","id":"i-1","v":{"ID":"i-1","Type":"m5.tiny"}}]` + "\n",
	} {
		path := stateFile(t)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ec2sim.New(ec2sim.Options{StateFile: path}); err == nil {
			t.Errorf("%s: accepted", reason)
		}
	}
}
