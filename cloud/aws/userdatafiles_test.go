package aws

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

var update = flag.Bool("update", false, "write testdata/userdata anew")

// userDataFiles is the directory of the user data that nodeadm validates (tools/nodeadm).
const userDataFiles = "testdata/userdata"

// allKubelet returns a configuration with every kubelet setting of a class.
func allKubelet() *awsv1.KubeletConfiguration {
	signals := map[string]string{"memory.available": "5%", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "pid.available": "3%"}
	return &awsv1.KubeletConfiguration{
		ClusterDNS: []string{"10.100.0.10"}, MaxPods: aws.Int32(40), PodsPerCore: aws.Int32(20),
		SystemReserved: map[string]string{"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "1Gi", "pid": "100"},
		KubeReserved:   map[string]string{"cpu": "200m", "memory": "300Mi", "ephemeral-storage": "2Gi", "pid": "200"},
		EvictionHard:   signals, EvictionSoft: map[string]string{"memory.available": "10%"},
		EvictionSoftGracePeriod:     map[string]metav1.Duration{"memory.available": {Duration: 90 * time.Second}},
		EvictionMaxPodGracePeriod:   aws.Int32(60),
		ImageGCHighThresholdPercent: aws.Int32(85), ImageGCLowThresholdPercent: aws.Int32(80), CPUCFSQuota: aws.Bool(true),
	}
}

func TestAllKubeletHasEverySetting(t *testing.T) {
	t.Parallel()
	settings := reflect.ValueOf(*allKubelet())
	for i := range settings.NumField() {
		if settings.Field(i).IsZero() {
			t.Errorf("%s is not set, and nodeadm does not judge it", settings.Type().Field(i).Name)
		}
	}
}

// TestUserDataFiles checks that the files that nodeadm validates are what nodes get. The classes differ in all that
// affects their user data.
func TestUserDataFiles(t *testing.T) {
	t.Parallel()
	// ownConfig has every field of a NodeConfig, as tools/nodeadm checks.
	const ownConfig = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {name: own}
spec:
  cluster: {name: green, id: "1", enableOutpost: false}
  containerd:
    config: |
      [plugins."io.containerd.grpc.v1.cri".containerd]
      discard_unpacked_layers = false
    baseRuntimeSpec: {process: {rlimits: [{type: RLIMIT_NOFILE, soft: 1024, hard: 1024}]}}
  featureGates:
    FastImagePull: true
  instance:
    localStorage: {strategy: Mount, mountPath: /mnt/disks, disabledMounts: [PodLogs]}
    environment: {default: {NO_PROXY: localhost}}
    network: {nameservers: [10.0.0.2], domains: [example.com]}
  kubelet:
    config: {maxPods: 5, shutdownGracePeriod: 30s, featureGates: {DynamicResourceAllocation: true}}
    flags: [--v=4, "--node-labels=own=yes"]
    maxPodsExpression: max_pods
`
	ipv4 := clusterFacts{name: "blue", endpoint: "https://0123.gr7.us-east-1.eks.amazonaws.com", authority: "Q0E=", serviceCIDR: "10.100.0.0/16"}
	ipv6 := ipv4
	ipv6.serviceCIDR = "fd30:1c53:5f8a::/108"
	raid0 := awsv1.InstanceStorePolicyRAID0
	cases := map[string]struct {
		spec    awsv1.EC2NodeClassSpec
		cluster clusterFacts
		labels  map[string]string
		taints  []corev1.Taint
		why     string
	}{
		"plain":   {cluster: ipv4, why: "nothing but what a node needs to join"},
		"kubelet": {spec: awsv1.EC2NodeClassSpec{Kubelet: allKubelet()}, cluster: ipv4, why: "every setting"},
		"raid0":   {spec: awsv1.EC2NodeClassSpec{InstanceStorePolicy: &raid0}, cluster: ipv4, why: "instance store for pods"},
		"ipv6":    {cluster: ipv6, why: "services with IPv6 addresses"},
		"isolated": {
			cluster: clusterFacts{name: "blue", endpoint: "https://10.0.3.7", authority: "Q0E=", serviceCIDR: "172.20.0.0/16"},
			why:     "a cluster without a public address, its facts from flags",
		},
		"labels-and-taints": {
			cluster: ipv4,
			labels: map[string]string{
				"team": "a", "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot", "kubernetes.io/arch": "arm64", "example.com/empty": "",
			},
			taints: []corev1.Taint{
				{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
				{Key: "example.com/starting", Effect: corev1.TaintEffectNoExecute}, {Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule},
			},
			why: "what the NodePool says of nodes",
		},
		"script": {
			spec: awsv1.EC2NodeClassSpec{UserData: aws.String("#!/bin/bash\necho \"hello\"\n")}, cluster: ipv4, why: "a script of the user's",
		},
		"own-nodeconfig": {spec: awsv1.EC2NodeClassSpec{UserData: aws.String(ownConfig)}, cluster: ipv4, why: "nodeadm merges the user's first"},
		"own-mime": {
			spec: awsv1.EC2NodeClassSpec{
				UserData: aws.String("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"BOUNDARY\"\n\n--BOUNDARY\nContent-Type: application/node.eks.aws\n\n" +
					ownConfig + "\n--BOUNDARY\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/sh\necho\n" +
					"--BOUNDARY\nContent-Type: text/cloud-config\nContent-Transfer-Encoding: base64\n\nI2Nsb3VkLWNvbmZpZwo=\n--BOUNDARY--\n"),
				Kubelet: allKubelet(), InstanceStorePolicy: &raid0,
			},
			cluster: ipv6, labels: map[string]string{"team": "a"}, why: "all at once, in parts of the user's",
		},
	}
	for name, tc := range cases {
		class := &awsv1.EC2NodeClass{Spec: tc.spec}
		class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
		got, err := userData(tc.cluster, class, tc.labels, tc.taints, "ami-1", 29)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		file := filepath.Join(userDataFiles, name+".mime")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil { // part of the repository
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (%s) is stale, run go test ./cloud/aws -run UserDataFiles -update (-want +got):\n%s", file, tc.why, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join(userDataFiles, "*"))
	if err != nil || len(files) != len(cases) {
		t.Errorf("%d files of %d cases, %v", len(files), len(cases), err)
	}
}
