package kwok

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

const (
	// NodeLabel, with the value NodeValue, is the label and the annotation by which kwok knows its Nodes.
	NodeLabel = "kwok.x-k8s.io/node"
	// NodeValue is the value of both.
	NodeValue = "fake"

	// providerPrefix begins the provider ids; the name of the Node follows.
	providerPrefix = "kwok://"

	// clusterLabel names the cluster that owns a Node, and groupLabel its launch group.
	clusterLabel = Group + "/cluster"
	groupLabel   = Group + "/launch-group"
	// requestAnnotation has the hash of the request that a Node was launched by, launchedAnnotation and
	// terminatedAnnotation the times at which it was launched and terminated, and tagsAnnotation its tags as JSON.
	requestAnnotation    = Group + "/request"
	launchedAnnotation   = Group + "/launched-at"
	terminatedAnnotation = Group + "/terminated-at"
	tagsAnnotation       = Group + "/tags"
	// readyAnnotation is the time at which the simulated kubelet of a laboratory says that it is Ready (lab/kwok.yaml).
	readyAnnotation = "tenon.sh/ready-at"

	// image is what all nodes run.
	image = "kwok"

	// The states of instances.
	stateRunning    = "running"
	stateTerminated = "terminated"
)

// details is the provider's part of a launch request.
type details struct {
	// Offerings are those to choose from, the preferred first.
	Offerings []priced          `json:"offerings"`
	Labels    map[string]string `json:"labels,omitempty"`
	Taints    []corev1.Taint    `json:"taints,omitempty"`
	Tags      map[string]string `json:"tags"`
	NodePool  string            `json:"nodePool,omitempty"`
	// Delay is how long after the launch nodes become Ready.
	Delay time.Duration `json:"delay,omitempty"`
}

// priced is an offering with its price when the request was prepared.
type priced struct {
	cloud.OfferingKey
	Price float64 `json:"price"`
}

// newNode returns the Node of one instance. Like a kubelet's, it keeps pods away until it is registered.
func newNode(name, cluster, group, request string, d *details, typ *cloud.InstanceType, offering cloud.OfferingKey, now time.Time) (*corev1.Node, error) {
	labels := map[string]string{}
	maps.Copy(labels, d.Labels)
	maps.Copy(labels, typ.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: offering.Zone, karpv1.CapacityTypeLabelKey: offering.CapacityType,
		NodeLabel: NodeValue, clusterLabel: cluster, groupLabel: group,
	})
	if d.NodePool != "" {
		labels[karpv1.NodePoolLabelKey] = d.NodePool
	}
	tags, err := json.Marshal(d.Tags)
	if err != nil {
		return nil, fmt.Errorf("encode the tags of %s: %w", name, err)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels,
			Annotations: map[string]string{
				NodeLabel: NodeValue, requestAnnotation: request, tagsAnnotation: string(tags), launchedAnnotation: now.UTC().Format(time.RFC3339),
				readyAnnotation: now.Add(d.Delay).UTC().Format(time.RFC3339),
			},
		},
		Spec: corev1.NodeSpec{
			ProviderID: providerPrefix + name,
			Taints: append([]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
				{Key: karpv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}}, d.Taints...),
		},
		Status: corev1.NodeStatus{
			Capacity: typ.Capacity, Allocatable: typ.Allocatable, Phase: corev1.NodePending,
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: typ.Labels[corev1.LabelOSStable], Architecture: typ.Labels[corev1.LabelArchStable]},
		},
	}, nil
}

// instanceOf returns the instance that a Node is.
func instanceOf(node *corev1.Node) cloud.Instance {
	instance := cloud.Instance{
		ID: node.Name, ProviderID: node.Spec.ProviderID, InstanceType: node.Labels[corev1.LabelInstanceTypeStable], Zone: node.Labels[corev1.LabelTopologyZone],
		CapacityType: node.Labels[karpv1.CapacityTypeLabelKey], Image: image, State: stateRunning, LaunchGroup: node.Labels[groupLabel],
		NodePool: node.Labels[karpv1.NodePoolLabelKey], Tags: tagsOf(node),
	}
	if terminated(node) {
		instance.State = stateTerminated
	}
	instance.LaunchTime, _ = time.Parse(time.RFC3339, node.Annotations[launchedAnnotation]) // we wrote it
	return instance
}

// tagsOf returns the tags of a Node. Tags that somebody has made unreadable count as none.
func tagsOf(node *corev1.Node) map[string]string {
	tags := map[string]string{}
	_ = json.Unmarshal([]byte(node.Annotations[tagsAnnotation]), &tags)
	return tags
}

func terminated(node *corev1.Node) bool { return node.Annotations[terminatedAnnotation] != "" }
