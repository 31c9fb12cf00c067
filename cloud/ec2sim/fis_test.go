package ec2sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	fistypes "github.com/aws/aws-sdk-go-v2/service/fis/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

func (a *account) fis() *fis.Client { return fis.NewFromConfig(a.cfg) }

// interruption returns a template that interrupts the instances with a tag.
func interruption(edit func(*fis.CreateExperimentTemplateInput)) *fis.CreateExperimentTemplateInput {
	in := &fis.CreateExperimentTemplateInput{
		ClientToken: aws.String("one"), Description: aws.String("interrupt"), RoleArn: aws.String("arn:aws:iam::123456789012:role/fis"),
		StopConditions: []fistypes.CreateExperimentTemplateStopConditionInput{{Source: aws.String("none")}},
		Targets: map[string]fistypes.CreateExperimentTemplateTargetInput{"spot": {
			ResourceType: aws.String("aws:ec2:spot-instance"), SelectionMode: aws.String("ALL"), ResourceTags: map[string]string{"group": "g1"},
		}},
		Actions: map[string]fistypes.CreateExperimentTemplateActionInput{"interrupt": {
			ActionId:   aws.String("aws:ec2:send-spot-instance-interruptions"),
			Parameters: map[string]string{"durationBeforeInterruption": "PT3M"}, Targets: map[string]string{"SpotInstances": "spot"},
		}},
		Tags: map[string]string{"owner": "test"},
	}
	if edit != nil {
		edit(in)
	}
	return in
}

