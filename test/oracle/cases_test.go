package oracle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/oracle"
	"github.com/tenon-sh/tenon/test/world"
)

// scene is what both controllers get at a time: manifests, and for each NodePool in them one pod that needs a node.
type scene struct {
	name      string
	manifests string
	// pod is the additional lines of the pods' specification. plain pods tolerate no taints, so they are bound only once a node
	// has registered.
	pod   string
	plain bool
	// reserve is a capacity reservation, and image an image of the account, that exist beforehand.
	reserve *ec2sim.Reservation
	image   *ec2sim.Image
	// placement is a placement group that exists beforehand.
	placement *ec2.CreatePlacementGroupInput
	// profile is an instance profile of somebody else that exists beforehand.
	profile string
	// short says that the scene is part of the short form.
	short bool
}

// providerModule is the module whose examples are played; tools/karpenter pins its version.
const providerModule = "github.com/aws/karpenter-provider-aws"

// notPlayed are the examples that are left out, with the reason.
var notPlayed = map[string]string{
	"custom-family":            "its user data calls a bootstrap.sh for a cluster of another name, so its nodes do not join",
	"custom-family-with-alias": "as custom-family",
	"windows-custom-userdata":  "its NodePool names a group that does not exist, and is refused",
}

// standIns replaces what the examples leave to the reader, and a release of AL2023 that is older than the simulated account.
var standIns = strings.NewReplacer("al2023@v20240625", "al2023@v20261102", "ami-123", "${IMAGE}")

// exampleImages are the images of the account that examples select by their ids.
var exampleImages = map[string]*ec2sim.Image{"al2-custom-ami": ownAL2}

// ownAL2 is an image of Amazon Linux 2: Amazon has none for the laboratory's version of Kubernetes.
var ownAL2 = &ec2sim.Image{Name: "own AL2", Arch: "x86_64", Family: "AL2"}

// examples returns the provider's own manifests, read from the Go command's module cache.
func examples(t *testing.T) []scene {
	t.Helper()
	download := exec.Command("go", "mod", "download", "-json", providerModule)
	download.Dir = filepath.Join("..", "..", "tools", "karpenter")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("find the module of Karpenter's provider: %v", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(module.Dir, "examples", "v1", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples in %s: %v", module.Dir, err)
	}
	var scenes []scene
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if notPlayed[name] != "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifests := standIns.Replace(string(text))
		scenes = append(scenes, scene{name: "example " + name, manifests: manifests, image: exampleImages[name], short: slices.Contains([]string{"al2023-custom-userdata"}, name)})
	}
	return scenes
}

// pool returns a NodePool of the class ours, for one instance type.
func pool(instanceType, capacityType string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: ours}
spec:
  template:
    metadata: {labels: {team: search}, annotations: {example.com/owner: search}}
    spec:
      taints: [{key: example.com/ours, value: "yes", effect: NoSchedule}]
      startupTaints: [{key: example.com/starting, effect: NoExecute}]
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [%s]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: ours}
---
`, instanceType, capacityType)
}

// byLabel returns a NodePool for each label of the table that has no other scene: it requires the label's value.
func byLabel() string {
	var all strings.Builder
	for _, label := range oracle.Labels {
		if label.Scene != oracle.LabelsScene {
			continue
		}
		fmt.Fprintf(&all, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    spec:
      requirements:
      - {key: %s, operator: In, values: [%q]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: ours}
---
`, label.Name(), label.Key, label.Value)
	}
	return all.String()
}

// demanding returns the NodePool ours with one more requirement.
func demanding(pool, requirement string) string {
	const before = "      nodeClassRef:"
	return strings.Replace(pool, before, "      - "+requirement+"\n"+before, 1)
}

// class returns the EC2NodeClass ours in the cluster's subnets and security groups, with further fields, each line indented
// by two.
func class(fields string) string {
	const byTags = `[{tags: {karpenter.sh/discovery: "${CLUSTER_NAME}"}}]`
	return classIn(byTags, byTags, fields)
}

// classIn returns the EC2NodeClass ours in the subnets and security groups that the terms select.
func classIn(subnets, groups, fields string) string {
	return `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: ours}
spec:
  subnetSelectorTerms: ` + subnets + `
  securityGroupSelectorTerms: ` + groups + `
` + fields
}

