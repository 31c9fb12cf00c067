package scheduling_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

const (
	// deviceDriver publishes the devices of nodes with the label driverKey.
	deviceDriver = "gpu.example.com"
	driverKey    = "gpu.example.com/driver"
)

// deviceModels are the devices that the driver finds on machines, by instance type.
var deviceModels = map[string][]string{"m5.large": {"small", "small"}, "m5.xlarge": {"small", "large"}}

// devicesOn returns the devices that the driver finds on a machine.
func devicesOn(instanceType string) []resourcev1.Device {
	var devices []resourcev1.Device
	for i, model := range deviceModels[instanceType] {
		devices = append(devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}}})
	}
	return devices
}

// publish acts as the driver until the test ends: it publishes the devices of a node once the node is Ready.
func publish(t *testing.T, kube client.Client, v *view) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	nodes, err := v.GetInformer(ctx, &corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan *corev1.Node, 1000)
	take := func(object any) {
		node, ok := object.(*corev1.Node)
		if !ok || node.Labels[driverKey] == "" {
			return
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready <- node
			}
		}
	}
	if _, err := nodes.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, object any) { take(object) }}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case node := <-ready:
				s := &resourcev1.ResourceSlice{
					ObjectMeta: metav1.ObjectMeta{Name: node.Name + "-gpu",
						OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}},
					Spec: resourcev1.ResourceSliceSpec{Driver: deviceDriver, NodeName: &node.Name, Devices: devicesOn(node.Labels[typeKey]),
						Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1}},
				}
				if err := client.IgnoreAlreadyExists(kube.Create(ctx, s)); err != nil && ctx.Err() == nil {
					t.Errorf("publish the devices of %s: %v", node.Name, err)
				}
			}
		}
	}()
}

// deviceClass returns a DeviceClass for the driver's devices.
func deviceClass(name string) string {
	return fmt.Sprintf("\n---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: %s}, spec: {selectors: [{cel: {expression: 'device.driver == \"%s\"'}}]}}", name, deviceDriver)
}

// devicesSpec returns the spec of a claim to one device, of a model if one is named.
func devicesSpec(class, model string) string {
	selectors := ""
	if model != "" {
		selectors = fmt.Sprintf(`, selectors: [{cel: {expression: 'device.attributes["%s"].model == "%s"'}}]`, deviceDriver, model)
	}
	return fmt.Sprintf("{devices: {requests: [{name: gpu, exactly: {deviceClassName: %s%s}}]}}", class, selectors)
}

// claimTemplate returns a ResourceClaimTemplate, resourceClaim a ResourceClaim, both named gpu.
func claimTemplate(class, model string) string {
	return "\n---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: gpu}, spec: {spec: " + devicesSpec(class, model) + "}}"
}

func resourceClaim(class, model string) string {
	return "\n---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: gpu}, spec: " + devicesSpec(class, model) + "}"
}

// deviceOverlay returns a NodeOverlay that says what the driver will find on the machines of a scenario's pool.
func deviceOverlay(scene, instanceType string) string {
	var devices []string
	for i, model := range deviceModels[instanceType] {
		devices = append(devices, fmt.Sprintf("{name: gpu-%d, attributes: {model: {string: %s}}}", i, model))
	}
	return fmt.Sprintf(`
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: %[1]s-%[2]s
  annotations:
    %[3]s: "[{driver: %[4]s, devices: [%[5]s]}]"
spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [%[1]s]}, {key: node.kubernetes.io/instance-type, operator: In, values: [%[2]s]}]}`,
		scene, instanceType, karpv1alpha1.DeviceTemplatesAnnotationKey, deviceDriver, strings.Join(devices, ", "))
}