func TestExperimentInterruptsSpotInstances(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Queues: []string{"events"}})
	template := a.template(t, "x86_64")
	spot, err := a.ec2.CreateFleet(ctx(t), fleetInput(template, 1, ec2types.DefaultTargetCapacityTypeSpot, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ec2.CreateFleet(ctx(t), fleetInput(template, 1, ec2types.DefaultTargetCapacityTypeOnDemand, a.override(t, "m5.large", "us-east-1a"))); err != nil {
		t.Fatal(err)
	}
	made, err := a.fis().CreateExperimentTemplate(ctx(t), interruption(nil))
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.fis().CreateExperimentTemplate(ctx(t), interruption(nil))
	if err != nil || aws.ToString(again.ExperimentTemplate.Id) != aws.ToString(made.ExperimentTemplate.Id) {
		t.Errorf("the same token made %v, %v", again, err)
	}
	started, err := a.fis().StartExperiment(ctx(t), &fis.StartExperimentInput{ClientToken: aws.String("two"), ExperimentTemplateId: made.ExperimentTemplate.Id})
	if err != nil {
		t.Fatal(err)
	}
	status := func() fistypes.ExperimentStatus {
		t.Helper()
		out, err := a.fis().GetExperiment(ctx(t), &fis.GetExperimentInput{Id: started.Experiment.Id})
		if err != nil {
			t.Fatal(err)
		}
		return out.Experiment.State.Status
	}
	bodies := func() string {
		t.Helper()
		queue, err := a.sqs().GetQueueUrl(ctx(t), &sqs.GetQueueUrlInput{QueueName: aws.String("events")})
		if err != nil {
			t.Fatal(err)
		}
		out, err := a.sqs().ReceiveMessage(ctx(t), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, m := range out.Messages {
			all += aws.ToString(m.Body) + "\n"
		}
		return all
	}
	if got := bodies(); !strings.Contains(got, "Rebalance Recommendation") || strings.Contains(got, "Interruption Warning") {
		t.Errorf("at the start the queue has %s", got)
	}
	a.clock.Advance(61 * time.Second)
	if got := bodies(); !strings.Contains(got, "Spot Instance Interruption Warning") || !strings.Contains(got, launched(spot)[0]) {
		t.Errorf("two minutes before the interruption the queue has %s", got)
	}
	if got := status(); got != fistypes.ExperimentStatusRunning {
		t.Errorf("the experiment is %s before it interrupts", got)
	}
	if alive := a.living(); alive != 2 {
		t.Errorf("%d instances before the interruption, want 2", alive)
	}
	a.clock.Advance(2 * time.Minute)
	if alive := a.living(); alive != 1 {
		t.Errorf("%d instances after the interruption, want that which is not spot", alive)
	}
	if got := status(); got != fistypes.ExperimentStatusCompleted {
		t.Errorf("the experiment is %s in the end", got)
	}
	if _, err := a.fis().DeleteExperimentTemplate(ctx(t), &fis.DeleteExperimentTemplateInput{Id: made.ExperimentTemplate.Id}); err != nil {
		t.Error(err)
	}
	left, err := a.fis().ListExperimentTemplates(ctx(t), &fis.ListExperimentTemplatesInput{})
	if err != nil || len(left.ExperimentTemplates) != 0 {
		t.Errorf("templates that are left: %v, %v", left, err)
	}
	_, err = a.fis().DeleteExperimentTemplate(ctx(t), &fis.DeleteExperimentTemplateInput{Id: made.ExperimentTemplate.Id})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestExperimentWithoutTargetsFails(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	made, err := a.fis().CreateExperimentTemplate(ctx(t), interruption(nil))
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.fis().StartExperiment(ctx(t), &fis.StartExperimentInput{ClientToken: aws.String("two"), ExperimentTemplateId: made.ExperimentTemplate.Id})
	if err != nil || out.Experiment.State.Status != fistypes.ExperimentStatusFailed {
		t.Errorf("an experiment without targets: %v, %v", out, err)
	}
}

func TestExperimentTemplatesAreChecked(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for reason, edit := range map[string]func(*fis.CreateExperimentTemplateInput){
		"a description that is too long, by the model": func(in *fis.CreateExperimentTemplateInput) { in.Description = aws.String(strings.Repeat("x", 513)) },
		"a tag that is too long, by the model":         func(in *fis.CreateExperimentTemplateInput) { in.Tags["owner"] = strings.Repeat("x", 257) },
		"no stop condition": func(in *fis.CreateExperimentTemplateInput) {
			in.StopConditions = []fistypes.CreateExperimentTemplateStopConditionInput{}
		},
		"too soon": func(in *fis.CreateExperimentTemplateInput) {
			in.Actions["interrupt"].Parameters["durationBeforeInterruption"] = "PT1M"
		},
		"not a target of the action": func(in *fis.CreateExperimentTemplateInput) {
			delete(in.Actions["interrupt"].Targets, "SpotInstances")
			in.Actions["interrupt"].Targets["Instances"] = "spot"
		},
		"instances of another kind": func(in *fis.CreateExperimentTemplateInput) {
			target := in.Targets["spot"]
			target.ResourceType = aws.String("aws:ec2:instance")
			in.Targets["spot"] = target
		},
		"both ARNs and tags": func(in *fis.CreateExperimentTemplateInput) {
			target := in.Targets["spot"]
			target.ResourceArns = []string{"arn:aws:ec2:us-east-1:123456789012:instance/i-1"}
			in.Targets["spot"] = target
		},
	} {
		if _, err := a.fis().CreateExperimentTemplate(ctx(t), interruption(edit)); err == nil {
			t.Errorf("%s: made", reason)
		} else {
			wantCode(t, err, "ValidationException")
		}
	}
}

// TestReservationsAreMadeAsDocumented checks that the parameters are those of the published model, and that the end
// matches its type.
func TestReservationsAreMadeAsDocumented(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for reason, tc := range map[string]struct {
		edit func(*ec2.CreateCapacityReservationInput)
		code string
	}{
		"an end without its type": {func(in *ec2.CreateCapacityReservationInput) { in.EndDateType = "" }, "InvalidParameterCombination"},
		"a type without an end":   {func(in *ec2.CreateCapacityReservationInput) { in.EndDate = nil }, "InvalidParameterCombination"},
		"no such platform":        {func(in *ec2.CreateCapacityReservationInput) { in.InstancePlatform = "Linux" }, "InvalidParameterValue"},
		"tags of something else":  {func(in *ec2.CreateCapacityReservationInput) { in.TagSpecifications[0].ResourceType = "instance" }, "InvalidParameterValue"},
		"as it should be":         {func(*ec2.CreateCapacityReservationInput) {}, ""},
	} {
		in := &ec2.CreateCapacityReservationInput{
			InstanceType: aws.String("m5.large"), InstanceCount: aws.Int32(1), AvailabilityZone: aws.String("us-east-1a"),
			InstancePlatform: ec2types.CapacityReservationInstancePlatformLinuxUnix, InstanceMatchCriteria: ec2types.InstanceMatchCriteriaTargeted,
			EndDateType: ec2types.EndDateTypeLimited, EndDate: aws.Time(a.clock.Now().Add(time.Hour)),
			TagSpecifications: []ec2types.TagSpecification{{
				ResourceType: ec2types.ResourceTypeCapacityReservation, Tags: []ec2types.Tag{{Key: aws.String("owner"), Value: aws.String("test")}},
			}},
		}
		tc.edit(in)
		out, err := a.ec2.CreateCapacityReservation(ctx(t), in)
		if tc.code != "" {
			if err == nil {
				t.Errorf("%s: made", reason)
				continue
			}
			wantCode(t, err, tc.code)
			continue
		}
		if err != nil || len(out.CapacityReservation.Tags) != 1 {
			t.Errorf("%s: %v, %v", reason, out, err)
		}
	}
}
