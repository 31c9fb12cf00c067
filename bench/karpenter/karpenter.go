// Package karpenter puts questions to Karpenter's own code, through its public packages: what to buy to its solver, and what
// to remove to its disruption controller without the loop around it (disrupt.go).
//
// The solver is asked as Karpenter's provisioner does: it validates pods, looks up volumes and DaemonSets and makes a new
// scheduler; only Solve is timed, as in Karpenter's own benchmark. The price of one of its claims is the cheapest available
// offering among the instance types it leaves open.
package karpenter

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test"

	"github.com/tenon-sh/tenon/bench/compare"
)

// threads is how many goroutines Karpenter's benchmark gives the solver.
const threads = 5

// cluster is a question in Karpenter's types.
type cluster struct {
	client   client.Client
	provider *fake.CloudProvider
	state    *state.Cluster
	options  []scheduling.Options
}

// Plan asks Karpenter. Only its Solve is timed, without the construction of its scheduler and its topology.
func Plan(ctx context.Context, q *compare.Question) (compare.Answer, error) {
	log.SetLogger(logging.NopLogger)
	ctx = injection.WithControllerName(log.IntoContext(ctx, logging.NopLogger), "provisioner")
	ctx = options.ToContext(ctx, test.Options(optionsFor(q)))
	c, err := newCluster(ctx, q)
	if err != nil {
		return compare.Answer{}, err
	}
	answer := compare.Answer{Existing: map[string]string{}, Unplaced: map[string]string{}}
	provisioner := provisioning.NewProvisioner(c.client, events.NewRecorder(&record.FakeRecorder{}), c.provider, c.state,
		clock.RealClock{}, nil, nil)
	pods := make([]*corev1.Pod, 0, len(q.Pods))
	for _, pod := range q.Pods {
		if err := provisioner.Validate(ctx, pod); err != nil {
			answer.Unplaced[compare.Key(pod)] = err.Error()
			continue
		}
		pods = append(pods, pod.DeepCopy())
	}
	scheduler, err := provisioner.NewScheduler(ctx, pods, c.state.DeepCopyNodes().Active(), nil, c.options...)
	if err != nil {
		return compare.Answer{}, fmt.Errorf("make Karpenter's scheduler: %w", err)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	results, err := scheduler.Solve(ctx, pods)
	answer.Took = time.Since(start)
	runtime.ReadMemStats(&after)
	answer.Mallocs = after.Mallocs - before.Mallocs
	if err != nil {
		return compare.Answer{}, fmt.Errorf("solve: %w", err)
	}
	read(&answer, results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes))
	return answer, nil
}

func optionsFor(q *compare.Question) test.OptionsFields {
	fields := test.OptionsFields{}
	if q.IgnorePreferences {
		policy := options.PreferencePolicyIgnore
		fields.PreferencePolicy = &policy
	}
	if q.BestEffortMinValues {
		policy := options.MinValuesPolicyBestEffort
		fields.MinValuesPolicy = &policy
	}
	return fields
}

// newCluster fills Karpenter's API, cloud provider and mirror.
func newCluster(ctx context.Context, q *compare.Question) (*cluster, error) {
	c := &cluster{provider: fake.NewCloudProvider()}
	c.options = []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(threads),
	}
	if q.IgnorePreferences {
		c.options = append(c.options, scheduling.IgnorePreferences)
	}
	if q.BestEffortMinValues {
		c.options = append(c.options, scheduling.MinValuesPolicy(options.MinValuesPolicyBestEffort))
	} else {
		c.options = append(c.options, scheduling.MinValuesPolicy(options.MinValuesPolicyStrict))
	}
	var objects []client.Object
	c.provider.InstanceTypesForNodePool = map[string][]*cloudprovider.InstanceType{}
	for _, pool := range q.Pools {
		converted, err := nodePool(pool)
		if err != nil {
			return nil, err
		}
		objects = append(objects, converted)
		c.provider.InstanceTypesForNodePool[pool.Name] = instanceTypes(q.Types[pool.Name])
	}
	objects = add(objects, q.DaemonSets)
	objects = add(objects, q.Namespaces)
	objects = add(objects, q.Claims)
	objects = add(objects, q.Volumes)
	objects = add(objects, q.StorageClasses)
	objects = add(objects, q.CSINodes)
	// The fake client scans every pod to find those of one node. So the mirror's client has no pods, and the pods are added
	// to the mirror one by one.
	c.state = state.NewCluster(clock.RealClock{}, newClient(objects), c.provider)
	for i := range q.Nodes {
		objects = append(objects, q.Nodes[i].Node)
		objects = add(objects, q.Nodes[i].Pods)
	}
	c.client = newClient(objects)
	return c, c.fill(ctx, q)
}

func newClient(objects []client.Object) client.Client {
	copies := make([]client.Object, len(objects))
	for i := range objects {
		copies[i] = objects[i].DeepCopyObject().(client.Object)
	}
	nodeName := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	return fakeclient.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(copies...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", nodeName).WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
}

// get ignores the namespace when Karpenter reads a volume, as an API server does: volumes have none.
func get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, ok := o.(*corev1.PersistentVolume); ok {
		key.Namespace = ""
	}
	return c.Get(ctx, key, o, options...)
}

// add appends objects of one kind.
func add[T client.Object](objects []client.Object, more []T) []client.Object {
	for _, object := range more {
		objects = append(objects, object)
	}
	return objects
}

// fill adds the nodes, their claims and their pods to Karpenter's mirror.
func (c *cluster) fill(ctx context.Context, q *compare.Question) error {
	for i := range q.Nodes {
		n := &q.Nodes[i]
		if n.Claim != nil {
			claim, err := nodeClaim(n.Claim)
			if err != nil {
				return err
			}
			c.state.UpdateNodeClaim(claim)
		}
		if err := c.state.UpdateNode(ctx, n.Node.DeepCopy()); err != nil {
			return fmt.Errorf("update node %s: %w", n.Node.Name, err)
		}
		for _, pod := range n.Pods {
			if err := c.state.UpdatePod(ctx, pod.DeepCopy()); err != nil {
				return fmt.Errorf("update pod %s: %w", compare.Key(pod), err)
			}
		}
	}
	return nil
}

// read translates the results.
func read(answer *compare.Answer, results scheduling.Results) {
	for _, claim := range results.NewNodeClaims {
		m := machine(claim)
		for _, pod := range claim.Pods {
			m.Pods = append(m.Pods, compare.Key(pod))
		}
		answer.Machines = append(answer.Machines, m)
	}
	for _, node := range results.ExistingNodes {
		for _, pod := range node.Pods {
			answer.Existing[compare.Key(pod)] = node.Name()
		}
	}
	for pod, err := range results.PodErrors {
		answer.Unplaced[compare.Key(pod)] = err.Error()
	}
}

// machine is a claim without its pods, the cheapest type first.
func machine(claim *scheduling.NodeClaim) compare.Machine {
	m := compare.Machine{Pool: claim.NodePoolName}
	zones, kinds := map[string]bool{}, map[string]bool{}
	for _, it := range claim.InstanceTypeOptions.OrderByPrice(claim.Requirements) {
		m.Types = append(m.Types, it.Name)
		for _, offering := range it.Offerings.Available().Compatible(claim.Requirements) {
			zones[offering.Zone()], kinds[offering.CapacityType()] = true, true
			if m.Price == 0 || offering.Price < m.Price {
				m.Price = offering.Price
			}
		}
	}
	m.Zones = slices.Sorted(maps.Keys(zones))
	m.CapacityTypes = slices.Sorted(maps.Keys(kinds))
	return m
}
