package scheduling_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/oracle"
)

// labelRowScenarios prove the table of labels in test/oracle: a pod selects the value of each, and gets a node that has the
// label, on an instance of which EC2 says the same. Labels of the default EC2NodeClass share a NodePool of all instance types.
func labelRowScenarios() []scenario {
	common := scenario{name: "label-rows", rule: "labels are what EC2 says about the instance", pools: []pool{{types: anyType, capacity: both}}, steps: []step{{}}}
	var all []scenario
	for _, label := range oracle.Labels {
		name := strings.ToLower(label.Name())
		web := workload{name: name, count: 1, requests: "cpu: 300m, memory: 256Mi", selector: fmt.Sprintf("%s: %q", label.Key, label.Value)}
		if label.Value == "" {
			web.selector, web.spec = "", []string{required(flow.Expression(label.Key, "Exists"))}
		}
		switch {
		case label.Key == karpv1.NodePoolLabelKey:
			web.selector = label.Key + ": " + common.name
			label.Value = common.name
			fallthrough
		case label.Class == "" && label.Mark == "":
			common.steps[0].pods = append(common.steps[0].pods, web)
			common.expect = append(common.expect, sameAsEC2(&label, name))
		case label.Mark != "":
			web.selector = ""
			all = append(all, scenario{name: "label-" + name, rule: label.Key + " is set", pools: []pool{{}},
				steps:  []step{{pods: []workload{web}, then: func(p *play) { p.awaitMark(label.Key, label.Value) }}},
				expect: []expectation{nodes(1), nodesWith(1, label.Key, label.Value)}})
		default:
			s := scenario{name: "label-" + name, rule: label.Key + " is what EC2 says about the instance", steps: []step{{pods: []workload{web}}},
				expect: []expectation{nodes(1), sameAsEC2(&label, name)}}
			s.pools = []pool{{class: s.name, capacity: label.CapacityTypes}}
			s.before = func(p *play) {
				p.Sim(http.MethodPost, "/_sim/reserve", ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 1, Targeted: true, Tags: map[string]string{"for": p.name}}, nil)
				p.placementGroup(3)
				p.ownClass(strings.ReplaceAll(label.Class, "${NAME}", p.name))
			}
			all = append(all, s)
		}
	}
	return append(all, common)
}

// awaitMark waits until the scenario's node has a label.
func (p *play) awaitMark(key, value string) {
	p.T.Helper()
	p.Await("label "+key, settleWithin, func() (bool, string) {
		o := p.outcome()
		return len(o.nodes) == 1 && o.nodes[0].Labels[key] == value, fmt.Sprintf("%d nodes", len(o.nodes))
	})
}

// sameAsEC2 expects that the node of a workload's pod has the value of a label that the pod selects, and that EC2 says the same.
func sameAsEC2(label *oracle.Label, workload string) expectation {
	return func(o *outcome) error {
		node := o.node[o.pods[workload][0].Spec.NodeName]
		value, labelled := node.Labels[label.Key]
		if !labelled || label.Value != "" && value != label.Value {
			return fmt.Errorf("the node has %s=%q, want %q", label.Key, value, label.Value)
		}
		said, err := o.describe(label.Seen, node.Spec.ProviderID[strings.LastIndexByte(node.Spec.ProviderID, '/')+1:])
		if err != nil {
			return err
		}
		if want := label.OfNode(said); want != value {
			return fmt.Errorf("the node has %s=%q; in %s of %s EC2 says %q, which is %q", label.Key, value, label.Seen.Path, label.Seen.Action, said, want)
		}
		return nil
	}
}

// describe returns what EC2 says at a place about an instance, its type or its image.
func (o *outcome) describe(place oracle.Place, id string) (string, error) {
	api := ec2.New(ec2.Options{Region: "us-east-1", BaseEndpoint: aws.String(o.ec2), Credentials: credentials.NewStaticCredentialsProvider("admin", "secret", "")})
	answer, err := api.DescribeInstances(o.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return "", err
	}
	instance := answer.Reservations[0].Instances[0]
	var structure any = instance
	switch place.Action {
	case "DescribeInstanceTypes":
		kinds, err := api.DescribeInstanceTypes(o.ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{instance.InstanceType}})
		if err != nil {
			return "", err
		}
		structure = kinds.InstanceTypes[0]
	case "DescribeImages":
		images, err := api.DescribeImages(o.ctx, &ec2.DescribeImagesInput{ImageIds: []string{*instance.ImageId}})
		if err != nil {
			return "", err
		}
		structure = images.Images[0]
	}
	document, err := oracle.Described(structure)
	return document[place.Path], err
}
