package aws_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestCallsAreCounted has the SDK call the simulated EC2, and compares what was counted with the simulator's own record.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json"})
	cfg, err := config.LoadDefaultConfig(t.Context(), a.load()...)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	provider, err := aws.NewFromConfig(cfg, options{Cluster: "blue", Now: a.Now, Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	if _, err := provider.Instances(t.Context(), cloud.Query{}); err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Instances(t.Context(), cloud.Query{IDs: []string{"i-0123456789abcdef0"}}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			labels := ""
			for _, label := range metric.Label {
				labels += " " + label.GetValue()
			}
			counted[family.GetName()+labels] = metric.Counter.GetValue() + float64(metric.Histogram.GetSampleCount())
		}
	}
	calls := float64(len(a.sim.Calls("DescribeInstances")))
	ok, bad := counted["aws_sdk_go_request_attempt_total DescribeInstances 200 EC2"], counted["aws_sdk_go_request_attempt_total DescribeInstances 400 EC2"]
	if calls == 0 || ok == 0 || ok+bad != calls {
		t.Errorf("%v attempts were answered with 200 and %v with 400; the simulator has seen %v: %v", ok, bad, calls, counted)
	}
	if counted["aws_sdk_go_request_duration_seconds DescribeInstances 200 EC2"] != counted["aws_sdk_go_request_total DescribeInstances 200 EC2"] {
		t.Errorf("calls and their durations differ: %v", counted)
	}
	if counted["karpenter_cloudprovider_batcher_batch_size describe_instances"] != 1 {
		t.Errorf("the batch of one id was not counted: %v", counted)
	}
}
