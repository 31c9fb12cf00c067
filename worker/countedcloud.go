package worker

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/metrics"
)

// countedCloud is a cloud whose calls are counted under Karpenter's names.
type countedCloud struct {
	cloud.Provider
	name      string
	durations *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	refused   *prometheus.CounterVec
	unended   *prometheus.CounterVec
	// zoneIDs are the identities of zones by their names, and placeOf returns the zone and its identity of an instance.
	zoneIDs func() map[string]string
	placeOf func(instance string) (zone, zoneID string)
}

func newCountedCloud(provider cloud.Provider, name string, set *metrics.Set, claimOf func(instance string) *karpv1.NodeClaim, claims func() []*karpv1.NodeClaim) countedCloud {
	zone, zoneID := "topology.kubernetes.io/zone", provider.Kind().Labels.ZoneID
	return countedCloud{Provider: provider, name: name,
		durations: set.Histogram("karpenter_cloudprovider_duration_seconds"), errors: set.Counter("karpenter_cloudprovider_errors_total"),
		refused: set.Counter("karpenter_cloudprovider_instance_launch_failures_total"), unended: set.Counter("karpenter_cloudprovider_instance_termination_failures_total"),
		zoneIDs: func() map[string]string {
			ids := map[string]string{}
			for _, claim := range claims() {
				ids[claim.Labels[zone]] = claim.Labels[zoneID]
			}
			return ids
		},
		placeOf: func(instance string) (string, string) {
			if claim := claimOf(instance); claim != nil {
				return claim.Labels[zone], claim.Labels[zoneID]
			}
			return "", ""
		}}
}

// call measures a call of a method, and counts its error.
func (c countedCloud) call(ctx context.Context, method string, began time.Time, err error) {
	caller := "starter"
	if activity.IsActivity(ctx) {
		caller = strings.ToLower(activity.GetInfo(ctx).ActivityType.Name)
	}
	c.durations.WithLabelValues(caller, method, c.name).Observe(time.Since(began).Seconds())
	if err != nil {
		c.errors.WithLabelValues(caller, method, c.name, errorLabel(err)).Inc()
	}
}

// errorLabel is Karpenter's word for an error, empty if it has none.
func errorLabel(err error) string {
	switch cloud.KindOf(err) {
	case cloud.InsufficientCapacity:
		return "InsufficientCapacityError"
	case cloud.NodeClassNotReady:
		return "NodeClassNotReadyError"
	}
	return ""
}

// ResolveNodeClass implements cloud.Provider.
func (c countedCloud) ResolveNodeClass(ctx context.Context, class cloud.NodeClass) (cloud.NodeClass, error) {
	began := time.Now()
	resolved, err := c.Provider.ResolveNodeClass(ctx, class)
	c.call(ctx, "ResolveNodeClass", began, err)
	return resolved, err
}

// InstanceTypes implements cloud.Provider.
func (c countedCloud) InstanceTypes(ctx context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error) {
	began := time.Now()
	types, err := c.Provider.InstanceTypes(ctx, class)
	c.call(ctx, "GetInstanceTypes", began, err)
	return types, err
}

// Drift implements cloud.Provider.
func (c countedCloud) Drift(ctx context.Context, class cloud.NodeClass, questions []cloud.DriftQuestion) ([]cloud.Drift, error) {
	began := time.Now()
	answers, err := c.Provider.Drift(ctx, class, questions)
	c.call(ctx, "IsDrifted", began, err)
	return answers, err
}

// PrepareLaunch implements cloud.Provider.
func (c countedCloud) PrepareLaunch(ctx context.Context, spec cloud.LaunchSpec) (cloud.LaunchRequest, error) {
	began := time.Now()
	request, err := c.Provider.PrepareLaunch(ctx, spec)
	c.call(ctx, "PrepareLaunch", began, err)
	return request, err
}

// Launch implements cloud.Provider.
func (c countedCloud) Launch(ctx context.Context, request cloud.LaunchRequest) (cloud.LaunchResult, error) {
	began := time.Now()
	result, err := c.Provider.Launch(ctx, request)
	c.call(ctx, "Create", began, err)
	if len(result.Refused) > 0 {
		ids := c.zoneIDs()
		for _, refusal := range result.Refused {
			c.refused.WithLabelValues(refusal.Zone, ids[refusal.Zone], refusal.CapacityType, refusal.Code).Inc()
		}
	}
	return result, err
}

// Instances implements cloud.Provider.
func (c countedCloud) Instances(ctx context.Context, query cloud.Query) ([]cloud.Instance, error) {
	began := time.Now()
	found, err := c.Provider.Instances(ctx, query)
	method := "List"
	if len(query.IDs) > 0 {
		method = "Get"
	}
	c.call(ctx, method, began, err)
	return found, err
}

// Terminate implements cloud.Provider.
func (c countedCloud) Terminate(ctx context.Context, ids []string) error {
	began := time.Now()
	err := c.Provider.Terminate(ctx, ids)
	c.call(ctx, "Delete", began, err)
	if err != nil {
		for _, id := range ids {
			zone, zoneID := c.placeOf(id)
			c.unended.WithLabelValues(zone, zoneID).Inc()
		}
	}
	return err
}
