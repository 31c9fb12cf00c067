package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

// feeds are the mirrored resources.
type feeds struct {
	pods       *feed[*Pod]
	nodes      *feed[*machine]
	claims     *feed[*promised]
	pools      *feed[*karpv1.NodePool]
	classes    *feed[*awsv1.EC2NodeClass]
	daemonSets *feed[*daemonSet]
	// limitRanges say what containers get that name nothing themselves.
	limitRanges *feed[*corev1.LimitRange]
	budgets     *feed[*podBudget]
	namespaces  *feed[*namespace]

	attachments    *feed[*attachment]
	volumeClaims   *feed[*volumeClaim]
	volumes        *feed[*volume]
	storageClasses *feed[*storageClass]
	csiNodes       *feed[*csiNode]
	// capacityBuffers are watched where the cluster serves them, origins where buffers refer to one of the kind.
	capacityBuffers *feed[*bufferv1.CapacityBuffer]
	origins         map[string]origins
	// overlays are watched where the cluster serves them; nil where they are not to be.
	overlays *feed[*karpv1alpha1.NodeOverlay]
}

// watched is a feed as Run and the staleness see it.
type watched struct {
	pulse *pulse
	run   func(context.Context)
}

// podSelector leaves pods that have ended with the API server: they hold nothing of a node any more.
var podSelector = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// openFeeds prepares the watches of all resources.
func (m *Mirror) openFeeds(options Options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, awsv1.AddToScheme, bufferv1.AddToScheme, karpv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("scheme: %w", err)
		}
	}
	c := clients{mirror: m, codecs: serializer.NewCodecFactory(scheme)}
	core, apps, policy := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, policyv1.SchemeGroupVersion

	m.pods = open(&c, core, "pods", &corev1.Pod{}, podSelector, m.reducePod, (*Pod).Key, m.podChanged)
	m.nodes = open(&c, core, "nodes", &corev1.Node{}, nil, m.reduceNode, (*machine).key, m.nodeChanged)
	m.claims = open(&c, karpv1.SchemeGroupVersion, "nodeclaims", &karpv1.NodeClaim{}, nil, m.reduceClaim, (*promised).key, m.claimChanged)
	m.pools = open(&c, karpv1.SchemeGroupVersion, "nodepools", &karpv1.NodePool{}, nil, whole[*karpv1.NodePool], nameOf[*karpv1.NodePool], m.poolChanged)
	m.classes = open(&c, awsv1.SchemeGroupVersion, "ec2nodeclasses", &awsv1.EC2NodeClass{}, nil, whole[*awsv1.EC2NodeClass], nameOf[*awsv1.EC2NodeClass], m.classChanged)
	m.daemonSets = open(&c, apps, "daemonsets", &appsv1.DaemonSet{}, nil, m.reduceDaemonSet, (*daemonSet).key, m.daemonSetChanged)
	m.limitRanges = open(&c, core, "limitranges", &corev1.LimitRange{}, nil, whole[*corev1.LimitRange], nameOf[*corev1.LimitRange], m.limitRangeChanged)
	m.budgets = open(&c, policy, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, nil, m.reduceBudget, (*podBudget).key, m.budgetChanged)
	m.openNamespaces(&c)
	m.openVolumes(&c)
	m.openBuffers(&c)
	if options.NodeOverlays {
		m.openOverlays(&c)
	}
	if c.err != nil {
		return c.err
	}
	m.claims.pulse.advanced = m.claimsAdvanced
	return nil
}

// clients makes one REST client for each group and version, all over one HTTP client and so over one connection.
type clients struct {
	mirror *Mirror
	codecs serializer.CodecFactory
	byGV   map[schema.GroupVersion]rest.Interface
	err    error
}

func (c *clients) client(gv schema.GroupVersion) (rest.Interface, error) {
	if client, ok := c.byGV[gv]; ok {
		return client, nil
	}
	config := rest.CopyConfig(c.mirror.config)
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = c.codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "", runtime.ContentTypeJSON
	if !slices.Contains([]string{karpv1.Group, awsv1.Group, bufferv1.Group}, gv.Group) {
		// Custom resources have no protobuf form.
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		config.ContentType = runtime.ContentTypeProtobuf
	}
	client, err := rest.RESTClientForConfigAndClient(config, c.mirror.http)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", gv, err)
	}
	if c.byGV == nil {
		c.byGV = map[schema.GroupVersion]rest.Interface{}
	}
	c.byGV[gv] = client
	return client, nil
}

// open prepares the feed of one resource and adds it to what Run runs.
func open[R any](c *clients, gv schema.GroupVersion, resource string, example runtime.Object, selector fields.Selector,
	reduce func(any) (R, error), key func(R) string, changed func(old, now R, existed, exists bool),
) *feed[R] {
	m := c.mirror
	if selector == nil {
		selector = fields.Everything()
	}
	f := &feed[R]{
		mu: &m.mu, reduce: reduce, key: key, changed: changed, items: map[string]R{},
		pulse: pulse{resource: resource, clock: m.clock, listed: func() { m.events.publish(Event{Kind: synchronized}) }, advanced: func() {}},
	}
	client, err := c.client(gv)
	if err != nil {
		c.err = err
		return f
	}
	from := &source{ListWatch: cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll,
		func(options *metav1.ListOptions) { options.FieldSelector = selector.String() }), mu: &m.mu, pulse: &f.pulse}
	m.watches = append(m.watches, watched{pulse: &f.pulse, run: func(ctx context.Context) {
		cache.NewReflectorWithOptions(from, example, f, cache.ReflectorOptions{
			Name:            resource,
			TypeDescription: resource,
			Backoff:         reconnect(),
		}).RunWithContext(ctx)
	}})
	return f
}

// reconnect is how watches come back after a failure. The library's default waits up to a minute, as long as a whole
// scale-out; a mirror is one client with few watches and can be quicker.
func reconnect() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 5 * time.Second}
}

// whole keeps an API object as it is, but for the record of who set which field.
func whole[O metav1.Object](obj any) (O, error) {
	object, ok := obj.(O)
	if !ok {
		var want O
		return want, unexpected(want, obj)
	}
	object.SetManagedFields(nil)
	return object, nil
}

func nameOf[O metav1.Object](object O) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

func unexpected(want, got any) error { return fmt.Errorf("mirror: want a %T, got a %T", want, got) }

// named gives a reduced object the identity the Reflector looks for while the initial state streams in.
func named(namespace, name string) metav1.Object {
	return &metav1.ObjectMeta{Namespace: namespace, Name: name}
}
