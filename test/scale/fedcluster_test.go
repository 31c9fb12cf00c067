package scale_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubetypes "k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
	"github.com/tenon-sh/tenon/deploy"
)

const (
	fedCluster = "fed"
	fedRegion  = "us-east-1"
	// fedKey is the worker's access key, which has the permissions of deploy/iam.
	fedKey  = "worker"
	fedType = "m5.xlarge"
	fedArch = "amd64"
	// unplaceable: one in this many pods waits for a node that nobody can sell.
	unplaceable = 101
)

// feeding is a cluster with serving nodes, as its API server and its cloud describe it.
type feeding struct {
	nodes, pods int
	// instances are the machines, with ids and zones.
	instances []ec2sim.Instance
	class     *awsv1.EC2NodeClass
	began     time.Time
}

// newFeeding launches the machines in a simulated EC2 and resolves an EC2NodeClass there.
func newFeeding(t testing.TB, nodes, pods int) (*feeding, *ec2sim.Server) {
	t.Helper()
	texts, err := deploy.WorkerPolicies(deploy.PolicyValues{Partition: "aws", Region: fedRegion, AccountID: "123456789012", Cluster: fedCluster})
	if err != nil {
		t.Fatal(err)
	}
	policies, err := policy.ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := ec2sim.New(ec2sim.Options{Cluster: fedCluster, Policies: ec2sim.Policies{fedKey: policies}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	for name, value := range awsEnvironment(sim.URL()) {
		t.Setenv(name, value)
	}
	f := &feeding{nodes: nodes, pods: pods, began: time.Now().Add(-time.Hour)}
	f.resolveClass(t)
	f.launch(t)
	f.instances = sim.Instances()
	if len(f.instances) != nodes {
		t.Fatalf("%d instances, want %d", len(f.instances), nodes)
	}
	return f, sim
}

func awsEnvironment(endpoint string) map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": fedRegion, "AWS_ACCESS_KEY_ID": fedKey, "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
}

func (f *feeding) resolveClass(t testing.TB) {
	t.Helper()
	provider, err := aws.New(t.Context(), aws.Options{Cluster: fedCluster})
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	tags := map[string]string{"karpenter.sh/discovery": fedCluster}
	f.class = &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class"}, Spec: awsv1.EC2NodeClassSpec{
		Role: "KarpenterNodeRole-" + fedCluster, AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms: []awsv1.SubnetSelectorTerm{{Tags: tags}}, SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: tags}}}}
	resolved, err := provider.ResolveNodeClass(t.Context(), f.class)
	if err != nil {
		t.Fatal(err)
	}
	f.class = resolved.(*awsv1.EC2NodeClass)
}

// launch runs the machines with the tags that launches of earlier hours would have left.
func (f *feeding) launch(t testing.TB) {
	t.Helper()
	// The worker itself has no permission for RunInstances of this kind.
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("administrator", "secret", "")))
	if err != nil {
		t.Fatal(err)
	}
	client := ec2.NewFromConfig(loaded)
	image := f.class.Status.AMIs[slices.IndexFunc(f.class.Status.AMIs, func(image awsv1.AMI) bool {
		return slices.ContainsFunc(image.Requirements, func(r corev1.NodeSelectorRequirement) bool { return slices.Contains(r.Values, fedArch) })
	})]
	var tags []types.Tag
	for key, value := range map[string]string{awsv1.ClusterTagKey(fedCluster): "owned", awsv1.EKSClusterNameTagKey: fedCluster, awsv1.NodeClassTagKey: "default",
		karpv1.NodePoolLabelKey: "default", "tenon.sh/launch-group": "group", "Name": "node", "team": "platform", "cost-center": "1234567890"} {
		tags = append(tags, types.Tag{Key: awssdk.String(key), Value: awssdk.String(value)})
	}
	for left := f.nodes; left > 0; left -= 500 {
		count := int32(min(left, 500))
		if _, err := client.RunInstances(t.Context(), &ec2.RunInstancesInput{ImageId: &image.ID, InstanceType: fedType, MinCount: &count, MaxCount: &count,
			SubnetId:          &f.class.Status.Subnets[(left/500)%len(f.class.Status.Subnets)].ID,
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags}}}); err != nil {
			t.Fatal(err)
		}
	}
}

// resources returns what the API server has.
func (f *feeding) resources() map[string]kind {
	one := func(apiVersion, name string, object metav1.Object) kind {
		return kind{apiVersion: apiVersion, name: name, count: 1, object: func(int, int) metav1.Object { return object }}
	}
	core := func(name string, count int, object func(i, generation int) metav1.Object) kind {
		return kind{apiVersion: "v1", name: name, count: count, object: object}
	}
	pods := core("Pod", f.pods, f.pod)
	pods.churns = f.pods / 5
	return map[string]kind{
		"pods":                   pods,
		"nodes":                  core("Node", f.nodes, f.node),
		"nodeclaims":             {apiVersion: "karpenter.sh/v1", name: "NodeClaim", count: f.nodes, object: f.claim},
		"nodepools":              one("karpenter.sh/v1", "NodePool", f.nodePool()),
		"ec2nodeclasses":         one("karpenter.k8s.aws/v1", "EC2NodeClass", f.class),
		"csinodes":               {apiVersion: "storage.k8s.io/v1", name: "CSINode"},
		"storageclasses":         {apiVersion: "storage.k8s.io/v1", name: "StorageClass"},
		"volumeattachments":      {apiVersion: "storage.k8s.io/v1", name: "VolumeAttachment"},
		"daemonsets":             {apiVersion: "apps/v1", name: "DaemonSet"},
		"poddisruptionbudgets":   {apiVersion: "policy/v1", name: "PodDisruptionBudget"},
		"namespaces":             core("Namespace", 0, nil),
		"limitranges":            core("LimitRange", 0, nil),
		"persistentvolumes":      core("PersistentVolume", 0, nil),
		"persistentvolumeclaims": core("PersistentVolumeClaim", 0, nil),
	}
}