// nodeRole is the role of nodes.
const nodeRole = "KarpenterNodeRole-${CLUSTER_NAME}"

// Lines that most of these classes have.
const (
	// deploy/iam allows the worker to pass this role to instances.
	role         = "  role: " + nodeRole + "\n"
	al2023       = "  amiSelectorTerms: [{alias: al2023@latest}]\n"
	bottlerocket = "  amiSelectorTerms: [{alias: bottlerocket@latest}]\n"
	windows      = "  amiSelectorTerms: [{alias: windows2022@latest}]\n"
	// imageByName is not an alias, so the class must set its amiFamily.
	imageByName = "  amiSelectorTerms: [{name: amazon-eks-node-al2023-x86_64-standard-1.3*-v20261102, owner: amazon}]\n"
)

// everyField has every field of an EC2NodeClass that is compatible with all the others.
const everyField = `
  tags: {example.com/team: search, Name: searcher}
  associatePublicIPAddress: false
  ipPrefixCount: 2
  detailedMonitoring: true
  instanceStorePolicy: RAID0
  context: example-context
  connectionTracking: {tcpEstablishedTimeout: 600, udpStreamTimeout: 120, udpTimeout: 45}
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: optional}
  blockDeviceMappings:
  - deviceName: /dev/xvda
    rootVolume: true
    ebs: {volumeSize: 40Gi, volumeType: gp3, iops: 4000, throughput: 200, encrypted: true, kmsKeyID: "1234abcd-12ab-34cd-56ef-1234567890ab", deleteOnTermination: true}
  - deviceName: /dev/xvdb
    ebs: {volumeSize: 10Gi, volumeType: io2, iops: 500, deleteOnTermination: false}
  kubelet:
    clusterDNS: [10.96.0.10]
    maxPods: 42
    podsPerCore: 20
    cpuCFSQuota: true
    kubeReserved: {cpu: 200m, memory: 300Mi, ephemeral-storage: 2Gi}
    systemReserved: {cpu: 100m, memory: 100Mi}
    evictionHard: {memory.available: 5%, nodefs.available: 10%}
    evictionSoft: {memory.available: 500Mi}
    evictionSoftGracePeriod: {memory.available: 1m}
    evictionMaxPodGracePeriod: 30
    imageGCHighThresholdPercent: 80
    imageGCLowThresholdPercent: 70
  userData: |
    #!/bin/bash
    echo "before the node joins"
`

// everyFieldOf is everyField for a family that cannot have all of it.
func everyFieldOf(family string) string {
	fields, _, _ := strings.Cut(everyField, "  userData: |\n")
	switch family {
	case "Bottlerocket":
		fields = strings.Replace(fields, "    podsPerCore: 20\n", "", 1) +
			"  userData: |\n    [settings]\n    motd = \"hello\"\n    [settings.kubernetes]\n    kube-api-qps = 30\n    node-labels = {own = \"yes\"}\n"
	case "Windows":
		fields = strings.Replace(fields, "  instanceStorePolicy: RAID0\n", "", 1) + "  userData: |\n    Write-Host \"it's mine\"\n"
	}
	return fields
}

