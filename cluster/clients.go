package cluster

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
)

// clients makes one REST client for each group and version, all over one HTTP client and therefore over one connection.
type clients struct {
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
	byGV   map[schema.GroupVersion]rest.Interface
	// custom are the groups of custom resources.
	custom []string
}

func newClients(config *rest.Config, kind cloud.Kind) (*clients, error) {
	config = rest.CopyConfig(config)
	// Watches are few and long; a rate limit would only delay their return after a failure.
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("HTTP client: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, kind.AddToScheme, bufferv1.AddToScheme, karpv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("scheme: %w", err)
		}
	}
	return &clients{config: config, http: client, codecs: serializer.NewCodecFactory(scheme), byGV: map[schema.GroupVersion]rest.Interface{},
		custom: []string{karpv1.Group, kind.Group, bufferv1.Group}}, nil
}

// client returns the client of a group and version.
func (c *clients) client(gv schema.GroupVersion) (rest.Interface, error) {
	if client, ok := c.byGV[gv]; ok {
		return client, nil
	}
	config := rest.CopyConfig(c.config)
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = c.codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "", runtime.ContentTypeJSON
	if !slices.Contains(c.custom, gv.Group) {
		// Custom resources have no protobuf form.
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		config.ContentType = runtime.ContentTypeProtobuf
	}
	client, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", gv, err)
	}
	c.byGV[gv] = client
	return client, nil
}