func (f *feeding) nodePool() *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand}},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
	}
	pool.Spec.Disruption = karpv1.Disruption{ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: karpv1.NewNillableDuration(0), Budgets: []karpv1.Budget{{Nodes: "10%"}}}
	for _, kind := range []string{karpv1.ConditionTypeReady, "NodeClassReady", "ValidationSucceeded"} {
		pool.Status.Conditions = append(pool.Status.Conditions, f.condition(kind))
	}
	return pool
}

func (f *feeding) condition(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: metav1.NewTime(f.began)}
}

func (f *feeding) uid(kind string, i int) kubetypes.UID {
	return kubetypes.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", len(kind), i))
}

func (f *feeding) claimName(i int) string { return fmt.Sprintf("default-%05x", i) }

func (f *feeding) nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", i/65536, i/256%256, i%256)
}

func (f *feeding) providerID(i int) string {
	return "aws:///" + f.instances[i].Zone + "/" + f.instances[i].ID
}

// labels returns the labels of a node that Tenon has launched: some thirty.
func (f *feeding) labels(i int) map[string]string {
	labels := map[string]string{
		corev1.LabelHostname: f.nodeName(i), corev1.LabelTopologyZone: f.instances[i].Zone, corev1.LabelInstanceTypeStable: fedType, corev1.LabelArchStable: fedArch,
		corev1.LabelOSStable: "linux", corev1.LabelTopologyRegion: "us-east-1", karpv1.NodePoolLabelKey: "default", karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand,
		karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true",
	}
	for l := range 20 {
		labels[fmt.Sprintf("karpenter.k8s.aws/instance-property-%d", l)] = fmt.Sprint(l * 100)
	}
	return labels
}

func (f *feeding) node(i, _ int) metav1.Object {
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3920m"), corev1.ResourceMemory: resource.MustParse("14Gi"), corev1.ResourcePods: resource.MustParse("58")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.nodeName(i), UID: f.uid("node", i), Labels: f.labels(i), CreationTimestamp: metav1.NewTime(f.began),
		Finalizers: []string{karpv1.TerminationFinalizer}, ManagedFields: managedFields(3),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: f.claimName(i), UID: f.uid("nodeclaim", i)}}},
		Spec:   corev1.NodeSpec{ProviderID: f.providerID(i)},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	for range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{"example.com/some/repository@sha256:" + strings.Repeat("0123456789abcdef", 4), "example.com/some/repository:v1.2.3"}})
	}
	return node
}

func (f *feeding) claim(i, _ int) metav1.Object {
	types := make([]string, 60)
	for t := range types {
		types[t] = fmt.Sprintf("m%d%c.%dxlarge", t%8, 'a'+t%5, 1<<(t%6))
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: f.claimName(i), UID: f.uid("nodeclaim", i), Labels: f.labels(i), CreationTimestamp: metav1.NewTime(f.began),
		Annotations: map[string]string{karpv1.LaunchGroupAnnotationKey: "group"}, Finalizers: []string{karpv1.TerminationFinalizer}, ManagedFields: managedFields(3)},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
			Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: types},
				{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand}}}},
		Status: karpv1.NodeClaimStatus{ProviderID: f.providerID(i), NodeName: f.nodeName(i), ImageID: f.class.Status.AMIs[0].ID,
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3920m"), corev1.ResourceMemory: resource.MustParse("14Gi")}}}
	for _, kind := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, karpv1.ConditionTypeReady, karpv1.ConditionTypeConsolidatable} {
		claim.Status.Conditions = append(claim.Status.Conditions, f.condition(kind))
	}
	return claim
}

// pod returns a pod of one of four hundred Deployments. Its node has hardly any room beside its pods.
func (f *feeding) pod(i, generation int) metav1.Object {
	app := fmt.Sprintf("service-%d", i%400)
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("%s-7d9c8b5f6c-%05x", app, i), UID: f.uid("pod", i),
		Labels:            map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/version": "1.2.3", "pod-template-hash": "7d9c8b5f6c"},
		Annotations:       map[string]string{"controller.kubernetes.io/pod-deletion-cost": fmt.Sprint(generation)},
		CreationTimestamp: metav1.NewTime(f.began), ManagedFields: managedFields(3),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9c8b5f6c", UID: f.uid("replicaset", i%400), Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: f.nodeName(i % f.nodes), Containers: []corev1.Container{{Name: "main", Image: "example.com/" + app + ":v1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(3900*f.nodes/f.pods), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("512Mi")}}}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
			Volumes:     []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.began)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Image: "example.com/" + app, ImageID: strings.Repeat("0123456789abcdef", 4)}}}}
	for v := range 20 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", v), Value: "some-value-of-a-setting"})
	}
	if i%unplaceable == 0 {
		pod.Spec.NodeName, pod.Spec.NodeSelector = "", map[string]string{"example.com/nowhere": "true"}
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	}
	return pod
}

func managedFields(managers int) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for i := range managers {
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("manager-%d", i), Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{},"f:image":{},"f:resources":{}}},"f:dnsPolicy":{},"f:restartPolicy":{}}}`)})
	}
	return entries
}
