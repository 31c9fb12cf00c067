package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	smithytime "github.com/aws/smithy-go/time"
)

const (
	// terminateAtOnce is how many instances one call terminates: EC2 answers slowly for thousands.
	terminateAtOnce = 100
	// endingPatience is how long instances may take to terminate. EC2 takes a minute, and longer for bare metal.
	endingPatience = 10 * time.Minute
	// endingEvery is how often EC2 is asked whether instances are terminated.
	endingEvery = 2 * time.Second
	// maxFilterValues is how many values EC2 accepts for one filter.
	maxFilterValues = 200
)

// Remove removes items that Find returned, kind by kind, and returns those that remain, with the reason.
func (a *Account) Remove(ctx context.Context, items []Item, progress Progress) []Failure {
	var failures []Failure
	for _, kind := range Kinds() {
		var of []Item
		for _, item := range items {
			if item.Kind == kind {
				of = append(of, item)
			}
		}
		if len(of) == 0 {
			continue
		}
		if kind == KindInstance {
			failures = append(failures, a.terminate(ctx, of, progress)...)
			continue
		}
		for i, item := range of {
			progress(fmt.Sprintf("removing %ss", kind), i, len(of))
			if err := a.remove(ctx, item); err != nil {
				failures = append(failures, Failure{item, err.Error()})
			}
		}
	}
	return failures
}

func (a *Account) remove(ctx context.Context, item Item) error {
	switch item.Kind {
	case KindLaunchTemplate:
		_, err := a.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &item.ID})
		return unless(err, "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateName.NotFoundException")
	case KindInstanceProfile:
		return a.removeProfile(ctx, item.ID)
	case KindRule:
		return unless(a.removeRule(ctx, item.ID), "ResourceNotFoundException")
	case KindQueue:
		return a.removeQueue(ctx, item.ID)
	case KindInstance: // they are terminated together
	}
	return fmt.Errorf("%q cannot be removed one by one", item.Kind)
}

// unless returns an error without one of these codes, with which AWS says that there is no such thing.
func unless(err error, missing ...string) error {
	if hasCode(err, missing...) {
		return nil
	}
	return err
}

// terminate terminates instances and waits until they are. An instance that EC2 refuses to terminate keeps no other one.
func (a *Account) terminate(ctx context.Context, items []Item, progress Progress) []Failure {
	var failures []Failure
	waiting := map[string]Item{}
	done := 0
	for chunk := range slices.Chunk(items, terminateAtOnce) {
		progress("terminating instances", done, len(items))
		err := a.end(ctx, chunk...)
		for _, item := range chunk {
			each := err
			if err != nil && len(chunk) > 1 && ctx.Err() == nil {
				each = a.end(ctx, item)
			}
			if each != nil {
				failures = append(failures, Failure{item, each.Error()})
				continue
			}
			waiting[item.ID] = item
		}
		done += len(chunk)
	}
	for deadline := time.Now().Add(endingPatience); len(waiting) > 0; {
		progress("waiting until instances are terminated", len(items)-len(failures)-len(waiting), len(items)-len(failures))
		states, err := a.states(ctx, waiting)
		for id := range waiting {
			if state, known := states[id]; err == nil && (!known || state == types.InstanceStateNameTerminated) {
				delete(waiting, id)
			}
		}
		if len(waiting) == 0 {
			break
		}
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("it has not terminated within %s; run this command again", endingPatience)
		} else if err == nil {
			err = smithytime.SleepWithContext(ctx, endingEvery)
		}
		if err != nil {
			for _, item := range items {
				if _, waits := waiting[item.ID]; waits {
					failures = append(failures, Failure{item, err.Error()})
				}
			}
			break
		}
	}
	return failures
}

// end asks EC2 to terminate instances.
func (a *Account) end(ctx context.Context, items ...Item) error {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	_, err := a.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	if len(items) > 1 {
		return err
	}
	return unless(err, "InvalidInstanceID.NotFound")
}

// states returns the states of instances that EC2 still shows, by id.
func (a *Account) states(ctx context.Context, of map[string]Item) (map[string]types.InstanceStateName, error) {
	ids := make([]string, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	states := make(map[string]types.InstanceStateName, len(ids))
	for chunk := range slices.Chunk(ids, maxFilterValues) {
		shown, err := a.instances(ctx, types.Filter{Name: aws.String("instance-id"), Values: chunk})
		if err != nil {
			return nil, err
		}
		for i := range shown {
			states[aws.ToString(shown[i].InstanceId)] = shown[i].State.Name
		}
	}
	return states, nil
}

// removeProfile takes the role out of an instance profile and deletes the profile. The role stays. A profile that an instance
// still has stays too: without it, the instance would lose its permissions.
func (a *Account) removeProfile(ctx context.Context, name string) error {
	profile, err := a.profile(ctx, name)
	if profile == nil || err != nil {
		return err
	}
	if a.profileTags(profile) == nil {
		return errForeign
	}
	users, err := a.instances(ctx, types.Filter{Name: aws.String("iam-instance-profile.arn"), Values: []string{aws.ToString(profile.Arn)}},
		types.Filter{Name: aws.String("instance-state-name"), Values: liveStates})
	switch {
	case err != nil:
		return err
	case len(users) > 0:
		return fmt.Errorf("instance %s has it", aws.ToString(users[0].InstanceId))
	}
	for _, role := range profile.Roles {
		_, err := a.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: role.RoleName})
		if err := unless(err, "NoSuchEntity"); err != nil {
			return err
		}
	}
	_, err = a.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	return unless(err, "NoSuchEntity")
}

// removeQueue deletes a queue. It reads the tags first, because AWS may refuse to delete a queue that is gone, and so has no
// tags, for lack of permission.
func (a *Account) removeQueue(ctx context.Context, url string) error {
	tags, err := a.queueTags(ctx, url)
	switch {
	case tags == nil || err != nil:
		return err
	case tags[ClusterTag] != a.cluster:
		return errForeign
	}
	_, err = a.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
	return unless(err, missingQueue...)
}

// errForeign says that something has another owner.
var errForeign = errors.New("it does not have the cluster's tags")

// removeRule deletes a rule after its targets, without which EventBridge does not delete it.
func (a *Account) removeRule(ctx context.Context, name string) error {
	in := &eventbridge.ListTargetsByRuleInput{Rule: &name}
	var ids []string
	for {
		page, err := a.events.ListTargetsByRule(ctx, in)
		if err != nil {
			return err
		}
		for _, target := range page.Targets {
			ids = append(ids, aws.ToString(target.Id))
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			break
		}
	}
	if len(ids) > 0 {
		out, err := a.events.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &name, Ids: ids})
		if err != nil {
			return err
		}
		if len(out.FailedEntries) > 0 {
			return errors.New("a target cannot be removed: " + aws.ToString(out.FailedEntries[0].ErrorMessage))
		}
	}
	_, err := a.events.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &name})
	return err
}
