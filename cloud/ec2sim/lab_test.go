package ec2sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/lab/labtest"
)

// TestNodeInARealCluster joins instances to a real API server, where kwok must make them Ready, and then terminates them.
func TestNodeInARealCluster(t *testing.T) {
	t.Parallel()
	config := labtest.Config(t, labtest.Start(t, lab.Options{Components: lab.ControlPlane(), Bare: true}))
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	a := startJoining(t, client, ec2sim.Options{ReadyDelay: time.Second})
	ids := a.launchJoining(t, 20, "https://api")
	await(t, "all nodes are ready, and tainted only by their user data", func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: ec2sim.SimulatedLabel + "=true"})
		if err != nil {
			return false, err
		}
		ready := 0
		for _, n := range list.Items {
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 1 {
					ready++
				}
			}
			if memory := n.Status.Allocatable.Memory().Value(); memory < 6<<30 || memory > 8<<30 {
				t.Errorf("node %s has %d bytes allocatable", n.Name, memory)
			}
		}
		return ready == len(ids), nil
	})
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
		t.Fatal(err)
	}
	await(t, "their kubelets have fallen silent", a.allNodes("stopped"))
	list, err := client.CoreV1().Nodes().List(ctx(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		if _, alive := n.Labels[ec2sim.SimulatedLabel]; alive {
			t.Errorf("node %s is still kept alive", n.Name)
		}
	}
	if len(list.Items) != len(ids) {
		t.Errorf("%d nodes are left, want all %d", len(list.Items), len(ids))
	}
}
