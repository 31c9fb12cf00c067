// Package karpenter records what Karpenter, unmodified, gives the nodes of each AMI family: user data, volumes, images and
// sizes. cloud/aws compares its own with the record. A test fails when Karpenter's answers are no longer the recorded ones;
// with -update it records them.
package karpenter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily/bootstrap"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	"github.com/aws/karpenter-provider-aws/pkg/providers/launchtemplate"
	"github.com/aws/karpenter-provider-aws/pkg/providers/ssm"
	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "record Karpenter's answers anew")

const (
	casesFile  = "../../cloud/aws/testdata/families/cases.yaml"
	recordFile = "../../cloud/aws/testdata/families/karpenter.json"
	// ourSettings are the settings that Tenon writes for Bottlerocket, case by case, as a test of cloud/aws keeps them.
	ourSettings = "../../cloud/aws/testdata/families/userdata/*.toml"
	vmOverhead  = 0.075
	region      = "us-east-1"
)

// cases is the file of cases, which cloud/aws reads as well.
type cases struct {
	Labels        map[string]string `json:"labels"`
	Taints        []corev1.Taint    `json:"taints"`
	StartupTaints []corev1.Taint    `json:"startupTaints"`
	Cases         []struct {
		Name         string              `json:"name"`
		Spec         v1.EC2NodeClassSpec `json:"spec"`
		Image        string              `json:"image"`
		CIDR         string              `json:"cidr"`
		ReservedENIs int                 `json:"reservedENIs"`
	} `json:"cases"`
}

// record is the file of answers.
type record struct {
	// Machines are the instance types, as EC2 describes them.
	Machines []ec2types.InstanceTypeInfo
	Cases    map[string]answer
	// Aliases are the images of an alias for a version of Kubernetes: the SSM parameter, and on what the image runs.
	Aliases map[string]map[string][]string
}

// answer is what the nodes of one case get.
type answer struct {
	UserData string
	Volumes  []volume
	Sizes    map[string]size
}

type volume struct {
	Device, Type string
	Encrypted    bool
	Bytes        int64
}

// size is what one instance type is as a node.
type size struct {
	Capacity, Allocatable map[string]string
	OS, Build             []string
}

func TestRecordIsKarpenters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	var all cases
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	got := record{Machines: machines(t), Cases: map[string]answer{}, Aliases: aliases(t)}
	for i := range all.Cases {
		got.Cases[all.Cases[i].Name] = ask(t, &all, i, got.Machines)
	}
	made := written(t, got)
	if *update {
		if err := os.WriteFile(recordFile, made, 0o644); err != nil { // part of the repository
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(recordFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, made) {
		t.Errorf("%s is not what Karpenter answers: go test -C tools/karpenter -update", recordFile)
	}
}

// written returns the text of a record, without fields that are null.
func written(t *testing.T, r record) []byte {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	content["Machines"] = withoutNull(content["Machines"])
	if text, err = json.MarshalIndent(content, "", " "); err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func withoutNull(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if value[key] = withoutNull(inner); inner == nil {
				delete(value, key)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutNull(value[i])
		}
	}
	return value
}

// machineTypes are one of each kind: Arm, no instance store, GPUs and a large instance store, Neuron, several network cards.
var machineTypes = []ec2types.InstanceType{"c6g.large", "m5.large", "g4dn.8xlarge", "inf2.xlarge", "m6idn.32xlarge"}

// machines returns some of the instance types with which Karpenter tests itself.
func machines(t *testing.T) []ec2types.InstanceTypeInfo {
	t.Helper()
	found, err := (&fake.EC2API{}).DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{})
	if err != nil {
		t.Fatal(err)
	}
	found.InstanceTypes = slices.DeleteFunc(found.InstanceTypes, func(info ec2types.InstanceTypeInfo) bool {
		return !slices.Contains(machineTypes, info.InstanceType)
	})
	slices.SortFunc(found.InstanceTypes, func(a, b ec2types.InstanceTypeInfo) int {
		return cmp.Compare(a.InstanceType, b.InstanceType)
	})
	return found.InstanceTypes
}

