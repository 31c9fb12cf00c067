package aws_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestLifeInEveryPartition takes a class and an instance through their lives in a region of each partition. The SDK chooses
// the endpoints, as it would on AWS; only the connection is led to the simulated account. The account evaluates the policies
// of deploy/iam for that partition, so an ARN or a service principal of another partition would be refused.
func TestLifeInEveryPartition(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		region, partition string
		// hosts are the endpoints by service, as AWS publishes them (AWS General Reference, "Service endpoints"; Amazon Web
		// Services in China, "Endpoints and ARNs"). The queue's address comes from the account.
		hosts map[string]string
	}{
		{region: "us-east-1", partition: "aws", hosts: map[string]string{
			"ec2": "ec2.us-east-1.amazonaws.com", "iam": "iam.amazonaws.com", "ssm": "ssm.us-east-1.amazonaws.com",
			"eks": "eks.us-east-1.amazonaws.com", "pricing": "api.pricing.us-east-1.amazonaws.com", "sqs": "sqs.us-east-1.amazonaws.com"}},
		{region: "us-gov-west-1", partition: "aws-us-gov", hosts: map[string]string{
			"ec2": "ec2.us-gov-west-1.amazonaws.com", "iam": "iam.us-gov.amazonaws.com", "ssm": "ssm.us-gov-west-1.amazonaws.com",
			"eks": "eks.us-gov-west-1.amazonaws.com", "sqs": "sqs.us-gov-west-1.amazonaws.com"}},
		{region: "cn-north-1", partition: "aws-cn", hosts: map[string]string{
			"ec2": "ec2.cn-north-1.amazonaws.com.cn", "iam": "iam.cn-north-1.amazonaws.com.cn", "ssm": "ssm.cn-north-1.amazonaws.com.cn",
			"eks": "eks.cn-north-1.amazonaws.com.cn", "pricing": "api.pricing.cn-northwest-1.amazonaws.com.cn", "sqs": "sqs.cn-north-1.amazonaws.com.cn"}},
	} {
		t.Run(tc.region, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Region: tc.region})
			wire := &wire{to: strings.TrimPrefix(a.sim.URL(), "http://"), hosts: map[string]string{}}
			cfg, err := config.LoadDefaultConfig(t.Context(), append(a.load(), config.WithBaseEndpoint(""))...)
			if err != nil {
				t.Fatal(err)
			}
			cfg.HTTPClient = wire
			provider, err := aws.NewFromConfig(cfg, options{Cluster: "blue", Now: a.Now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(provider.Close)
			live(t, a, provider)
			if !maps.Equal(wire.hosts, tc.hosts) {
				t.Errorf("endpoints %v, want %v", wire.hosts, tc.hosts)
			}
			found := 0
			for _, arn := range wire.arns {
				if found++; !strings.HasPrefix(arn, "arn:"+tc.partition+":") {
					t.Errorf("%s is of another partition than %s", arn, tc.partition)
				}
			}
			if found < 5 {
				t.Errorf("%d ARNs were on the wire: they were not recognized", found)
			}
			for _, call := range a.sim.Calls("*") {
				if call.Code == "UnauthorizedOperation" || strings.HasPrefix(call.Code, "AccessDenied") {
					t.Errorf("%s was refused: %s", call.Action, call.Code)
				}
			}
		})
	}
}

// TestAnIsolatedRegionDoesNotKnowIPv6Metadata launches where EC2 lacks a parameter of launch templates.
func TestAnIsolatedRegionDoesNotKnowIPv6Metadata(t *testing.T) {
	t.Parallel()
	a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Region: "us-iso-east-1"})
	live(t, a, a.provider)
}

