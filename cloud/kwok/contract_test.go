package kwok

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/cloudtest"
)

// cluster is an API server in memory with a provider for it, and the faults that a test wants.
type cluster struct {
	t        *testing.T
	provider *Provider
	// kube is the API server without faults.
	kube client.WithWatch

	mu     sync.Mutex
	now    time.Time
	lost   int
	hidden time.Duration
	// limited are the offerings of which only room more Nodes are admitted, unless room is cloudtest.Unlimited.
	limited cloud.OfferingKey
	room    int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, Kind().AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), room: cloudtest.Unlimited}
	c.kube = fake.NewClientBuilder().WithScheme(scheme).Build()
	c.provider = c.newProvider()
	return c
}

// newProvider returns the provider of a worker that has just started.
func (c *cluster) newProvider() *Provider {
	c.t.Helper()
	provider, err := New(Options{Cluster: "blue", Now: c.Now, Kube: interceptor.NewClient(c.kube, interceptor.Funcs{Create: c.create, List: c.list})})
	if err != nil {
		c.t.Fatal(err)
	}
	return provider
}

// create admits a Node as far as there is room, and may lose the reply.
func (c *cluster) create(ctx context.Context, kube client.WithWatch, object client.Object, options ...client.CreateOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	labels := object.GetLabels()
	limited := c.room != cloudtest.Unlimited && matches(c.limited.InstanceType, labels[corev1.LabelInstanceTypeStable]) &&
		matches(c.limited.Zone, labels[corev1.LabelTopologyZone]) && matches(c.limited.CapacityType, labels[karpv1.CapacityTypeLabelKey])
	exists := kube.Get(ctx, client.ObjectKeyFromObject(object), &corev1.Node{}) == nil
	if limited && !exists {
		if c.room == 0 {
			return apierrors.NewRequestEntityTooLargeError("an admission policy takes the capacity away")
		}
		c.room--
	}
	if err := kube.Create(ctx, object, options...); err != nil {
		return err
	}
	if c.lost > 0 {
		c.lost--
		return apierrors.NewTimeoutError("the reply is lost", 0)
	}
	return nil
}

func matches(pattern, value string) bool { return pattern == "" || pattern == value }

// list leaves out Nodes that are too new.
func (c *cluster) list(ctx context.Context, kube client.WithWatch, objects client.ObjectList, options ...client.ListOption) error {
	if err := kube.List(ctx, objects, options...); err != nil {
		return err
	}
	nodes := objects.(*corev1.NodeList)
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes.Items = slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return c.now.Before(instanceOf(&node).LaunchTime.Add(c.hidden)) })
	return nil
}

func (c *cluster) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *cluster) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *cluster) NodeClass() cloud.NodeClass {
	return &NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class", Generation: 1}}
}

func (c *cluster) SelectsNothing() map[string]cloud.NodeClass { return nil }

func (c *cluster) Zones(cloud.NodeClass) []string { return []string{"zone-a", "zone-b", "zone-c"} }

func (c *cluster) LoseLaunchReplies(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = n
}

func (c *cluster) LimitCapacity(key cloud.OfferingKey, remaining int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limited, c.room = key, remaining
}

func (c *cluster) HideNewInstances(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden = d
}

// ForeignInstance makes a Node as another cluster's provider would.
func (c *cluster) ForeignInstance() string {
	c.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Labels: map[string]string{NodeLabel: NodeValue, clusterLabel: "blue-two"}}}
	if err := c.kube.Create(c.t.Context(), node); err != nil {
		c.t.Fatal(err)
	}
	return node.Name
}

func (c *cluster) Alive() []string {
	c.t.Helper()
	alive := []string{}
	for _, node := range c.nodes() {
		if !terminated(&node) {
			alive = append(alive, node.Name)
		}
	}
	return alive
}

func (c *cluster) nodes() []corev1.Node {
	c.t.Helper()
	var nodes corev1.NodeList
	if err := c.kube.List(c.t.Context(), &nodes); err != nil {
		c.t.Fatal(err)
	}
	return nodes.Items
}

func TestContract(t *testing.T) {
	t.Parallel()
	cloudtest.Run(t, func(t *testing.T) (cloud.Provider, cloudtest.Harness) {
		c := newCluster(t)
		return c.provider, c
	})
}

// launch prepares a launch of the cheapest type in one zone, with the group as its token.
func (c *cluster) launch(group string, count int) cloud.LaunchRequest {
	c.t.Helper()
	class, err := c.provider.ResolveNodeClass(c.t.Context(), c.NodeClass())
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := c.provider.PrepareLaunch(c.t.Context(), cloud.LaunchSpec{Group: group, Count: count, Class: class, NodePool: "default", CapacityType: "on-demand",
		Labels: map[string]string{"team": "blue"}, Offerings: []cloud.OfferingKey{{InstanceType: "c-2x-amd64-linux", Zone: "zone-a", CapacityType: "on-demand"}}})
	if err != nil {
		c.t.Fatal(err)
	}
	request.Token = group
	return request
}

