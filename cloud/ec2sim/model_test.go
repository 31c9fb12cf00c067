package ec2sim_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestModelRefuses uses the real SDK to request what the published model does not have.
func TestModelRefuses(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	fleet := func(edit func(*ec2.CreateFleetInput)) error {
		in := fleetInput(name, 1, ec2types.DefaultTargetCapacityTypeOnDemand, a.override(t, "m5.large", "us-east-1a"))
		edit(in)
		_, err := a.ec2.CreateFleet(ctx(t), in)
		return err
	}
	// The SDK itself checks part of the model. That check is off here.
	unchecked := func(o *ssm.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			_, err := s.Initialize.Remove("OperationInputValidation")
			return err
		})
	}
	for reason, tc := range map[string]struct {
		err  error
		code string
	}{
		"a filter that another call has": {second(a.ec2.DescribeCapacityReservations(ctx(t), &ec2.DescribeCapacityReservationsInput{
			Filters: []ec2types.Filter{filterOf("capacity-reservation-id", "cr-1")}})), "InvalidParameterValue"},
		"a tag filter without a key": {second(a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filterOf("tag:", "x")}})), "InvalidParameterValue"},
		"too large a page":           {second(a.ec2.DescribeLaunchTemplates(ctx(t), &ec2.DescribeLaunchTemplatesInput{MaxResults: aws.Int32(201)})), "InvalidParameterValue"},
		"too small a page":           {second(a.ec2.DescribeInstanceTypes(ctx(t), &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(4)})), "InvalidParameterValue"},
		"no such strategy": {fleet(func(in *ec2.CreateFleetInput) {
			in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: "cheapest"}
		}), "InvalidParameterValue"},
		"no such resource": {fleet(func(in *ec2.CreateFleetInput) {
			in.TagSpecifications = []ec2types.TagSpecification{{ResourceType: "machine", Tags: []ec2types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}}
		}), "InvalidParameterValue"},
		"a name out of pattern": {second(a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("with space"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{}})), "InvalidParameterValue"},
		"too short a name": {second(a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("ab"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{}})), "InvalidParameterValue"},
		"IAM, a name out of pattern": {second(a.iam().CreateInstanceProfile(ctx(t), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("a/b")})), "ValidationError"},
		"SSM, too large a page":      {second(a.ssm().GetParametersByPath(ctx(t), &ssm.GetParametersByPathInput{Path: aws.String("/aws"), MaxResults: aws.Int32(11)})), "ValidationException"},
		"SSM, nothing asked for":     {second(a.ssm().GetParameter(ctx(t), &ssm.GetParameterInput{}, unchecked)), "ValidationException"},
		"Pricing, too large a page":  {second(a.pricing().GetProducts(ctx(t), &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(101)})), "InvalidParameterException"},
	} {
		var api smithy.APIError
		if !errors.As(tc.err, &api) || api.ErrorCode() != tc.code {
			t.Errorf("%s: error is %v, want code %s", reason, tc.err, tc.code)
		}
	}
}

// TestModelAccepts requests what a strict reading of the model must not refuse.
func TestModelAccepts(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for reason, err := range map[string]error{
		"spot prices of any page size, which the model leaves open": second(a.ec2.DescribeSpotPriceHistory(ctx(t), &ec2.DescribeSpotPriceHistoryInput{
			MaxResults: aws.Int32(1000), StartTime: aws.Time(a.clock.Now().Add(-time.Hour))})),
		"tags of reservations, which Karpenter selects by": second(a.ec2.DescribeCapacityReservations(ctx(t), &ec2.DescribeCapacityReservationsInput{
			Filters: []ec2types.Filter{filterOf("tag:team", "blue"), filterOf("tag-key", "team")}})),
		"lists and numbers in JSON": func() error {
			queue, err := a.sqs().GetQueueUrl(ctx(t), &sqs.GetQueueUrlInput{QueueName: aws.String("nobody")})
			var missing smithy.APIError
			if errors.As(err, &missing) && missing.ErrorCode() == "AWS.SimpleQueueService.NonExistentQueue" || queue != nil {
				return nil
			}
			return err
		}(),
	} {
		if err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestModelOfTheWire sends what no SDK would: malformed and unknown parameters.
func TestModelOfTheWire(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for reason, tc := range map[string]struct {
		service, target, body, want string
	}{
		"EC2, a misspelt parameter": {service: "ec2", target: "",
			body: "Action=DescribeInstances&Version=2016-11-15&InstanceIds.1=i-1",
			want: "<Code>UnknownParameter</Code><Message>The parameter InstanceIds is not recognized"},
		"EC2, a misspelt nested parameter": {service: "ec2", target: "",
			body: "Action=DescribeInstances&Filter.1.Name=instance-id&Filter.1.Values.1=i-1", want: "The parameter Filter.1.Values is not recognized"},
		"EC2, a list that is no list": {service: "ec2", target: "", body: "Action=DescribeInstances&InstanceId=i-1&InstanceId.x=i-1",
			want: "The parameter InstanceId.x is not recognized"},
		"EC2, no number":        {service: "ec2", target: "", body: "Action=DescribeInstances&MaxResults=many", want: "Expected an integer"},
		"EC2, no time":          {service: "ec2", target: "", body: "Action=DescribeSpotPriceHistory&StartTime=today", want: "Expected a time"},
		"EC2, what is required": {service: "ec2", target: "", body: "Action=TerminateInstances", want: "<Code>MissingParameter</Code>"},
		"IAM, a misspelt parameter": {service: "iam", target: "",
			body: "Action=GetInstanceProfile&Version=2010-05-08&InstanceProfile=x", want: "<Code>MalformedInput</Code>"},
		"IAM, a list without its level": {service: "iam", target: "",
			body: "Action=CreateInstanceProfile&InstanceProfileName=x&Tags.1.Key=a&Tags.1.Value=b", want: "<Code>MalformedInput</Code>"},
		"SSM, a misspelt member":   {service: "ssm", target: "AmazonSSM.GetParameter", body: `{"Nam":"x"}`, want: "SerializationException"},
		"SSM, a number for a text": {service: "ssm", target: "AmazonSSM.GetParameter", body: `{"Name":1}`, want: "SerializationException"},
		"SSM, no JSON":             {service: "ssm", target: "AmazonSSM.GetParameter", body: `Name=x`, want: "SerializationException"},
	} {
		if got := a.send(t, tc.service, tc.target, tc.body); !strings.Contains(got, tc.want) {
			t.Errorf("%s: answer should contain %s:\n%s", reason, tc.want, got)
		}
	}
}

// send posts a raw request and returns the body of the answer.
func (a *account) send(t *testing.T, service, target, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx(t), http.MethodPost, a.sim.URL(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261121/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=00")
	if target != "" {
		req.Header.Set("X-Amz-Target", target)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func second[T any](_ T, err error) error { return err }