// live takes a class, a launch and an instance through their lives.
func live(t *testing.T, a *account, provider *aws.Provider) {
	t.Helper()
	class := a.NodeClass()
	a.resolve(provider, class)
	if !class.IsTrue("Ready") {
		t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
	}
	request, err := provider.PrepareLaunch(t.Context(), a.spec(class, "g", 1))
	if err != nil {
		t.Fatal(err)
	}
	request.Token = "token"
	launched, err := provider.Launch(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	id := launched.Instances[0].ID
	if err := provider.Tag(t.Context(), id, map[string]string{"Name": "node"}); err != nil {
		t.Fatal(err)
	}
	queue := provider.Interruptions("blue")
	if _, err := queue.Unhealthy(t.Context()); err != nil {
		t.Fatal(err)
	}
	brief, cancel := context.WithTimeout(t.Context(), time.Second) // a queue without messages answers after 20
	defer cancel()
	if _, err := queue.Receive(brief); err != nil && brief.Err() == nil {
		t.Fatal(err)
	}
	if err := provider.Terminate(t.Context(), []string{id}); err != nil {
		t.Fatal(err)
	}
	if err := provider.ReleaseNodeClass(t.Context(), class); err != nil {
		t.Fatal(err)
	}
}

// wire sends every request to the simulated account, whatever host it is for, and notes the hosts and the ARNs.
type wire struct {
	to string

	mu    sync.Mutex
	hosts map[string]string
	arns  []string
}

// arnOnTheWire matches ARNs in bodies, in which the colons may be escaped.
var arnOnTheWire = regexp.MustCompile(`arn:aws[a-z-]*:[a-z0-9-]*:`)

// serviceOf names a service in the credential scope of a signature.
var serviceOf = regexp.MustCompile(`/([a-z0-9]+)/aws4_request`)

func (w *wire) Do(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	if service := serviceOf.FindStringSubmatch(request.Header.Get("Authorization")); service != nil && request.URL.Host != w.to {
		w.mu.Lock()
		w.hosts[service[1]] = request.URL.Hostname()
		w.mu.Unlock()
	}
	request.Host = cmp.Or(request.Host, request.URL.Host)
	request.URL.Scheme, request.URL.Host = "http", w.to
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	asked, err := url.QueryUnescape(string(body))
	if err != nil {
		asked = string(body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arns = append(w.arns, arnOnTheWire.FindAllString(request.URL.Path+asked+string(answer), -1)...)
	return response, nil
}

func TestPricesOfOtherPartitions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why, region string
		broken      bool    // the price list cannot be read
		price       float64 // of an m5.large, which costs 0.096 dollars in us-east-1
		asks        bool
	}{
		{why: "a commercial region asks the price list", region: "us-east-1", broken: false, price: 0.096, asks: true},
		{why: "GovCloud has no Pricing API, and a table of its own", region: "us-gov-west-1", broken: false, price: 0.121, asks: false},
		{why: "the price list of China is in yuan", region: "cn-north-1", broken: false, price: 0.864, asks: true},
		{why: "and so is the built-in table there", region: "cn-north-1", broken: true, price: 1.013, asks: true},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Region: tc.region})
			if tc.broken {
				a.change(func(f *ec2sim.Faults) {
					f.Errors = []ec2sim.ErrorFault{{Action: "GetProducts", Code: "AccessDeniedException"}}
				})
			}
			provider := a.newProviderOf(func(o *options) { o.Load = append(o.Load, config.WithRegion(tc.region)) })
			class := a.NodeClass()
			a.resolve(provider, class)
			found, err := provider.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(found, func(i *cloud.InstanceType) bool { return i.Name == "m5.large" })
			if i < 0 {
				t.Fatal("m5.large is not there")
			}
			for _, offering := range found[i].Offerings {
				if offering.CapacityType == "on-demand" && math.Abs(offering.Price-tc.price) > 1e-9 {
					t.Errorf("m5.large costs %v; want %v", offering.Price, tc.price)
				}
				if offering.CapacityType == "spot" && (offering.Price <= 0 || offering.Price > 1.2*tc.price) {
					t.Errorf("spot costs %v beside an on-demand price of %v: another currency", offering.Price, tc.price)
				}
			}
			if asked := a.sim.CallCounts()["GetProducts"].Total > 0; asked != tc.asks {
				t.Errorf("the price list was asked: %t; want %t", asked, tc.asks)
			}
		})
	}
}