// deviceScenarios are about pods with ResourceClaims.
func deviceScenarios() []scenario {
	const tiny = "cpu: 100m, memory: 128Mi"
	fromTemplate := []string{"resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]"}
	byName := []string{"resourceClaims: [{name: gpu, resourceClaimName: gpu}]"}
	pools := func(types ...string) []pool { return []pool{{types: types, labels: driverKey + `: "yes"`}} }
	overlaid := func(scene string, types ...string) step {
		objects := deviceClass(scene)
		for _, instanceType := range types {
			objects += deviceOverlay(scene, instanceType)
		}
		return step{objects: objects, then: func(p *play) {
			for _, instanceType := range types {
				p.awaitOverlay(scene+"-"+instanceType, "True")
			}
		}}
	}
	return []scenario{{
		name: "devices-each", rule: "pods with claims from a template get as many nodes as their devices need",
		pools: pools("m5.large"),
		steps: []step{overlaid("devices-each", "m5.large"),
			{objects: claimTemplate("devices-each", ""), pods: []workload{{name: "web", count: 3, requests: tiny, spec: fromTemplate}}}},
		expect: []expectation{nodes(2), spread("web", hostKey, 2, 1), namesDriver},
	}, {
		name: "devices-selector", rule: "a CEL selector decides which instance type is bought",
		pools: pools("m5.large", "m5.xlarge"),
		steps: []step{overlaid("devices-selector", "m5.large", "m5.xlarge"),
			{objects: claimTemplate("devices-selector", "large"), pods: []workload{{name: "web", count: 1, requests: tiny, spec: fromTemplate}}}},
		expect: []expectation{nodes(1), on("web", typeKey, "m5.xlarge"), namesDriver},
	}, {
		name: "devices-shared", rule: "pods that share a claim are planned for one node, which has to hold them all",
		pools: pools("m5.large", "m5.xlarge"),
		steps: []step{overlaid("devices-shared", "m5.large", "m5.xlarge"),
			{objects: resourceClaim("devices-shared", ""), pods: []workload{{name: "web", count: 3, requests: half, spec: byName}}}},
		expect: []expectation{nodes(1), on("web", typeKey, "m5.xlarge"), together(hostKey, "web")},
	}, {
		name: "devices-extended", rule: "a resource that a DeviceClass provides is claimed for the pods that request it",
		pools: pools("m5.large"),
		steps: []step{providing(overlaid("devices-extended", "m5.large"), "extended.example.com/gpu"),
			{pods: []workload{{name: "web", count: 3, requests: tiny, limits: "extended.example.com/gpu: 1"}}}},
		expect: []expectation{nodes(2), spread("web", hostKey, 2, 1), namesDriver},
	}, {
		name: "devices-learnt", rule: "what a driver published for a node tells what the next one will have", plans: 2,
		pools: pools("m5.large"),
		steps: []step{
			{objects: deviceClass("devices-learnt"), pods: []workload{{name: "plain", count: 1, requests: tiny}}, then: (*play).awaitSlices},
			{objects: claimTemplate("devices-learnt", "small"), pods: []workload{{name: "web", count: 3, requests: tiny, spec: fromTemplate}}},
		},
		expect: []expectation{nodes(2), spread("web", hostKey, 2, 1)},
	}}
}

// providing has the DeviceClass of a step provide an extended resource.
func providing(of step, resource string) step {
	of.objects = strings.Replace(of.objects, "spec: {selectors", "spec: {extendedResourceName: "+resource+", selectors", 1)
	return of
}

// awaitSlices waits until the driver has published the devices of a node of the scenario.
func (p *play) awaitSlices() {
	p.T.Helper()
	p.Await("published devices", settleWithin, func() (bool, string) {
		var slices resourcev1.ResourceSliceList
		if err := p.List(p.Context(), &slices); err != nil {
			return false, err.Error()
		}
		o := p.outcome()
		for i := range slices.Items {
			if name := slices.Items[i].Spec.NodeName; name != nil && o.node[*name] != nil {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d ResourceSlices, %d nodes", len(slices.Items), len(o.nodes))
	})
}

// namesDriver expects every claim to name the driver that has to publish its devices before it is initialized.
func namesDriver(o *outcome) error {
	for i := range o.claimed {
		if got := o.claimed[i].Annotations[karpv1.DRADriversAnnotationKey]; got != deviceDriver {
			return fmt.Errorf("NodeClaim %s names the drivers %q, want %s", o.claimed[i].Name, got, deviceDriver)
		}
	}
	return nil
}