// ours returns scenes for what the examples leave out.
func ours() []scene {
	nodeConfig := "  userData: |\n    apiVersion: node.eks.aws/v1alpha1\n    kind: NodeConfig\n    spec:\n      kubelet:\n        config: {shutdownGracePeriod: 30s}\n"
	reservations := func(term string) string {
		return role + al2023 + "  capacityReservationSelectorTerms: [" + term + "]\n"
	}
	targeted := &ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 2, Targeted: true, Tags: map[string]string{"for": "oracle"}}
	open := &ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 2}
	interruptible := &ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 2, Targeted: true, Interruptible: true}
	block := &ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 2, Block: true, Duration: ec2sim.Duration(24 * time.Hour)}
	images := func(term string) string { return role + "  amiFamily: AL2023\n  amiSelectorTerms: [" + term + "]\n" }
	// Both controllers remember groups by name for a while, so each scene's has its own.
	group := func(name string, strategy types.PlacementStrategy, partitions int32) *ec2.CreatePlacementGroupInput {
		in := &ec2.CreatePlacementGroupInput{GroupName: &name, Strategy: strategy}
		if partitions > 0 {
			in.PartitionCount = &partitions
		}
		return in
	}
	placed := func(selector string) string {
		return class(role + al2023 + "  placementGroupSelector: " + selector + "\n")
	}
	const placedByID = `{id: "${PLACEMENT_GROUP}"}`
	own := &ec2sim.Image{Name: "own", Arch: "x86_64", Tags: map[string]string{"for": "oracle"}}
	return []scene{
		{name: "every field", manifests: pool("m5d.large", "on-demand") + class(role+al2023+everyField), short: true},
		{name: "spot of one type", manifests: pool("m5.large", "spot") + class(role+al2023), short: true},
		{name: "own profile", manifests: pool("m5.large", "on-demand") + class("  instanceProfile: their-profile\n"+al2023), profile: "their-profile"},
		{name: "user data is a NodeConfig", manifests: pool("m5.large", "on-demand") + class(role+al2023+nodeConfig)},
		{name: "image by name", manifests: pool("m5.large", "on-demand") +
			class(role+"  amiFamily: AL2023\n"+imageByName)},
		{name: "image by parameter", manifests: pool("m5.large", "on-demand") + class(images(`{ssmParameter: "/aws/service/eks/optimized-ami/${KUBERNETES}/amazon-linux-2023/x86_64/standard/recommended/image_id"}`))},
		{name: "image by id", manifests: pool("m5.large", "on-demand") + class(images(`{id: "${IMAGE}"}`)), image: own},
		{name: "image by tags", manifests: pool("m5.large", "on-demand") + class(images("{tags: {for: oracle}, owner: self}")), image: own},
		{name: "subnet and security group by id", manifests: pool("m5.large", "on-demand") + classIn(`[{id: "${SUBNET}"}]`, `[{id: "${GROUP}"}]`, role+al2023)},
		{name: "security group by name", manifests: pool("m5.large", "on-demand") + classIn(`[{id: "${SUBNET}"}]`, `[{name: "${GROUP_NAME}"}]`, role+al2023)},
		{name: "volume of a snapshot", manifests: pool("m5.large", "on-demand") + class(role+al2023+`  blockDeviceMappings:
  - {deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 30Gi, volumeType: gp3}}
  - {deviceName: /dev/xvdb, ebs: {snapshotID: snap-0123456789abcdef0, volumeInitializationRate: 150, volumeSize: 20Gi, volumeType: gp3}}
`)},
		{name: "nested virtualization", manifests: pool("m8i.large", "on-demand") + class(role+al2023+"  cpuOptions: {nestedVirtualization: enabled}\n")},
		{name: "reserved", manifests: pool("m5.large", "reserved") + class(reservations("{tags: {for: oracle}}")), reserve: targeted, short: true},
		{name: "on demand beside reservations", manifests: pool("m5.large", "on-demand") + class(reservations("{tags: {for: oracle}}")), reserve: targeted},
		{name: "reservation by id", manifests: pool("m5.large", "reserved") + class(reservations(`{id: "${RESERVATION}"}`)), reserve: targeted},
		{name: "open reservation by owner and criteria", manifests: pool("m5.large", "reserved") + class(reservations(`{ownerID: "123456789012", instanceMatchCriteria: open}`)), reserve: open},
		{name: "interruptible reservation", manifests: pool("m5.large", "reserved") + class(reservations(`{id: "${RESERVATION}"}`)), reserve: interruptible},
		{name: "capacity block", manifests: pool("m5.large", "reserved") + class(reservations(`{id: "${RESERVATION}"}`)), reserve: block},
		{name: "EFA", manifests: pool("c5n.18xlarge", "on-demand") + class(role+al2023), pod: `vpc.amazonaws.com/efa: "1"`},
		{name: "several network cards", manifests: pool("p4d.24xlarge", "on-demand") + class(role+al2023+`  networkInterfaces:
  - {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}
  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}
  - {networkCardIndex: 2, deviceIndex: 1, interfaceType: interface}
`)},
		{name: "AL2, every field", manifests: pool("m5d.large", "on-demand") + class(role+byID("AL2")+everyField), image: ownAL2},
		{name: "AL2, spot", manifests: pool("m5.large", "spot") + class(role+byID("AL2")), image: ownAL2, short: true},
		{name: "Bottlerocket, every field", manifests: pool("m5d.large", "on-demand") + class(role+bottlerocket+everyFieldOf("Bottlerocket"))},
		{name: "Bottlerocket, spot", manifests: pool("m5.large", "spot") + class(role+bottlerocket), short: true},
		{name: "Bottlerocket, pinned", manifests: pool("m6g.large", "on-demand") + class(role+"  amiSelectorTerms: [{alias: bottlerocket@v1.50.0}]\n  instanceStorePolicy: RAID0\n")},
		{name: "Windows, every field", manifests: pool("m5d.large", "on-demand") + class(role+windows+everyFieldOf("Windows"))},
		{name: "Windows, spot", manifests: pool("m5.large", "spot") + class(role+windows), pod: `vpc.amazonaws.com/PrivateIPv4Address: "1"`, short: true},
		{name: "EFA beside connection tracking and a public address", manifests: pool("c5n.18xlarge", "on-demand") +
			class(role+al2023+"  associatePublicIPAddress: false\n  connectionTracking: {tcpEstablishedTimeout: 600}\n"), pod: `vpc.amazonaws.com/efa: "1"`},
		{name: "several network cards, with prefixes and connection tracking", manifests: pool("c6in.32xlarge", "on-demand") + class(role+al2023+`  ipPrefixCount: 1
  connectionTracking: {udpStreamTimeout: 90, udpTimeout: 40}
  networkInterfaces:
  - {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}
  - {networkCardIndex: 0, deviceIndex: 1, interfaceType: efa-only}
  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: interface}
`)},
		{name: "no nested virtualization", manifests: pool("m5.large", "on-demand") + class(role+al2023+"  cpuOptions: {nestedVirtualization: disabled}\n")},
		{name: "dedicated tenancy", manifests: demanding(pool("m5.large", "on-demand"), "{key: karpenter.k8s.aws/instance-tenancy, operator: In, values: [dedicated]}") +
			class(role+al2023)},
		{name: "either tenancy", manifests: demanding(pool("m5.large", "spot"), "{key: karpenter.k8s.aws/instance-tenancy, operator: In, values: [dedicated, default]}") +
			class(role+al2023)},
		{name: "cluster placement group by name", manifests: pool("m5.large", "on-demand") + placed("{name: near}"), placement: group("near", types.PlacementStrategyCluster, 0), short: true},
		{name: "spread placement group by id", manifests: pool("m5.large", "spot") + placed(placedByID), placement: group("apart", types.PlacementStrategySpread, 0)},
		{name: "partition placement group by name", manifests: pool("m5.large", "on-demand") + placed("{name: parts}"), placement: group("parts", types.PlacementStrategyPartition, 3)},
		{name: "partition placement group by id, in one partition", manifests: demanding(pool("m5.large", "on-demand"),
			`{key: karpenter.k8s.aws/placement-group-partition, operator: In, values: ["2"]}`) + placed(placedByID), placement: group("other-parts", types.PlacementStrategyPartition, 3)},
		{name: "spread placement group by its label", manifests: demanding(pool("m5.large", "on-demand"),
			`{key: karpenter.k8s.aws/placement-group-id, operator: In, values: ["${PLACEMENT_GROUP}"]}`) + placed("{name: labelled}"), placement: group("labelled", types.PlacementStrategySpread, 0)},
		{name: oracle.LabelsScene, manifests: byLabel() + class(role+al2023), plain: true},
		{name: "Windows by its labels", manifests: demanding(demanding(pool("m5.large", "on-demand"), "{key: kubernetes.io/os, operator: In, values: [windows]}"),
			"{key: node.kubernetes.io/windows-build, operator: In, values: [10.0.20348]}") + class(role+windows)},
		{name: "reservation by its labels", manifests: demanding(demanding(demanding(pool("m5.large", "reserved"),
			`{key: karpenter.k8s.aws/capacity-reservation-id, operator: In, values: ["${RESERVATION}"]}`),
			"{key: karpenter.k8s.aws/capacity-reservation-type, operator: In, values: [default]}"),
			`{key: karpenter.k8s.aws/capacity-reservation-interruptible, operator: In, values: ["false"]}`) + class(reservations("{tags: {for: oracle}}")), reserve: targeted},
		{name: "Custom family", manifests: pool("m5.large", "on-demand") + class(role+"  amiFamily: Custom\n"+imageByName+customUserData)},
	}
}

