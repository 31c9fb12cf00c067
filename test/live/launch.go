package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// startPatience is how long an instance may take to run, endPatience how long it may take to be terminated.
	startPatience = 5 * time.Minute
	endPatience   = 10 * time.Minute
	// settled is how long to wait for instances that should not exist: EC2 lists new ones within seconds.
	settled = 20 * time.Second
	// look is the interval at which EC2 is polled.
	look = 5 * time.Second
)

// prepare resolves a launch as Tenon does, with the step's own token.
func (l *live) prepare(ctx context.Context, step string, count int, class *awsv1.EC2NodeClass, offerings []cloud.OfferingKey) (*spent, error) {
	request, err := l.provider.PrepareLaunch(ctx, cloud.LaunchSpec{
		Group: l.group(step), Count: count, Class: class, CapacityType: offerings[0].CapacityType, Offerings: offerings,
		Labels: map[string]string{tagKey: l.run},
		// No pods are to run here.
		Taints: []corev1.Taint{{Key: tagKey, Value: l.run, Effect: corev1.TaintEffectNoSchedule}},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", step, err)
	}
	request.Token = l.token(step)
	return &spent{Step: step, Request: request}, nil
}

// launch spends a token: the launch is saved before it is sent.
func (l *live) launch(ctx context.Context, s *spent) (*answer, error) {
	if err := l.spend(s); err != nil {
		return nil, err
	}
	a, err := l.send(ctx, s.Request)
	return a, l.answered(s, a, err)
}

func (l *live) spend(s *spent) error {
	s.SentAt = l.now().UTC()
	l.state.Spent = append(l.state.Spent, s)
	return l.state.keep()
}

// answered saves the first answer. It returns an error only if there is no answer or it cannot be saved.
func (l *live) answered(s *spent, a *answer, err error) error {
	if a == nil {
		return err
	}
	s.Answer = a
	return l.state.keep()
}

// send sends a request as the provider sends it, without retries, and returns the answer on the wire. The error is Tenon's
// classification; most errors come with an answer.
func (l *live) send(ctx context.Context, request cloud.LaunchRequest) (*answer, error) {
	ctx, seen := watching(ctx)
	_, err := l.provider.Launch(ctx, request)
	e, ok := seen.last("CreateFleet")
	if !ok || e.Status == 0 {
		return nil, fmt.Errorf("CreateFleet was not answered: %w", err)
	}
	a, parsed := readAnswer(e)
	if parsed != nil {
		return nil, parsed
	}
	for _, id := range a.Instances {
		l.ledger.began(id, l.machine.hour, l.now())
	}
	return a, err
}

// readAnswer reads the reply to CreateFleet (API reference, CreateFleet, "Response Elements"; "Error codes for the Amazon EC2 API").
func readAnswer(e exchange) (*answer, error) {
	a := &answer{RequestID: e.RequestID, Status: e.Status}
	if e.Status != http.StatusOK {
		var refusal struct {
			Code string `xml:"Errors>Error>Code"`
		}
		if err := xml.Unmarshal([]byte(e.Reply), &refusal); err != nil {
			return nil, fmt.Errorf("read the refusal of CreateFleet: %w", err)
		}
		a.Error = refusal.Code
		return a, nil
	}
	var reply struct {
		Fleet     string   `xml:"fleetId"`
		Instances []string `xml:"fleetInstanceSet>item>instanceIds>item"`
		Errors    []string `xml:"errorSet>item>errorCode"`
	}
	if err := xml.Unmarshal([]byte(e.Reply), &reply); err != nil {
		return nil, fmt.Errorf("read the reply of CreateFleet: %w", err)
	}
	slices.Sort(reply.Instances)
	slices.Sort(reply.Errors)
	a.Fleet, a.Instances, a.Errors = reply.Fleet, reply.Instances, slices.Compact(reply.Errors)
	return a, nil
}

// String describes an answer.
func (a *answer) String() string {
	switch {
	case a == nil:
		return "no answer"
	case a.Error != "":
		return a.Error
	}
	text := fmt.Sprintf("fleet %s with %d instances", a.Fleet, len(a.Instances))
	if len(a.Errors) > 0 {
		text += " and " + strings.Join(a.Errors, ", ")
	}
	return text
}

// launchedIn lists the instances of a launch group, terminated ones included, once no more are to be expected.
func (l *live) launchedIn(ctx context.Context, group string, atLeast int) ([]string, error) {
	var ids []string
	list := func() (bool, error) {
		found, err := l.provider.Instances(ctx, cloud.Query{LaunchGroup: group, Terminating: true})
		ids = nil
		for _, i := range found {
			ids = append(ids, i.ID)
			l.ledger.began(i.ID, l.machine.hour, i.LaunchTime)
		}
		return len(ids) >= atLeast, err
	}
	if err := l.await(ctx, fmt.Sprintf("%d instances of %s to be listed", atLeast, group), startPatience, look, list); err != nil {
		return ids, err
	}
	if err := l.sleep(ctx, settled); err != nil {
		return ids, err
	}
	_, err := list()
	return ids, err
}

// running waits until instances run, and returns them.
func (l *live) running(ctx context.Context, ids []string) ([]cloud.Instance, error) {
	var found []cloud.Instance
	err := l.await(ctx, fmt.Sprintf("%v to run", ids), startPatience, look, func() (bool, error) {
		var err error
		found, err = l.provider.Instances(ctx, cloud.Query{IDs: ids})
		up := 0
		for _, i := range found {
			if i.State == "running" {
				up++
			}
		}
		return up == len(ids), err
	})
	return found, err
}

// terminate terminates instances through the provider and waits until they are gone.
func (l *live) terminate(ctx context.Context, ids []string) error {
	if err := l.provider.Terminate(ctx, ids); err != nil {
		return fmt.Errorf("terminate %v: %w", ids, err)
	}
	return l.gone(ctx, ids)
}

// gone waits until instances are terminated.
func (l *live) gone(ctx context.Context, ids []string) error {
	return l.await(ctx, fmt.Sprintf("%v to be terminated", ids), endPatience, look, func() (bool, error) {
		found, err := l.provider.Instances(ctx, cloud.Query{IDs: ids, Terminating: true})
		if err != nil {
			return false, err
		}
		left := 0
		for _, i := range found {
			if i.State == "terminated" {
				l.ledger.ended(i.ID)
			} else {
				left++
			}
		}
		return left == 0, nil
	})
}

// single launches one instance and checks the result.
func (l *live) single(ctx context.Context, s *spent, want func(cloud.Instance) error) outcome {
	a, err := l.launch(ctx, s)
	switch {
	case err != nil:
		return fail("%v", err)
	case len(a.Instances) != 1:
		return fail("%s, want one instance", a)
	}
	found, err := l.running(ctx, a.Instances)
	if err != nil {
		return fail("%v", err)
	}
	i := found[0]
	if i.Tags[tagKey] != l.run || i.LaunchGroup != s.Request.Group || i.InstanceType != l.machine.instanceType {
		return fail("%s is a %s with the tags %v, which is not what was asked for", i.ID, i.InstanceType, i.Tags)
	}
	if err := want(i); err != nil {
		return fail("%v", err)
	}
	return pass("%s, %s %s in %s, runs", i.ID, i.CapacityType, i.InstanceType, i.Zone)
}

func wantCapacity(capacityType string) func(cloud.Instance) error {
	return func(i cloud.Instance) error {
		if i.CapacityType != capacityType {
			return fmt.Errorf("%s is %s, want %s", i.ID, i.CapacityType, capacityType)
		}
		return nil
	}
}

func onDemandNode(ctx context.Context, l *live) outcome {
	s, err := l.prepare(ctx, stepOnDemand, 1, l.class, l.machine.offerings(karpv1.CapacityTypeOnDemand))
	if err != nil {
		return fail("%v", err)
	}
	return l.single(ctx, s, wantCapacity(karpv1.CapacityTypeOnDemand))
}

// spotNode is not run if there is no spot capacity, or no role for it: that says nothing about Tenon.
func spotNode(ctx context.Context, l *live) outcome {
	s, err := l.prepare(ctx, stepSpot, 1, l.class, l.machine.offerings(karpv1.CapacityTypeSpot))
	if err != nil {
		return fail("%v", err)
	}
	o := l.single(ctx, s, wantCapacity(karpv1.CapacityTypeSpot))
	if a := s.Answer; a != nil && a.Error == "" && len(a.Instances) == 0 {
		return skip("no spot capacity: %s", a)
	}
	if o.verdict == passed {
		l.spotNode = s.Answer.Instances[0]
	}
	return o
}
