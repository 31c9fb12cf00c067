package worker

import (
	"context"
	"fmt"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// fencedCloud is the cloud behind the fence: calls that launch, change or end something are refused while the Lease is not
// Tenon's. Refusals are transient: the caller retries, here or on another worker.
type fencedCloud struct {
	cloud.Provider
	fence *fence
}

// pass returns an error unless the Lease is Tenon's.
func (c fencedCloud) pass() error {
	if err := c.fence.others(); err != nil {
		return fmt.Errorf("this worker only observes: %w", err)
	}
	return nil
}

// ResolveNodeClass ensures that the class's instance profile exists.
func (c fencedCloud) ResolveNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) (awsv1.EC2NodeClassStatus, error) {
	if err := c.pass(); err != nil {
		return awsv1.EC2NodeClassStatus{}, err
	}
	return c.Provider.ResolveNodeClass(ctx, class)
}

// ReleaseNodeClass removes launch templates and the instance profile.
func (c fencedCloud) ReleaseNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if err := c.pass(); err != nil {
		return err
	}
	return c.Provider.ReleaseNodeClass(ctx, class)
}

// RemoveLeftover removes a launch template or an instance profile.
func (c fencedCloud) RemoveLeftover(ctx context.Context, leftover cloud.Leftover) error {
	if err := c.pass(); err != nil {
		return err
	}
	return c.Provider.RemoveLeftover(ctx, leftover)
}

// PrepareLaunch creates launch templates.
func (c fencedCloud) PrepareLaunch(ctx context.Context, spec cloud.LaunchSpec) (cloud.LaunchRequest, error) {
	if err := c.pass(); err != nil {
		return cloud.LaunchRequest{}, err
	}
	return c.Provider.PrepareLaunch(ctx, spec)
}

// Launch launches instances.
func (c fencedCloud) Launch(ctx context.Context, request cloud.LaunchRequest) (cloud.LaunchResult, error) {
	if err := c.pass(); err != nil {
		return cloud.LaunchResult{}, err
	}
	return c.Provider.Launch(ctx, request)
}

// Terminate terminates instances.
func (c fencedCloud) Terminate(ctx context.Context, ids []string) error {
	if err := c.pass(); err != nil {
		return err
	}
	return c.Provider.Terminate(ctx, ids)
}

// Tag adds tags to an instance.
func (c fencedCloud) Tag(ctx context.Context, id string, tags map[string]string) error {
	if err := c.pass(); err != nil {
		return err
	}
	return c.Provider.Tag(ctx, id, tags)
}