// TestAKilledWorkerLosesNothing kills the worker after every Node of a launch, once with the reply lost as well: the next
// worker makes the missing Nodes and no others, and knows all of them with their tags.
func TestAKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	const count = 4
	for made := range count + 1 {
		c := newCluster(t)
		request := c.launch("g", count)
		if made < count {
			c.LimitCapacity(cloud.OfferingKey{}, made)
		}
		before, err := c.provider.Launch(t.Context(), request)
		if err != nil && cloud.KindOf(err) != cloud.InsufficientCapacity || len(before.Instances) != made {
			t.Fatalf("killed after %d Nodes: %+v, %v", made, before, err)
		}
		c.LimitCapacity(cloud.OfferingKey{}, cloudtest.Unlimited)
		next := c.newProvider()
		after, err := next.Launch(t.Context(), request)
		if err != nil || len(after.Instances) != count || len(c.Alive()) != count {
			t.Errorf("killed after %d Nodes: the next worker has %d instances of %d, %v", made, len(after.Instances), len(c.Alive()), err)
		}
		found, err := next.Instances(t.Context(), cloud.Query{LaunchGroup: "g"})
		if err != nil || len(found) != count {
			t.Errorf("killed after %d Nodes: the group has %d instances, %v", made, len(found), err)
		}
	}
}

// A Node that finalizers keep counts as terminated once its instance is, and kwok no longer plays its kubelet.
func TestATerminatedNodeThatStays(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	result, err := c.provider.Launch(t.Context(), c.launch("g", 1))
	if err != nil {
		t.Fatal(err)
	}
	node := &c.nodes()[0]
	node.Finalizers = []string{karpv1.TerminationFinalizer}
	if err := c.kube.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	id := result.Instances[0].ID
	for range 2 {
		if err := c.provider.Terminate(t.Context(), []string{id}); err != nil {
			t.Fatal(err)
		}
	}
	nodes := c.nodes()
	if len(nodes) != 1 || nodes[0].DeletionTimestamp == nil || nodes[0].Labels[NodeLabel] != "" {
		t.Errorf("the Nodes are %+v, want one that is being deleted and that kwok does not know", nodes)
	}
	for terminating, want := range map[bool]int{false: 0, true: 1} {
		found, err := c.provider.Instances(t.Context(), cloud.Query{Terminating: terminating})
		if err != nil || len(found) != want || want == 1 && found[0].State != stateTerminated {
			t.Errorf("with Terminating %v there are %+v, %v", terminating, found, err)
		}
	}
}

// TestNodesAreWhatWasPlanned compares a Node with its type in the catalogue and with its launch.
func TestNodesAreWhatWasPlanned(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if _, err := c.provider.Launch(t.Context(), c.launch("g", 1)); err != nil {
		t.Fatal(err)
	}
	node := c.nodes()[0]
	for key, want := range map[string]string{
		"team": "blue", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: "zone-a", corev1.LabelHostname: node.Name,
		karpv1.CapacityTypeLabelKey: "on-demand", karpv1.NodePoolLabelKey: "default", "karpenter.kwok.sh/instance-family": "c", "karpenter.kwok.sh/instance-cpu": "2",
	} {
		if node.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, node.Labels[key], want)
		}
	}
	if cpu, left := node.Status.Capacity.Cpu().String(), node.Status.Allocatable.Cpu().String(); cpu != "2" || left != "1900m" {
		t.Errorf("the node has %s cores, and %s for pods", cpu, left)
	}
	guarded := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == karpv1.UnregisteredTaintKey })
	if !guarded || node.Spec.ProviderID != "kwok://"+node.Name || cloud.InstanceID(node.Spec.ProviderID) != node.Name {
		t.Errorf("the node has the provider id %s and the taints %v", node.Spec.ProviderID, node.Spec.Taints)
	}
}

// TestCataloguesOfKarpenter reads the catalogues that come with Karpenter's kwok provider, of the release that tools/karpenter
// pins. They list some types of EC2 twice, for Linux and for Windows.
func TestCataloguesOfKarpenter(t *testing.T) {
	t.Parallel()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/karpenter")
	download.Dir = filepath.Join("..", "..", "tools", "karpenter")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("find the module of Karpenter: %v", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"cloudprovider/instance_types.json": "c-16x-amd64-linux", "examples/aws_instance_types.json": "m5.metal"} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "kwok", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		types, err := readCatalogue(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		at := slices.IndexFunc(types, func(typ *cloud.InstanceType) bool { return typ.Name == want })
		if at < 0 || len(types[at].Offerings) < 6 || types[at].Labels[corev1.LabelOSStable] != "linux" || types[at].Labels[corev1.LabelArchStable] != "amd64" ||
			types[at].Labels[labelFamily] == "" || types[at].Labels[labelSize] == "" {
			t.Errorf("%s: %s is %+v", file, want, types[max(at, 0)])
		}
	}
}

// TestWrongCatalogues says what is wrong with each.
func TestWrongCatalogues(t *testing.T) {
	t.Parallel()
	entry := func(systems, resources, offering string) string {
		return fmt.Sprintf(`[{"name":"a","architecture":"amd64","operatingSystems":[%s],"resources":{%s},"offerings":[%s]}]`, systems, resources, offering)
	}
	const linux, size = `"linux"`, `"cpu":"1","memory":"1Gi"`
	for reason, test := range map[string]struct{ text, says string }{
		"it is cut off":                    {text: "[", says: "EOF"},
		"it is empty":                      {text: "[]", says: "no instance types"},
		"a type has two operating systems": {text: entry(`"linux","windows"`, size, ""), says: "operatingSystems: has 2 values"},
		"a type has no memory":             {text: entry(linux, `"cpu":"1"`, ""), says: "resources: needs cpu and memory"},
		"an offering has two zones": {text: entry(linux, size, `{"Price":1,"Requirements":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a","b"]}]}`),
			says: "offerings[0]: the requirement on topology.kubernetes.io/zone"},
		"an offering has no capacity type": {text: entry(linux, size, `{"Price":1,"Requirements":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"]}]}`),
			says: "offerings[0]: needs a zone, a capacity type"},
	} {
		if _, err := readCatalogue([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want %q", reason, err, test.says)
		}
	}
}