// byID returns the lines of a class of a family that selects the scene's image by its id.
func byID(family string) string {
	return "  amiFamily: " + family + "\n  amiSelectorTerms: [{id: \"${IMAGE}\"}]\n"
}

// oursIPv6 returns scenes for an IPv6 cluster.
func oursIPv6() []scene {
	return []scene{
		{name: "IPv6", manifests: pool("m5.large", "on-demand") + class(role+al2023)},
		{name: "IPv6, AL2", manifests: pool("m5.large", "on-demand") + class(role+byID("AL2")), image: ownAL2},
		{name: "IPv6, Bottlerocket", manifests: pool("m5.large", "on-demand") + class(role+bottlerocket)},
		{name: "IPv6, EFA", manifests: pool("c5n.18xlarge", "on-demand") + class(role+al2023), pod: `vpc.amazonaws.com/efa: "1"`},
		{name: "IPv6, everything about the network", manifests: pool("m5.large", "on-demand") + class(role+al2023+`  associatePublicIPAddress: false
  ipPrefixCount: 2
  connectionTracking: {udpTimeout: 45}
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: enabled, httpPutResponseHopLimit: 2, httpTokens: required}
  kubelet: {clusterDNS: ["fd5e:7e00:0:a::a"]}
`)},
		{name: "IPv6 with prefixes and many pods", manifests: pool("m5.large", "spot") + class(role+al2023+"  ipPrefixCount: 1\n  kubelet: {maxPods: 110}\n")},
	}
}

