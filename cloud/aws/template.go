package aws

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/singleflight"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

const (
	// templatePrefix begins the names of our launch templates; a hash of the content follows.
	templatePrefix = "tenon.sh/"
	// templateIdle is how long a launch template is kept after its last use. A launch that is prepared and not sent
	// for longer finds it gone and is prepared again.
	templateIdle = 30 * time.Minute
)

// template is a launch template before it has a name.
type template struct {
	Data *types.RequestLaunchTemplateData
	Tags []types.Tag
}

// name returns a name that two templates share only if they are equal.
func (t template) name() (string, error) {
	content, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("hash launch template: %w", err)
	}
	sum := sha256.Sum256(content)
	return templatePrefix + hex.EncodeToString(sum[:16]), nil
}

// newTemplate renders the launch template of a class for one image and one user data.
func newTemplate(class *awsv1.EC2NodeClass, image, userData string, tags map[string]string) template {
	list := tagList(tags)
	data := &types.RequestLaunchTemplateData{
		BlockDeviceMappings: templateDisks(class),
		IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{
			Name: aws.String(class.Status.InstanceProfile),
		},
		ImageId:         aws.String(image),
		MetadataOptions: templateMetadata(class.Spec.MetadataOptions),
		Monitoring:      &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(aws.ToBool(class.Spec.DetailedMonitoring))},
		UserData:        aws.String(base64.StdEncoding.EncodeToString([]byte(userData))),
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: list},
		},
	}
	if options := class.Spec.CPUOptions; options != nil && options.NestedVirtualization != nil {
		data.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: types.NestedVirtualizationSpecification(*options.NestedVirtualization),
		}
	}
	return template{Data: data, Tags: list}
}

// reserve makes the template's instances run in one capacity reservation and nowhere else, or, without one, in none: what
// a class has reserved is used by launches that ask for it, so that it can be counted. Classes that select no
// reservations leave it to EC2 whether an open one is used.
func (t template) reserve(class *awsv1.EC2NodeClass, id string) {
	switch {
	case id != "":
		t.Data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: aws.String(id)},
		}
		if isBlock(class, id) {
			t.Data.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}
		}
	case len(class.Spec.CapacityReservationSelectorTerms) > 0:
		t.Data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceNone,
		}
	}
}

func templateMetadata(options *awsv1.MetadataOptions) *types.LaunchTemplateInstanceMetadataOptionsRequest {
	request := &types.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint:            types.LaunchTemplateInstanceMetadataEndpointStateEnabled,
		HttpProtocolIpv6:        types.LaunchTemplateInstanceMetadataProtocolIpv6Disabled,
		HttpPutResponseHopLimit: aws.Int32(1),
		HttpTokens:              types.LaunchTemplateHttpTokensStateRequired,
		InstanceMetadataTags:    types.LaunchTemplateInstanceMetadataTagsStateDisabled,
	}
	if options == nil {
		return request
	}
	if options.HTTPEndpoint != nil {
		request.HttpEndpoint = types.LaunchTemplateInstanceMetadataEndpointState(*options.HTTPEndpoint)
	}
	if options.HTTPProtocolIPv6 != nil {
		request.HttpProtocolIpv6 = types.LaunchTemplateInstanceMetadataProtocolIpv6(*options.HTTPProtocolIPv6)
	}
	if options.HTTPPutResponseHopLimit != nil {
		request.HttpPutResponseHopLimit = narrow(options.HTTPPutResponseHopLimit)
	}
	if options.HTTPTokens != nil {
		request.HttpTokens = types.LaunchTemplateHttpTokensState(*options.HTTPTokens)
	}
	return request
}

// templateStore makes launch templates, knows which exist, and removes those nobody uses.
type templateStore struct {
	api     *ec2.Client
	cluster string
	now     func() time.Time

	flight singleflight.Group
	mu     sync.Mutex
	used   map[string]time.Time // of templates known to exist, when they were last used or first seen
}

func newTemplateStore(api *ec2.Client, cluster string, now func() time.Time) *templateStore {
	return &templateStore{api: api, cluster: cluster, now: now, used: make(map[string]time.Time)}
}

// ensure makes the template exist and returns its name.
func (s *templateStore) ensure(ctx context.Context, t template) (string, error) {
	name, err := t.name()
	if err != nil {
		return "", err
	}
	if s.touch(name) {
		return name, nil
	}
	_, err, _ = s.flight.Do(name, func() (any, error) {
		_, err := s.api.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String(name),
			LaunchTemplateData: t.Data,
			TagSpecifications:  []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: t.Tags}},
		})
		// The name says what is in it, so whoever was first made the same.
		if err != nil && !hasCode(err, "InvalidLaunchTemplateName.AlreadyExistsException") {
			return nil, classify("CreateLaunchTemplate", err)
		}
		s.mu.Lock()
		s.used[name] = s.now()
		s.mu.Unlock()
		return nil, nil
	})
	return name, err
}

// touch says that a template is being used; false when it is not known to exist.
func (s *templateStore) touch(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.used[name]
	if ok {
		s.used[name] = s.now()
	}
	return ok
}

// forget takes back that the templates of a request exist.
func (s *templateStore) forget(request cloud.LaunchRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, override := range request.Overrides {
		delete(s.used, override.LaunchTemplate)
	}
}

// clean removes the templates of a class that have not been used for idle. A template that this process has not seen
// before counts as used just now: another one may be using it.
func (s *templateStore) clean(ctx context.Context, class string, idle time.Duration) error {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(s.api, &ec2.DescribeLaunchTemplatesInput{
		Filters: []types.Filter{
			filter("tag:"+awsv1.ClusterTagKey(s.cluster), owned),
			filter("tag:"+awsv1.NodeClassTagKey, class),
			filter("launch-template-name", templatePrefix+"*"),
		},
		MaxResults: aws.Int32(200),
	})
	var unused []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return classify("DescribeLaunchTemplates", err)
		}
		for _, found := range page.LaunchTemplates {
			name := aws.ToString(found.LaunchTemplateName)
			if s.idle(name) >= idle {
				unused = append(unused, name)
			}
		}
	}
	for _, name := range unused {
		if err := s.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *templateStore) idle(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.used[name]
	if !ok {
		last = s.now()
		s.used[name] = last
	}
	return s.now().Sub(last)
}

// remove deletes a template; one that is gone already is fine.
func (s *templateStore) remove(ctx context.Context, name string) error {
	s.mu.Lock()
	delete(s.used, name)
	s.mu.Unlock()
	_, err := s.api.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
	if err != nil && !hasCode(err, "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound") {
		return classify("DeleteLaunchTemplate", err)
	}
	return nil
}
