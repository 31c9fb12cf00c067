package aws

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
	"github.com/tenon-sh/tenon/internal/logs"
)

const (
	// templatePrefix begins the names of our launch templates; a hash of the content follows.
	templatePrefix = "tenon.sh/"
	// templatePeriod is the longest time for which launches are prepared with one template.
	templatePeriod = 30 * time.Minute
	// templateKept is how long a template is kept: one period; an hour for each direction in which the workers' clocks
	// may differ; and half an hour until a prepared launch is sent. A launch that is sent later finds the template gone
	// and is prepared again.
	templateKept = 3 * time.Hour
)

// template is a launch template before it has a name.
type template struct {
	Data *types.RequestLaunchTemplateData
	Tags []types.Tag
}

// name returns a name that two templates share only if they are equal and of the same period.
func (t template) name(now time.Time) (string, error) {
	content, err := json.Marshal([]any{t, now.Unix() / int64(templatePeriod/time.Second)})
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
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: list},
		},
	}
	if options := class.Spec.CPUOptions; options != nil && options.NestedVirtualization != nil {
		data.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: types.NestedVirtualizationSpecification(*options.NestedVirtualization),
		}
	}
	return template{Data: data, Tags: list}
}

// tagSpotRequests tags the spot requests of the template's instances. EC2 refuses such tags for instances that are not
// spot (aws/karpenter-provider-aws, issue 5850).
func (t template) tagSpotRequests() {
	t.Data.TagSpecifications = append(t.Data.TagSpecifications, types.LaunchTemplateTagSpecificationRequest{
		ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: t.Tags,
	})
}

// reserve makes the template's instances run in one capacity reservation and nowhere else. Without an id they run in
// none, not even in open ones: only launches that ask for a reservation use it, so that its room can be counted.
// Karpenter does the same whether the class selects reservations or not.
func (t template) reserve(class *awsv1.EC2NodeClass, id string) {
	if id == "" {
		t.Data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceNone,
		}
		return
	}
	t.Data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
		CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
		CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: aws.String(id)},
	}
	if market := marketOf(class, id); market != "" {
		t.Data.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: market}
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

// templateStore creates launch templates, knows which exist, and removes old ones. Several workers share templates
// without telling each other which they use, so a template is removed by its age: its name depends on the period, and
// no worker prepares a launch with a template of a period before its own.
type templateStore struct {
	api     *calls.EC2
	cluster string
	now     func() time.Time
	log     *zap.Logger
	facts   *refreshed[clusterFacts]
	cleaned *ttlCache[string, struct{}] // classes whose old templates were removed lately

	flight singleflight.Group
	mu     sync.Mutex
	known  map[string]time.Time // when each template was last known to exist
}

func newTemplateStore(api *calls.EC2, options Options, facts *refreshed[clusterFacts]) *templateStore {
	return &templateStore{
		api: api, cluster: options.Cluster, now: options.Now, log: options.Log, facts: facts,
		cleaned: newTTLCache[string, struct{}](templatePeriod/3, 256, options.Now), known: make(map[string]time.Time),
	}
}

// ensure creates the template if it does not exist and returns its name.
func (s *templateStore) ensure(ctx context.Context, t template) (string, error) {
	name, err := t.name(s.now())
	if err != nil || s.knows(name) {
		return name, err
	}
	_, err, _ = s.flight.Do(name, func() (any, error) {
		_, err := s.api.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String(name),
			LaunchTemplateData: t.Data,
			TagSpecifications:  []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: t.Tags}},
		})
		// The name depends on the content, so a template that another worker created first is the same.
		if err != nil && !hasCode(err, "InvalidLaunchTemplateName.AlreadyExistsException") {
			return nil, classify("CreateLaunchTemplate", err)
		}
		s.learn(name)
		return nil, nil
	})
	return name, err
}

func (s *templateStore) knows(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[name]
	return ok
}

// learn records that a template exists, and forgets templates recorded more than a period ago.
func (s *templateStore) learn(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.known, func(_ string, since time.Time) bool { return now.Sub(since) > templatePeriod })
	s.known[name] = now
}

// forget removes the templates of a request from those known to exist.
func (s *templateStore) forget(request fleetRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, override := range request.Overrides {
		delete(s.known, override.LaunchTemplate)
	}
}

// clean removes the launch templates of a class that are at least this old.
func (s *templateStore) clean(ctx context.Context, class string, age time.Duration) error {
	all, err := s.list(ctx, filter("tag:"+awsv1.ClusterTagKey(s.cluster), owned), filter("tag:"+awsv1.NodeClassTagKey, class),
		filter("launch-template-name", templatePrefix+"*"))
	if err != nil {
		return err
	}
	var old []string
	for i := range all {
		if name := aws.ToString(all[i].LaunchTemplateName); age == 0 || s.age(&all[i]) >= age {
			old = append(old, name)
		} else {
			s.learn(name)
		}
	}
	for _, name := range old {
		if err := s.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// list returns the launch templates that the filters select, from all pages.
func (s *templateStore) list(ctx context.Context, filters ...types.Filter) ([]types.LaunchTemplate, error) {
	var all []types.LaunchTemplate
	pages := ec2.NewDescribeLaunchTemplatesPaginator(s.api.DescribeLaunchTemplates, &ec2.DescribeLaunchTemplatesInput{Filters: filters, MaxResults: aws.Int32(200)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeLaunchTemplates", err)
		}
		all = append(all, page.LaunchTemplates...)
	}
	return all, nil
}

func (s *templateStore) age(t *types.LaunchTemplate) time.Duration {
	return s.now().Sub(aws.ToTime(t.CreateTime))
}

// remove deletes a template. It succeeds if the template is already gone.
func (s *templateStore) remove(ctx context.Context, name string) error {
	s.mu.Lock()
	delete(s.known, name)
	s.mu.Unlock()
	_, err := s.api.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
	if err != nil && !hasCode(err, "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound") {
		return classify("DeleteLaunchTemplate", err)
	}
	return nil
}

// cleanOld removes the old launch templates of a class from time to time. They cost nothing, so a failure is only
// logged.
func (s *templateStore) cleanOld(ctx context.Context, class string) {
	if _, recently := s.cleaned.get(class); recently {
		return
	}
	s.cleaned.put(class, struct{}{})
	if err := s.clean(ctx, class, templateKept); err != nil {
		logs.Of(ctx, s.log).Warn("old launch templates stay for now", zap.String("nodeClass", class), zap.Error(err))
	}
}