// dns returns the service of the cluster's DNS, with the address that EKS gives it. Karpenter gives it to nodes, and
// recognizes an IPv6 cluster by it.
func dns(ipv6 bool) string {
	family, address := "IPv4", "10.96.0.10"
	if ipv6 {
		family, address = "IPv6", "fd5e:7e00:0:a::a"
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {namespace: kube-system, name: kube-dns}
spec: {ipFamilies: [%s], ipFamilyPolicy: SingleStack, clusterIP: %q, ports: [{name: dns, port: 53, protocol: UDP}]}
`, family, address)
}

// customUserData is all the configuration that a node of the Custom family gets.
const customUserData = `  userData: |
    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      cluster:
        name: ${CLUSTER_NAME}
        apiServerEndpoint: ${CLUSTER_ENDPOINT}
        certificateAuthority: ${CLUSTER_CA}
        cidr: 10.96.0.0/16
      kubelet:
        config: {maxPods: 29, clusterDNS: [10.96.0.10]}
        flags: ["--node-labels=team=search", "--register-with-taints=karpenter.sh/unregistered:NoExecute,example.com/ours=yes:NoSchedule,example.com/starting:NoExecute"]
`

// pods returns a pod for each NodePool of the manifests, which only that pool's nodes can run, and the names of the
// NodePools and EC2NodeClasses.
func (s scene) pods(t *testing.T) (manifests string, pools, classes []string) {
	t.Helper()
	objects, err := world.Objects(s.manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "NodePool":
			pools = append(pools, object.GetName())
			manifests += podOf(object, s.pod, s.plain)
		case "EC2NodeClass":
			classes = append(classes, object.GetName())
		}
	}
	return manifests, pools, classes
}

func podOf(pool *unstructured.Unstructured, resource string, plain bool) string {
	tolerations := "[{operator: Exists}]"
	if plain {
		tolerations = "[]"
	}
	if resource == "" {
		resource = "memory: 256Mi"
	}
	limits := ""
	if strings.Contains(resource, "/") {
		limits = ", limits: {" + resource + "}"
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: oracle, name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {karpenter.sh/nodepool: %[1]s}
  tolerations: %[4]s
  containers: [{name: app, image: app, resources: {requests: {cpu: 500m, %[2]s}%[3]s}}]
---
`, pool.GetName(), resource, limits, tolerations)
}
