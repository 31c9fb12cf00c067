package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

const (
	notFound = "InvalidInstanceID.NotFound"
	// terminateConcurrency limits the concurrent calls that terminate the instances of a failed batch one by one.
	terminateConcurrency = 5
)

// terminator terminates the instances of this cluster.
type terminator struct {
	api       *calls.EC2
	cluster   string
	instances *instanceReader
	batch     *batcher[error] // of end
}

// Terminate implements cloud.Provider. Concurrent callers share their calls to EC2.
func (p *Provider) Terminate(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	answers, err := p.terminator.batch.do(ctx, ids)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range ids {
		failed = append(failed, answers[id])
	}
	return errors.Join(failed...)
}

// end terminates the instances of a batch that this cluster owns and returns what went wrong, by id.
func (t *terminator) end(ctx context.Context, ids []string) (map[string]error, error) {
	found, err := t.instances.describeIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	answers := make(map[string]error)
	var targets []string
	for _, id := range ids {
		instance, known := found[id]
		switch {
		case !known:
			// An unknown id has nothing left to terminate, unless EC2 does not know its own new instance yet. That one
			// is ours.
			if t.instances.justLaunched(id) {
				targets = append(targets, id)
			}
		case !isOwned(t.cluster, instance.Tags):
			answers[id] = foreign("TerminateInstances", "instance "+id)
		case instance.State != string(types.InstanceStateNameTerminated) && instance.State != string(types.InstanceStateNameShuttingDown):
			targets = append(targets, id)
		}
	}
	slices.Sort(targets)
	for chunk := range slices.Chunk(targets, batchSize) {
		t.endAll(ctx, chunk, answers)
	}
	return answers, nil
}

// foreign returns the error that refuses to touch something of another owner.
func foreign(operation, what string) error {
	return &cloud.Error{
		Kind: cloud.Forbidden, Reason: "NotOwned", Operation: operation,
		Err: fmt.Errorf("%s does not carry the ownership tags of this cluster", what),
	}
}

// endAll terminates instances in one call. If that call fails, it terminates them one by one, unless EC2 throttles or
// the context has ended.
func (t *terminator) endAll(ctx context.Context, ids []string, answers map[string]error) {
	err := t.call(ctx, ids)
	if err == nil {
		return
	}
	if len(ids) == 1 || cloud.KindOf(classify("TerminateInstances", err)) == cloud.Throttled || ctx.Err() != nil {
		for _, id := range ids {
			answers[id] = t.judge(id, err)
		}
		return
	}
	each := make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(terminateConcurrency)
	for i, id := range ids {
		group.Go(func() error {
			each[i] = t.call(ctx, []string{id})
			return nil
		})
	}
	_ = group.Wait() // its functions return no errors
	for i, id := range ids {
		answers[id] = t.judge(id, each[i])
	}
}

// judge classifies the error of terminating an instance. An instance that is not found is gone, unless EC2 does not
// know it yet.
func (t *terminator) judge(id string, err error) error {
	switch {
	case !hasCode(err, notFound):
		return classify("TerminateInstances", err)
	case t.instances.justLaunched(id):
		return unheardOf("TerminateInstances", id)
	default:
		return nil
	}
}

// unheardOf returns the error for an instance that EC2 does not know yet.
func unheardOf(operation, id string) error {
	return &cloud.Error{
		Kind: cloud.Transient, Reason: "InstanceNotFound", Operation: operation,
		Err: fmt.Errorf("EC2 does not know of instance %s yet", id),
	}
}

func (t *terminator) call(ctx context.Context, ids []string) error {
	_, err := t.api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	return err
}

// Tag implements cloud.Provider.
func (p *Provider) Tag(ctx context.Context, id string, tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	found, err := p.instances.byID(ctx, []string{id})
	if err != nil {
		return err
	}
	switch {
	case len(found) == 1 && !isOwned(p.options.Cluster, found[0].Tags):
		return foreign("CreateTags", "instance "+id)
	case len(found) == 0 && !p.instances.justLaunched(id):
		return unheardOf("CreateTags", id)
	}
	_, err = p.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tagList(tags)})
	return classify("CreateTags", err)
}
