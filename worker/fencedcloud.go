package worker

import (
	"context"
	"fmt"

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

// ResolveNodeClass makes what the class needs in the cloud.
func (c fencedCloud) ResolveNodeClass(ctx context.Context, class cloud.NodeClass) (cloud.NodeClass, error) {
	if err := c.pass(); err != nil {
		return nil, err
	}
	return c.Provider.ResolveNodeClass(ctx, class)
}

// ReleaseNodeClass removes what was made for the class.
func (c fencedCloud) ReleaseNodeClass(ctx context.Context, class cloud.NodeClass) error {
	if err := c.pass(); err != nil {
		return err
	}
	return c.Provider.ReleaseNodeClass(ctx, class)
}

// RemoveLeftover removes what was made for a former class.
func (c fencedCloud) RemoveLeftover(ctx context.Context, leftover cloud.Leftover) error {
	if err := c.pass(); err != nil {
		return err
	}
	return c.Provider.RemoveLeftover(ctx, leftover)
}

// PrepareLaunch makes what the request refers to.
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
