package kwok

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud"
)

// errMismatch says that a token was used before, with another request.
var errMismatch = errors.New("the token was used with another request")

// PrepareLaunch implements cloud.Provider.
func (p *Provider) PrepareLaunch(_ context.Context, spec cloud.LaunchSpec) (cloud.LaunchRequest, error) {
	const operation = "PrepareLaunch"
	delay, err := registrationDelay(operation, spec.Class)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	if spec.Count < 1 {
		return cloud.LaunchRequest{}, failed(cloud.Invalid, operation, fmt.Errorf("a launch of %d instances", spec.Count))
	}
	d := details{Labels: spec.Labels, Taints: spec.Taints, NodePool: spec.NodePool, Delay: delay, Tags: map[string]string{}}
	for _, key := range spec.Offerings {
		if _, offering, found := p.offers.find(key, p.now()); found && key.CapacityType == spec.CapacityType {
			price := offering.Price
			if own, overlaid := spec.Prices[key]; overlaid {
				price = own
			}
			d.Offerings = append(d.Offerings, priced{key, price})
		}
	}
	if len(d.Offerings) == 0 {
		return cloud.LaunchRequest{}, failed(cloud.InsufficientCapacity, operation, errors.New("none of the offerings asked for can be had at the moment"))
	}
	return cloud.NewLaunchRequest(spec, d)
}

// Launch implements cloud.Provider. Every instance gets the first offering that is not refused.
func (p *Provider) Launch(ctx context.Context, request cloud.LaunchRequest) (cloud.LaunchResult, error) {
	const operation = "Launch"
	var d details
	if request.Token == "" {
		return cloud.LaunchResult{}, failed(cloud.Invalid, operation, errors.New("the request has no token"))
	}
	written, err := json.Marshal(request)
	if err := errors.Join(err, request.Read(&d)); err != nil {
		return cloud.LaunchResult{}, failed(cloud.Invalid, operation, err)
	}
	result, digest := cloud.LaunchResult{}, hashOf(string(written))
	for i := range request.Count {
		name := "kwok-" + hashOf(request.Token) + "-" + fmt.Sprintf("%0*d", len(strconv.Itoa(request.Count)), i)
		node, price, err := p.make(ctx, name, request.Group, digest, &d, &result)
		switch {
		case errors.Is(err, errMismatch):
			return cloud.LaunchResult{}, failed(cloud.ParameterMismatch, operation, err)
		case err != nil:
			return cloud.LaunchResult{}, classified(operation, err)
		case node != nil && !terminated(node):
			instance := instanceOf(node)
			instance.Price = price
			result.Instances = append(result.Instances, instance)
		}
	}
	slices.SortFunc(result.Instances, func(a, b cloud.Instance) int { return compareIDs(a.ID, b.ID) })
	if len(result.Instances) == 0 && len(result.Refused) > 0 {
		return result, failed(cloud.InsufficientCapacity, operation, fmt.Errorf("%d offerings had no capacity", len(result.Refused)))
	}
	return result, nil
}

// make makes the Node with a name from the first offering that is not refused, and returns it with its price. If the Node is
// there already, make returns that. It returns nil if all offerings are refused, and adds the refusals to the result.
func (p *Provider) make(ctx context.Context, name, group, digest string, d *details, result *cloud.LaunchResult) (*corev1.Node, float64, error) {
	for _, offering := range d.Offerings {
		if slices.ContainsFunc(result.Refused, func(r cloud.Refusal) bool { return r.OfferingKey == offering.OfferingKey }) {
			continue
		}
		at := slices.IndexFunc(p.offers.catalogue, func(t *cloud.InstanceType) bool { return t.Name == offering.InstanceType })
		if at < 0 {
			continue // the catalogue has changed since the request was prepared
		}
		node, err := newNode(name, p.cluster, group, digest, d, p.offers.catalogue[at], offering.OfferingKey, p.now())
		if err != nil {
			return nil, 0, err
		}
		err = p.kube.Create(ctx, node)
		switch {
		case apierrors.IsRequestEntityTooLargeError(err):
			p.offers.refuse(offering.OfferingKey, p.now())
			result.Refused = append(result.Refused, cloud.Refusal{OfferingKey: offering.OfferingKey, Code: "RequestEntityTooLarge", Message: err.Error()})
			continue
		case apierrors.IsAlreadyExists(err):
			if err := p.kube.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
				return nil, 0, err
			}
			if node.Annotations[requestAnnotation] != digest || node.Labels[clusterLabel] != p.cluster {
				return nil, 0, fmt.Errorf("the Node %s: %w", name, errMismatch)
			}
			return node, priceOf(node, d), nil
		case err != nil:
			return nil, 0, err
		}
		return node, offering.Price, nil
	}
	return nil, 0, nil
}

// priceOf returns the price in a request of the offering that a Node was launched from.
func priceOf(node *corev1.Node, d *details) float64 {
	instance := instanceOf(node)
	key := cloud.OfferingKey{InstanceType: instance.InstanceType, Zone: instance.Zone, CapacityType: instance.CapacityType}
	for _, offering := range d.Offerings {
		if offering.OfferingKey == key {
			return offering.Price
		}
	}
	return 0
}

// hashOf returns a hash that may be part of a name.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