// ask asks Karpenter what the nodes of a case get.
func ask(t *testing.T, all *cases, i int, machines []ec2types.InstanceTypeInfo) answer {
	t.Helper()
	c := all.Cases[i]
	ctx := options.ToContext(t.Context(), &options.Options{ClusterName: "blue", VMMemoryOverheadPercent: vmOverhead, ReservedENIs: c.ReservedENIs})
	class := &v1.EC2NodeClass{Spec: c.Spec}
	class.Status.AMIs = imagesOf(c.Image)
	cidr := cmp.Or(c.CIDR, "10.100.0.0/16")
	taken := answer{Sizes: map[string]size{}}
	var launched []*cloudprovider.InstanceType
	for _, info := range machines {
		zones := []v1.ZoneInfo{{Zone: "us-east-1a", ZoneID: "use1-az1"}}
		kubelet := &v1.KubeletConfiguration{}
		if c.Spec.Kubelet != nil {
			kubelet = c.Spec.Kubelet
		}
		it := instancetype.NewInstanceType(ctx, info, region, []string{"us-east-1a"}, zones, c.Spec.BlockDeviceMappings, c.Spec.InstanceStorePolicy,
			c.Spec.NetworkInterfaces, kubelet.MaxPods, kubelet.PodsPerCore, kubelet.KubeReserved, kubelet.SystemReserved, kubelet.EvictionHard,
			kubelet.EvictionSoft, class.AMIFamily(), nil)
		taken.Sizes[it.Name] = size{
			Capacity: quantities(it.Capacity), Allocatable: quantities(it.Allocatable()),
			OS: it.Requirements.Get(corev1.LabelOSStable).Values(), Build: it.Requirements.Get(corev1.LabelWindowsBuild).Values(),
		}
		if it.Name == "m5.large" {
			launched = []*cloudprovider.InstanceType{it}
		}
	}
	claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Taints: all.Taints, StartupTaints: all.StartupTaints}}
	authority := "Q0E="
	templates, err := amifamily.NewDefaultResolver(region).Resolve(class, claim, launched, karpv1.CapacityTypeOnDemand, "default", &amifamily.Options{
		ClusterName: "blue", ClusterEndpoint: "https://0123.gr7.us-east-1.eks.amazonaws.com", ClusterCIDR: &cidr, CABundle: &authority,
		InstanceStorePolicy: c.Spec.InstanceStorePolicy, AMISelectorTerms: c.Spec.AMISelectorTerms, AMIs: class.Status.AMIs,
		Labels: launchtemplate.InjectDoNotSyncTaintsLabel(class.AMIFamily(), all.Labels), KubeDNSIP: tenth(t, cidr),
	}, "", 0)
	if err != nil || len(templates) != 1 {
		t.Fatalf("%s: %d templates, %v", c.Name, len(templates), err)
	}
	script, err := templates[0].UserData.Script(ctx)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	text, err := base64.StdEncoding.DecodeString(script)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	taken.UserData = steady(string(text))
	for _, mapping := range templates[0].BlockDeviceMappings {
		made := volume{Device: *mapping.DeviceName}
		if ebs := mapping.EBS; ebs != nil {
			if ebs.VolumeType != nil {
				made.Type = *ebs.VolumeType
			}
			made.Encrypted = ebs.Encrypted != nil && *ebs.Encrypted
			if ebs.VolumeSize != nil {
				made.Bytes = ebs.VolumeSize.Value()
			}
		}
		taken.Volumes = append(taken.Volumes, made)
	}
	return taken
}

// imagesOf returns the images in the status of a case's class.
func imagesOf(name string) []v1.AMI {
	var images []v1.AMI
	for _, arch := range []string{"amd64", "arm64"} {
		images = append(images, v1.AMI{ID: "ami-1", Name: name, Requirements: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
		}})
	}
	return images
}

// listFlag is a flag of the kubelet whose value is a list.
var listFlag = regexp.MustCompile(`(--[a-z-]+=")([^"]*)(")`)

// steady sorts what Karpenter writes in the order of a Go map, which differs each time: the lists of kubelet flags.
func steady(text string) string {
	return listFlag.ReplaceAllStringFunc(text, func(flag string) string {
		parts := listFlag.FindStringSubmatch(flag)
		pairs := strings.Split(parts[2], ",")
		slices.Sort(pairs)
		return parts[1] + strings.Join(pairs, ",") + parts[3]
	})
}

// tenth returns the address of the cluster's DNS service: EKS gives it the tenth of the range.
func tenth(t *testing.T, cidr string) net.IP {
	t.Helper()
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		t.Fatal(err)
	}
	address := prefix.Addr()
	for range 10 {
		address = address.Next()
	}
	return net.IP(address.AsSlice())
}

func quantities(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		if !quantity.IsZero() {
			out[string(name)] = quantity.AsDec().String()
		}
	}
	return out
}

// parameters stands in for SSM: the value of a parameter is its name.
type parameters struct{}

func (parameters) Get(_ context.Context, parameter ssm.Parameter) (string, error) {
	return parameter.Name, nil
}

// aliases returns the parameters that aliases mean, and the requirements of their images.
func aliases(t *testing.T) map[string]map[string][]string {
	t.Helper()
	out := map[string]map[string][]string{}
	for family, versions := range map[string][]string{
		v1.AMIFamilyAL2: {"latest", "v20251112"}, v1.AMIFamilyAL2023: {"latest", "v20251112"}, v1.AMIFamilyBottlerocket: {"latest", "v1.50.0", "1.50.0"},
		v1.AMIFamilyWindows2019: {"latest"}, v1.AMIFamilyWindows2022: {"latest"}, v1.AMIFamilyWindows2025: {"latest"},
	} {
		for _, version := range versions {
			query, err := amifamily.GetAMIFamily(family, nil).DescribeImageQuery(t.Context(), parameters{}, "1.32", version)
			if err != nil {
				t.Fatalf("%s@%s: %v", family, version, err)
			}
			images := map[string][]string{}
			for parameter, sets := range query.KnownRequirements {
				for _, set := range sets {
					images[parameter] = append(images[parameter], requirements(set))
				}
				slices.Sort(images[parameter])
			}
			out[strings.ToLower(family)+"@"+version] = images
		}
	}
	return out
}

func requirements(set scheduling.Requirements) string {
	var all []string
	for _, r := range set.NodeSelectorRequirements() {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ","))))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// TestOurBottlerocketSettingsAreKnown decodes what Tenon writes for Bottlerocket strictly into the settings that Karpenter
// knows, so that a misspelt setting, which Bottlerocket would refuse at boot, is found.
func TestOurBottlerocketSettingsAreKnown(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(ourSettings)
	if err != nil || len(files) == 0 {
		t.Fatalf("no settings, %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var whole struct {
			Settings struct {
				Kubernetes        map[string]any            `toml:"kubernetes"`
				BootstrapCommands map[string]map[string]any `toml:"bootstrap-commands"`
			} `toml:"settings"`
		}
		if err := toml.Unmarshal(text, &whole); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		strictly(t, file, whole.Settings.Kubernetes, &bootstrap.BottlerocketKubernetes{})
		strictly(t, file, whole.Settings.BootstrapCommands, &map[string]bootstrap.BootstrapCommand{})
	}
}

func strictly(t *testing.T, name string, settings, into any) {
	t.Helper()
	text, err := toml.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}
