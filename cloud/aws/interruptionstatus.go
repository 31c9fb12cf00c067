package aws

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud"
)

// impairedFor is how long a status check has to have failed before it counts: Karpenter's two minutes.
const impairedFor = 120 * time.Second

// statusQueries are the queries that find unhealthy instances. EC2 combines filters of different names with "and", so
// each filter needs its own query. The replies contain unhealthy instances only.
var statusQueries = [][]types.Filter{
	{filter("instance-status.status", string(types.SummaryStatusImpaired))},
	{filter("system-status.status", string(types.SummaryStatusImpaired))},
	{filter("event.code", string(types.EventCodeInstanceReboot), string(types.EventCodeSystemReboot), string(types.EventCodeSystemMaintenance),
		string(types.EventCodeInstanceRetirement), string(types.EventCodeInstanceStop))},
}

// Unhealthy returns what EC2's status checks and scheduled events say about the running instances of the account, one
// Interruption for each kind. A check counts once it has failed for two minutes, a scheduled event as soon as it is
// announced. Attached volumes are ignored, because an impaired one may belong to a pod.
func (i *Interruptions) Unhealthy(ctx context.Context) ([]cloud.Interruption, error) {
	found := map[cloud.InterruptionKind]map[string]bool{}
	for _, filters := range statusQueries {
		pages := ec2.NewDescribeInstanceStatusPaginator(i.ec2.DescribeInstanceStatus, &ec2.DescribeInstanceStatusInput{Filters: filters, MaxResults: aws.Int32(1000)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, classify("DescribeInstanceStatus", err)
			}
			for n := range page.InstanceStatuses {
				for _, kind := range unhealthy(&page.InstanceStatuses[n], i.now()) {
					if found[kind] == nil {
						found[kind] = map[string]bool{}
					}
					found[kind][aws.ToString(page.InstanceStatuses[n].InstanceId)] = true
				}
			}
		}
	}
	var all []cloud.Interruption
	for _, kind := range []cloud.InterruptionKind{cloud.SystemImpaired, cloud.InstanceImpaired, cloud.ScheduledChange} {
		if len(found[kind]) > 0 {
			all = append(all, cloud.Interruption{Kind: kind, Instances: slices.Sorted(maps.Keys(found[kind]))})
		}
	}
	return all, nil
}

// unhealthy returns what is wrong with an instance.
func unhealthy(status *types.InstanceStatus, now time.Time) []cloud.InterruptionKind {
	var kinds []cloud.InterruptionKind
	if impaired(status.SystemStatus, now) {
		kinds = append(kinds, cloud.SystemImpaired)
	}
	if impaired(status.InstanceStatus, now) {
		kinds = append(kinds, cloud.InstanceImpaired)
	}
	for i := range status.Events {
		if !over(aws.ToString(status.Events[i].Description)) {
			return append(kinds, cloud.ScheduledChange)
		}
	}
	return kinds
}

// impaired reports whether a check has failed for at least impairedFor. A failure whose start EC2 does not report does
// not count.
func impaired(summary *types.InstanceStatusSummary, now time.Time) bool {
	if summary == nil {
		return false
	}
	for i := range summary.Details {
		detail := &summary.Details[i]
		if detail.Status == types.StatusTypeFailed && detail.ImpairedSince != nil && now.Sub(*detail.ImpairedSince) >= impairedFor {
			return true
		}
	}
	return false
}

// over reports whether a scheduled event has happened or was called off. EC2 shows such events for up to a week longer
// and marks them only at the beginning of their description.
func over(description string) bool {
	return strings.HasPrefix(description, "[Completed]") || strings.HasPrefix(description, "[Canceled]")
}
