package scheduling_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// placementScenarios are about placement groups with partitions.
func placementScenarios() []scenario {
	const partition = awsv1.LabelPlacementGroupPartition
	three := func(p *play) { p.partitioned(pool{suffix: "own", spec: []string{"weight: 10"}}, 3) }
	return []scenario{{
		name: "partitions", rule: "pods are spread over the partitions of a placement group like over zones",
		steps: []step{{act: three, pods: []workload{{name: "web", count: 6, spec: []string{
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: " + partition + ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"}}}}},
		expect: []expectation{spread("web", partition, 2, 2, 2), nodes(3), on("web", poolKey, "partitions-own")},
	}, {
		name: "partition", rule: "a pod gets a node in the partition that it selects",
		steps:  []step{{act: three, pods: []workload{{name: "web", count: 2, selector: partition + ": \"3\""}}}},
		expect: []expectation{placed("web", partition, "3", 2), nodes(1)},
	}, {
		name: "partition-left", rule: "where nobody asks for a partition, EC2 chooses, and the node says which",
		steps:  []step{{act: three, pods: []workload{{name: "web", count: 2}}}},
		expect: []expectation{placed("web", partition, "1", 2), nodes(1)},
	}}
}

// partitioned creates a placement group with partitions, and a NodePool with its own node class in it.
func (p *play) partitioned(own pool, partitions int32) {
	p.T.Helper()
	p.placementGroup(partitions)
	p.poolOfClass(own, "placementGroupSelector: {name: "+p.name+"}")
}

// placementGroup creates the scenario's placement group, with partitions.
func (p *play) placementGroup(partitions int32) {
	p.T.Helper()
	api := ec2.New(ec2.Options{Region: "us-east-1", BaseEndpoint: aws.String(p.Lab.EC2SimURL()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	if _, err := api.CreatePlacementGroup(p.Context(), &ec2.CreatePlacementGroupInput{
		GroupName: aws.String(p.name), Strategy: types.PlacementStrategyPartition, PartitionCount: aws.Int32(partitions)}); err != nil {
		p.T.Fatal(err)
	}
}
