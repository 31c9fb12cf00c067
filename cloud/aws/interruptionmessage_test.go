package aws

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud"
)

func TestParseInterruption(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const instance = "i-0123456789abcdef0"
	event := func(source, detailType, resources, detail string) string {
		return `{"version":"0","id":"7bf73129-1428-4cd3-a780-95db273d1602","detail-type":"` + detailType + `","source":"` + source + `","account":"111122223333",
			"time":"2026-11-21T12:00:00Z","region":"us-east-1","resources":` + resources + `,"detail":` + detail + `}`
	}
	const arn = `["arn:aws:ec2:us-east-1:111122223333:instance/` + instance + `"]`
	ec2 := func(detailType, detail string) string { return event("aws.ec2", detailType, arn, detail) }
	state := func(name string) string {
		return ec2("EC2 Instance State-change Notification", `{"instance-id":"`+instance+`","state":"`+name+`"}`)
	}
	health := func(detail string) string { return event("aws.health", "AWS Health Event", "[]", detail) }
	about := func(kind cloud.InterruptionKind, instances ...string) cloud.Interruption {
		return cloud.Interruption{Kind: kind, Instances: instances, At: at}
	}
	nobody := cloud.Interruption{At: at}
	tests := []struct {
		reason, body string
		want         cloud.Interruption
		fails        bool
	}{
		{reason: "a spot instance is taken back",
			body: ec2("EC2 Spot Instance Interruption Warning", `{"instance-id":"`+instance+`","instance-action":"terminate"}`), want: about(cloud.SpotInterruption, instance)},
		{reason: "a spot instance that is stopped or hibernated instead is lost to its pods all the same",
			body: ec2("EC2 Spot Instance Interruption Warning", `{"instance-id":"`+instance+`","instance-action":"hibernate"}`), want: about(cloud.SpotInterruption, instance)},
		{reason: "a spot instance may be taken back soon",
			body: ec2("EC2 Instance Rebalance Recommendation", `{"instance-id":"`+instance+`"}`), want: about(cloud.RebalanceRecommendation, instance)},
		{reason: "an instance is being stopped", body: state("stopping"), want: about(cloud.InstanceStopping, instance)},
		{reason: "an instance has stopped", body: state("stopped"), want: about(cloud.InstanceStopping, instance)},
		{reason: "an instance is being terminated", body: state("shutting-down"), want: about(cloud.InstanceTerminating, instance)},
		{reason: "an instance is gone", body: state("terminated"), want: about(cloud.InstanceTerminated, instance)},
		{reason: "that an instance starts is no interruption", body: state("pending"), want: nobody},
		{reason: "that an instance runs is none either", body: state("running"), want: nobody},
		{reason: "an interruptible reservation is taken back; EC2 documents resources as a string here",
			body: event("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", `"arn:aws:ec2:us-east-1:111122223333:instance/`+instance+`"`,
				`{"instance-id":"`+instance+`","instance-action":"terminate","instance-termination-time":"2026-11-21T12:02:00Z","azId":"use1-az1"}`),
			want: about(cloud.ReservationInterruption, instance)},
		{reason: "AWS will retire the machines of two instances",
			body: health(`{"eventArn":"arn:aws:health:us-east-1::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/x","service":"EC2",
				"eventTypeCode":"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED","eventTypeCategory":"scheduledChange","startTime":"Sat, 21 Nov 2026 15:05:00 GMT",
				"eventDescription":[{"language":"en_US","latestDescription":"..."}],"statusCode":"upcoming","affectedEntities":[{"entityValue":"i-1","tags":{}},{"entityValue":"i-2"}]}`),
			want: about(cloud.ScheduledChange, "i-1", "i-2")},
		{reason: "events of former times have no status",
			body: health(`{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"i-1"}]}`), want: about(cloud.ScheduledChange, "i-1")},
		{reason: "a change that has happened or was called off takes nothing away",
			body: health(`{"service":"EC2","eventTypeCategory":"scheduledChange","statusCode":"closed","affectedEntities":[{"entityValue":"i-1"}]}`), want: nobody},
		{reason: "an issue of EC2 is no scheduled change", body: health(`{"service":"EC2","eventTypeCategory":"issue","affectedEntities":[{"entityValue":"i-1"}]}`), want: nobody},
		{reason: "a change of another service is not about instances",
			body: health(`{"service":"RDS","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"db-1"}]}`), want: nobody},
		{reason: "a change that affects nothing concerns nobody", body: health(`{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[]}`), want: nobody},
		{reason: "an event of EC2 that a wider rule lets through", body: ec2("EBS Volume Notification", `{"event":"createVolume"}`), want: nobody},
		{reason: "an event of another source", body: event("aws.autoscaling", "EC2 Instance-launch Lifecycle Action", "[]", `{}`), want: nobody},
		{reason: "a test message somebody sends from the console", body: "hello", fails: true},
		{reason: "JSON that is not an event", body: `{"hello":"world"}`, fails: true},
		{reason: "an empty message", body: "", fails: true},
		{reason: "a warning that names nobody", body: ec2("EC2 Spot Instance Interruption Warning", `{"instance-action":"terminate"}`), fails: true},
		{reason: "a detail of another shape", body: ec2("EC2 Instance State-change Notification", `"stopped"`), fails: true},
		{reason: "an event without a detail", body: `{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning"}`, fails: true},
		{reason: "a time that is none", body: `{"source":"aws.ec2","detail-type":"x","time":"yesterday","detail":{}}`, fails: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			got, err := parseInterruption(test.body)
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want one: %v", err, test.fails)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseInterruption(f *testing.F) {
	f.Add(`{"source":"aws.health","detail-type":"AWS Health Event","detail":{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"i-1"}]}}`)
	f.Add(`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{"instance-id":"i-1","state":"stopped"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		found, err := parseInterruption(body)
		if found.Kind != "" && (err != nil || len(found.Instances) == 0) {
			t.Errorf("%q became %+v, %v: what has a kind has instances and is no error", body, found, err)
		}
	})
}

func TestValidQueue(t *testing.T) {
	t.Parallel()
	for queue, want := range map[string]bool{
		"my-cluster": true,
		"https://sqs.us-east-1.amazonaws.com/111122223333/my-cluster": true,
		"": false, "my cluster": false, "arn:aws:sqs:us-east-1:111122223333:my-cluster": false, "https://sqs.us-east-1.amazonaws.com/": false,
	} {
		if got := ValidQueue(queue); got != want {
			t.Errorf("ValidQueue(%q) = %v, want %v", queue, got, want)
		}
	}
}
