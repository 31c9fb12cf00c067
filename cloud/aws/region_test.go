package aws_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestTheRegionOfTheMachine starts a worker without a configured region on an EC2 instance in eu-west-1.
func TestTheRegionOfTheMachine(t *testing.T) {
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
			_, _ = io.WriteString(w, "token")
		case "/latest/dynamic/instance-identity/document":
			_, _ = io.WriteString(w, `{"region": "eu-west-1"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(metadata.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Region: "eu-west-1"})
	provider, err := aws.New(t.Context(), aws.Options{Cluster: "blue", Now: a.Now, Load: []func(*config.LoadOptions) error{
		config.WithBaseEndpoint(a.sim.URL()), config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	class := a.NodeClass()
	a.resolve(provider, class)
	types, err := provider.InstanceTypes(t.Context(), class)
	if err != nil || len(types) == 0 {
		t.Fatalf("no instance types: %v", err)
	}
	if got := types[0].Labels["topology.kubernetes.io/region"]; got != "eu-west-1" {
		t.Errorf("the region is %q; want the machine's, eu-west-1", got)
	}
}
