package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// machine is what is launched: the cheapest of the instance types, and the zones that offer it.
type machine struct {
	instanceType string
	zones        []string
	// hour is the on-demand price, disk that of the volumes of one instance, per hour in the region's currency.
	hour, disk float64
}

// offerings returns the offerings to launch from, in all zones.
func (m machine) offerings(capacityType string) []cloud.OfferingKey {
	var keys []cloud.OfferingKey
	for _, zone := range m.zones {
		keys = append(keys, cloud.OfferingKey{InstanceType: m.instanceType, Zone: zone, CapacityType: capacityType})
	}
	return keys
}

// spotRole is the role without which EC2 sells no spot capacity (EC2 User Guide, "Service-linked role for Spot Instance
// requests").
const spotRole = "AWSServiceRoleForEC2Spot"

// identify determines the caller. It is the first call, because the recording masks what it returns.
func identify(ctx context.Context, l *live) outcome {
	who, err := l.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fail("GetCallerIdentity: %v", err)
	}
	parts := strings.Split(aws.ToString(who.Arn), ":")
	if len(parts) < 6 {
		return fail("GetCallerIdentity answers with the ARN %q", aws.ToString(who.Arn))
	}
	l.caller = caller{account: aws.ToString(who.Account), partition: parts[1]}
	return pass("account %s, partition %s", l.caller.account, l.caller.partition)
}

// preflight resolves the class, chooses the machine and rejects a run that could cost too much.
func preflight(ctx context.Context, l *live) outcome {
	if o := identify(ctx, l); o.verdict != passed {
		return o
	}
	if err := l.resolveClass(ctx, l.class); err != nil {
		return fail("%v", err)
	}
	if err := l.chooseMachine(ctx); err != nil {
		return fail("%v", err)
	}
	l.state.Hour, l.state.Disk = l.machine.hour, l.machine.disk
	cost, err := l.affordable(steps())
	if err != nil {
		return fail("%v", err)
	}
	role := "there is the role for spot capacity"
	_, err = l.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(spotRole)})
	if err != nil {
		role = "no role for spot capacity: " + codeOf(err)
	}
	status := &l.class.Status
	return pass("%s, %d subnets, %d security groups, %d images; %s at %.4f an hour in %s; at most %.2f; %s",
		l.region, len(status.Subnets), len(status.SecurityGroups), len(status.AMIs), l.machine.instanceType, l.machine.hour,
		strings.Join(l.machine.zones, ", "), cost, role)
}

// affordable rejects steps that could cost more than --max-dollars.
func (l *live) affordable(steps []step) (float64, error) {
	cost := atMost(steps, l.machine.hour, l.machine.disk)
	if cost > l.maxDollars {
		return cost, fmt.Errorf("it could cost %.2f, more than --max-dollars %.2f", cost, l.maxDollars)
	}
	return cost, nil
}

// resume is the preflight of a resumed run. It does not resolve the class, because that would remove its old launch
// templates.
func resume(ctx context.Context, l *live) outcome {
	if o := identify(ctx, l); o.verdict != passed {
		return o
	}
	l.machine.hour, l.machine.disk = l.state.Hour, l.state.Disk
	cost, err := l.affordable(laterSteps())
	if err != nil {
		return fail("%v", err)
	}
	return pass("account %s; at most %.2f", l.caller.account, cost)
}

// codeOf returns the code of an SDK error, or its text.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return err.Error()
}

// resolveClass waits until the class is ready: a new instance profile takes a while to become known to EC2.
func (l *live) resolveClass(ctx context.Context, class *awsv1.EC2NodeClass) error {
	var last error
	err := l.await(ctx, "the node class to be ready", 3*time.Minute, 10*time.Second, func() (bool, error) {
		resolved, err := l.provider.ResolveNodeClass(ctx, class)
		if last = err; err != nil {
			return false, nil //nolint:nilerr // it is waited for, and the last error is told when that takes too long
		}
		class.Status = resolved.(*awsv1.EC2NodeClass).Status
		for _, c := range class.Status.Conditions {
			if c.Status != "True" {
				last = fmt.Errorf("%s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
			}
		}
		return class.IsTrue("Ready"), nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// chooseMachine chooses the cheapest of the types that the class can launch.
func (l *live) chooseMachine(ctx context.Context) error {
	found, err := l.provider.InstanceTypes(ctx, l.class)
	if err != nil {
		return fmt.Errorf("instance types: %w", err)
	}
	for _, t := range found {
		if !slices.Contains(l.types, t.Name) {
			continue
		}
		m := machine{instanceType: t.Name, disk: l.provider.VolumePrice(l.class)}
		for _, o := range t.Offerings {
			if o.CapacityType == karpv1.CapacityTypeOnDemand && o.Available {
				m.zones, m.hour = append(m.zones, o.Zone), o.Price
			}
		}
		if len(m.zones) > 0 && m.hour > 0 && (l.machine.hour == 0 || m.hour < l.machine.hour) {
			l.machine = m
		}
	}
	if l.machine.hour == 0 {
		return fmt.Errorf("none of %v can be had here for this node class", l.types)
	}
	return nil
}
