package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// leftovers are the things with the run's tag that still exist.
type leftovers struct {
	instances    []string // not terminated
	reservations []string // active or pending
	experiments  []string // templates of FIS
	templates    []string // launch templates
	profiles     []string // instance profiles
	// blind says what could not be searched.
	blind []string
}

// costs returns those that cost something or may.
func (f leftovers) costs() []string {
	return slices.Concat(f.instances, f.reservations, f.experiments)
}

func (f leftovers) all() []string { return slices.Concat(f.costs(), f.templates, f.profiles) }

// carriesTag applies the filter once more to EC2's answer: what does not carry the tag is not the run's, whatever a filter
// says.
func (l *live) carriesTag(tags []types.Tag) bool {
	return slices.ContainsFunc(tags, func(t types.Tag) bool { return aws.ToString(t.Key) == tagKey && aws.ToString(t.Value) == l.run })
}

func (l *live) tagged() types.Filter {
	return types.Filter{Name: aws.String("tag:" + tagKey), Values: []string{l.run}}
}

// find lists what exists with the tag; it finds instance profiles by their path, which follows from the run's name.
func (l *live) find(ctx context.Context) (leftovers, error) {
	var f leftovers
	var failed []error
	instances := ec2.NewDescribeInstancesPaginator(l.ec2, &ec2.DescribeInstancesInput{Filters: []types.Filter{l.tagged(), {
		Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "shutting-down", "stopping", "stopped"},
	}}})
	for instances.HasMorePages() {
		page, err := instances.NextPage(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for instances: %w", err))
			break
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				if l.carriesTag(i.Tags) {
					f.instances = append(f.instances, aws.ToString(i.InstanceId))
				}
			}
		}
	}
	reservations := ec2.NewDescribeCapacityReservationsPaginator(l.ec2, &ec2.DescribeCapacityReservationsInput{Filters: []types.Filter{l.tagged()}})
	for reservations.HasMorePages() {
		page, err := reservations.NextPage(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for reservations: %w", err))
			break
		}
		for _, r := range page.CapacityReservations {
			live := r.State == types.CapacityReservationStateActive || r.State == types.CapacityReservationStatePending
			if live && l.carriesTag(r.Tags) {
				f.reservations = append(f.reservations, aws.ToString(r.CapacityReservationId))
			}
		}
	}
	templates := ec2.NewDescribeLaunchTemplatesPaginator(l.ec2, &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{l.tagged()}})
	for templates.HasMorePages() {
		page, err := templates.NextPage(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for launch templates: %w", err))
			break
		}
		for _, t := range page.LaunchTemplates {
			if l.carriesTag(t.Tags) {
				f.templates = append(f.templates, aws.ToString(t.LaunchTemplateId))
			}
		}
	}
	profiles := iam.NewListInstanceProfilesPaginator(l.iam, &iam.ListInstanceProfilesInput{
		PathPrefix: aws.String(fmt.Sprintf("/karpenter/%s/%s/%s/", l.region, l.cluster, ownClass(l.run).UID)),
	})
	for profiles.HasMorePages() {
		page, err := profiles.NextPage(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for instance profiles: %w", err))
			break
		}
		for _, p := range page.InstanceProfiles {
			f.profiles = append(f.profiles, aws.ToString(p.InstanceProfileName))
		}
	}
	return f, errors.Join(append(failed, l.findExperiments(ctx, &f))...)
}

// findExperiments looks for FIS templates. A caller without access to FIS has none, and neither do regions without FIS.
func (l *live) findExperiments(ctx context.Context, f *leftovers) error {
	experiments := fis.NewListExperimentTemplatesPaginator(l.fis, &fis.ListExperimentTemplatesInput{})
	for experiments.HasMorePages() {
		page, err := experiments.NextPage(ctx)
		if err != nil {
			if l.fisRole == "" {
				f.blind = append(f.blind, "FIS: "+codeOf(err))
				return nil
			}
			return fmt.Errorf("look for experiment templates: %w", err)
		}
		for _, t := range page.ExperimentTemplates {
			if t.Tags[tagKey] == l.run {
				f.experiments = append(f.experiments, aws.ToString(t.Id))
			}
		}
	}
	return nil
}

// cleanup removes everything that carries the tag, and repeats until nothing is left.
func (l *live) cleanup(ctx context.Context) outcome {
	if l.caller.account == "" {
		// The recording masks nothing yet.
		if o := identify(ctx, l); o.verdict != passed {
			return o
		}
	}
	keep := l.mayKeep && len(l.state.Spent) > 0
	var left leftovers
	removed := map[string]bool{}
	var last error
	var since time.Time // nothing has been found
	err := l.await(ctx, "everything to be gone", cleanupPatience-2*settled, look, func() (bool, error) {
		if left, last = l.find(ctx); last == nil {
			last = l.remove(ctx, left, keep)
		}
		found := left.all()
		if keep {
			found = left.costs()
		}
		for _, id := range found {
			removed[id] = true
		}
		switch {
		case last != nil || len(found) > 0:
			since = time.Time{}
		case since.IsZero():
			since = l.now()
		}
		// EC2 does not immediately list what was launched just before the run was interrupted.
		return !since.IsZero() && l.now().Sub(since) >= settled, nil
	})
	for id := range l.ledger.instances {
		if !slices.Contains(left.instances, id) {
			l.ledger.ended(id)
		}
	}
	if err != nil {
		return fail("%v; left: %s; %v", err, strings.Join(left.all(), ", "), last)
	}
	text := fmt.Sprintf("%d things removed, nothing left", len(removed))
	if keep {
		text = fmt.Sprintf("%d things removed; %d launch templates and %d instance profiles stay", len(removed), len(left.templates), len(left.profiles))
	}
	if len(left.blind) > 0 {
		text += "; not looked at: " + strings.Join(left.blind, ", ")
	}
	return pass("%s", text)
}

// remove removes what was found: reservations first, since they cost something with or without instances.
func (l *live) remove(ctx context.Context, f leftovers, keep bool) error {
	var failed []error
	for _, id := range f.reservations {
		if _, err := l.ec2.CancelCapacityReservation(ctx, &ec2.CancelCapacityReservationInput{CapacityReservationId: aws.String(id)}); err != nil {
			failed = append(failed, fmt.Errorf("cancel %s: %w", id, err))
		}
	}
	// One by one: a call with several ids terminates none if one of them cannot be terminated (API reference,
	// TerminateInstances).
	for _, id := range f.instances {
		if _, err := l.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}}); err != nil {
			failed = append(failed, fmt.Errorf("terminate %s: %w", id, err))
		}
	}
	for _, id := range f.experiments {
		if _, err := l.fis.DeleteExperimentTemplate(ctx, &fis.DeleteExperimentTemplateInput{Id: aws.String(id)}); err != nil {
			failed = append(failed, fmt.Errorf("delete %s: %w", id, err))
		}
	}
	failed = append(failed, l.removePods(ctx))
	if keep {
		return errors.Join(failed...)
	}
	for _, id := range f.templates {
		if _, err := l.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(id)}); err != nil {
			failed = append(failed, fmt.Errorf("delete %s: %w", id, err))
		}
	}
	if len(f.profiles) > 0 && len(f.instances) == 0 {
		class := ownClass(l.run)
		class.Spec.Role = "any" // a class with a role has profiles to be removed
		failed = append(failed, l.provider.ReleaseNodeClass(ctx, class))
	}
	return errors.Join(failed...)
}
