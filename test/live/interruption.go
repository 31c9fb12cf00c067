package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	fistypes "github.com/aws/aws-sdk-go-v2/service/fis/types"

	"github.com/tenon-sh/tenon/cloud"
)

// interruptionPatience is how long the interruption may take: two minutes of notice, and what FIS and EC2 need around them.
const interruptionPatience = 10 * time.Minute

// interrupted lets FIS interrupt the spot instance (FIS User Guide, aws:ec2:send-spot-instance-interruptions: two minutes at
// least).
func interrupted(ctx context.Context, l *live) outcome {
	switch {
	case l.fisRole == "":
		return skip("no role for FIS given (--fis-role)")
	case l.spotNode == "":
		return skip("there is no spot instance")
	}
	const target, action = "node", "interrupt"
	template, err := l.fis.CreateExperimentTemplate(ctx, &fis.CreateExperimentTemplateInput{
		ClientToken: aws.String(l.token("experiment template")), Description: aws.String("Tenon, first contact: interrupts one spot instance"),
		RoleArn:        aws.String(l.fisRole),
		StopConditions: []fistypes.CreateExperimentTemplateStopConditionInput{{Source: aws.String("none")}},
		Targets: map[string]fistypes.CreateExperimentTemplateTargetInput{target: {
			ResourceType: aws.String("aws:ec2:spot-instance"), SelectionMode: aws.String("ALL"),
			ResourceArns: []string{fmt.Sprintf("arn:%s:ec2:%s:%s:instance/%s", l.caller.partition, l.region, l.caller.account, l.spotNode)},
		}},
		Actions: map[string]fistypes.CreateExperimentTemplateActionInput{action: {
			ActionId:   aws.String("aws:ec2:send-spot-instance-interruptions"),
			Parameters: map[string]string{"durationBeforeInterruption": "PT2M"}, Targets: map[string]string{"SpotInstances": target},
		}},
		Tags: map[string]string{tagKey: l.run},
	})
	if err != nil {
		return fail("CreateExperimentTemplate: %v", err)
	}
	started, err := l.fis.StartExperiment(ctx, &fis.StartExperimentInput{
		ClientToken: aws.String(l.token("experiment")), ExperimentTemplateId: template.ExperimentTemplate.Id, Tags: map[string]string{tagKey: l.run},
	})
	if err != nil {
		return fail("StartExperiment: %v", err)
	}
	began := l.now()
	message := "no queue given (--queue), so no message was looked for"
	if l.queue != "" {
		if message, err = l.receive(ctx); err != nil {
			return fail("%v", err)
		}
	}
	var state *fistypes.ExperimentState
	err = l.await(ctx, "the experiment to end", interruptionPatience, look, func() (bool, error) {
		now, err := l.fis.GetExperiment(ctx, &fis.GetExperimentInput{Id: started.Experiment.Id})
		if err != nil {
			return false, fmt.Errorf("GetExperiment: %w", err)
		}
		state = now.Experiment.State
		switch state.Status {
		case fistypes.ExperimentStatusFailed, fistypes.ExperimentStatusStopped, fistypes.ExperimentStatusCancelled:
			return false, fmt.Errorf("the experiment is %s: %s", state.Status, aws.ToString(state.Reason))
		}
		return state.Status == fistypes.ExperimentStatusCompleted, nil
	})
	if err != nil {
		return fail("%v", err)
	}
	if err := l.gone(ctx, []string{l.spotNode}); err != nil {
		return fail("%v", err)
	}
	return pass("%s was gone after %v; %s", l.spotNode, l.now().Sub(began).Round(time.Second), message)
}

// receive waits for the notice of the interruption, read as Tenon reads it. It leaves messages about other instances in the
// queue.
func (l *live) receive(ctx context.Context) (string, error) {
	notices := l.provider.Interruptions(l.queue)
	began := l.now()
	var seen []cloud.InterruptionKind
	err := l.await(ctx, "the notice of the interruption in the queue", interruptionPatience, time.Second, func() (bool, error) {
		got, err := notices.Receive(ctx)
		if err != nil {
			return false, err
		}
		var ours []string
		for _, n := range got {
			if n.Err == nil && len(n.Instances) > 0 && !slices.ContainsFunc(n.Instances, func(id string) bool { return id != l.spotNode }) {
				ours, seen = append(ours, n.Receipt), append(seen, n.Kind)
			}
		}
		if err := notices.Delete(ctx, ours); err != nil {
			return false, err
		}
		return slices.Contains(seen, cloud.SpotInterruption), nil
	})
	return fmt.Sprintf("the queue said %v after %v", seen, l.now().Sub(began).Round(time.Second)), err
}
