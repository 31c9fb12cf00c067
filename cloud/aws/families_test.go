package aws

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/cloud/aws/amifamily"
	"github.com/tenon-sh/tenon/test/oracle"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// familyCases is testdata/families/cases.yaml, which tools/karpenter asks Karpenter about.
type familyCases struct {
	Labels        map[string]string `json:"labels"`
	Taints        []corev1.Taint    `json:"taints"`
	StartupTaints []corev1.Taint    `json:"startupTaints"`
	Cases         []familyCase      `json:"cases"`
}

type familyCase struct {
	Name         string                 `json:"name"`
	Spec         awsv1.EC2NodeClassSpec `json:"spec"`
	Image        string                 `json:"image"`
	CIDR         string                 `json:"cidr"`
	ReservedENIs int64                  `json:"reservedENIs"`
}

// karpenterRecord is testdata/families/karpenter.json, what Karpenter answered.
type karpenterRecord struct {
	Machines []types.InstanceTypeInfo
	Cases    map[string]struct {
		UserData string
		Volumes  []recordedVolume
		Sizes    map[string]recordedSize
	}
	Aliases map[string]map[string][]string
}

type recordedVolume struct {
	Device, Type string
	Encrypted    bool
	Bytes        int64
}

type recordedSize struct {
	Capacity, Allocatable map[string]string
	OS, Build             []string
}

func readFamilies(t *testing.T) (familyCases, karpenterRecord) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "families", "cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases familyCases
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(filepath.Join("testdata", "families", "karpenter.json")); err != nil {
		t.Fatal(err)
	}
	var record karpenterRecord
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	if len(cases.Cases) == 0 || len(record.Cases) != len(cases.Cases) {
		t.Fatalf("%d cases, %d of them recorded: go test -C tools/karpenter -update", len(cases.Cases), len(record.Cases))
	}
	return cases, record
}

// class returns the EC2NodeClass of a case, with its image in the status.
func (c *familyCase) class() *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{Spec: c.Spec}
	class.Status.AMIs = []awsv1.AMI{{ID: "ami-1", Name: c.Image}}
	return class
}

// userDataDiffers lists what is meant to differ between the user data of the two, with the reason.
var userDataDiffers = []struct {
	cases, path *regexp.Regexp
	reason      string
}{
	{regexp.MustCompile(`^(AL2023|reserved)`), regexp.MustCompile(`\.clusterDNS$`),
		"Karpenter reads the address of the service kube-dns; EKS gives it the tenth of the service range, and so does nodeadm where nothing else is said"},
}

// familyFiles is the directory of the user data that others judge: the kubelet's own parser of flags (tools/kubelab),
// Karpenter's types for Bottlerocket's settings (tools/karpenter), and the simulated machines (cloud/ec2sim).
var familyFiles = filepath.Join("testdata", "families", "userdata")

// file returns the name of the file with the case's user data.
func (c *familyCase) file() string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(c.Name), "-")
	switch family := c.class().AMIFamily(); {
	case family == awsv1.AMIFamilyBottlerocket:
		return name + ".toml"
	case strings.HasPrefix(family, "Windows"):
		return name + ".ps1"
	default:
		return name + ".mime"
	}
}

// TestFamiliesUserDataIsKarpenters compares the user data of every case with Karpenter's, as parsed documents.
func TestFamiliesUserDataIsKarpenters(t *testing.T) {
	t.Parallel()
	cases, record := readFamilies(t)
	for _, c := range cases.Cases {
		class := c.class()
		cluster := clusterFacts{name: "blue", endpoint: "https://0123.gr7.us-east-1.eks.amazonaws.com", authority: "Q0E=", serviceCIDR: "10.100.0.0/16"}
		if c.CIDR != "" {
			cluster.serviceCIDR = c.CIDR
		}
		m := machineOf(t, &record, "m5.large")
		size := shapeOf(class, DefaultVMMemoryOverhead, c.ReservedENIs)
		text, err := userData(cluster, class, cases.Labels, slices.Concat(cases.Taints, cases.StartupTaints), "ami-1", size.pods(m))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		keepUserData(t, c.file(), text)
		want, got := oracle.UserData("", record.Cases[c.Name].UserData), oracle.UserData("", text)
		for _, differs := range userDataDiffers {
			if !differs.cases.MatchString(c.Name) {
				continue
			}
			for _, document := range []oracle.Document{want, got} {
				for path := range document {
					if differs.path.MatchString(path) {
						delete(document, path)
					}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-Karpenter +Tenon):\n%s", c.Name, diff)
		}
	}
}

// keepUserData checks that a file that others judge is what nodes get.
func keepUserData(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(familyFiles, name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // part of the repository
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), text); diff != "" {
		t.Errorf("%s is stale, run go test ./cloud/aws -run Families -update (-want +got):\n%s", file, diff)
	}
}

// TestFamiliesVolumesAreKarpenters compares the volumes of every case with Karpenter's. A Custom image has the volumes that it
// brings.
func TestFamiliesVolumesAreKarpenters(t *testing.T) {
	t.Parallel()
	cases, record := readFamilies(t)
	for _, c := range cases.Cases {
		var got []recordedVolume
		for _, disk := range blockDevices(c.class()) {
			made := recordedVolume{Device: aws.ToString(disk.DeviceName)}
			if ebs := disk.EBS; ebs != nil {
				made.Type, made.Encrypted = aws.ToString(ebs.VolumeType), aws.ToBool(ebs.Encrypted)
				if ebs.VolumeSize != nil {
					made.Bytes = ebs.VolumeSize.Value()
				}
			}
			got = append(got, made)
		}
		if diff := cmp.Diff(record.Cases[c.Name].Volumes, got); diff != "" {
			t.Errorf("%s (-Karpenter +Tenon):\n%s", c.Name, diff)
		}
	}
}

// TestFamiliesSizesAreKarpenters compares capacity, allocatable and operating system of every instance type with Karpenter's,
// for the classes of every case.
func TestFamiliesSizesAreKarpenters(t *testing.T) {
	t.Parallel()
	cases, record := readFamilies(t)
	for _, c := range cases.Cases {
		class := c.class()
		size := shapeOf(class, DefaultVMMemoryOverhead, c.ReservedENIs)
		for name, want := range record.Cases[c.Name].Sizes {
			m := machineOf(t, &record, name)
			if m.unsuitable(class, nil, false) != "" {
				if len(want.OS) > 0 {
					t.Errorf("%s: %s is not compatible, and Karpenter's is %v", c.Name, name, want.OS)
				}
				continue
			}
			capacity, allocatable, err := size.resources(m)
			if err != nil {
				t.Fatalf("%s: %s: %v", c.Name, name, err)
			}
			labels := m.labelsAs(size.family)
			got := recordedSize{Capacity: plainQuantities(capacity), Allocatable: plainQuantities(allocatable), OS: []string{labels[corev1.LabelOSStable]}, Build: []string{}}
			if build, ok := labels[corev1.LabelWindowsBuild]; ok {
				got.Build = []string{build}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-Karpenter +Tenon):\n%s", c.Name, name, diff)
			}
		}
	}
}

// TestAliasesAreKarpenters compares the SSM parameters of aliases, and what their images run on, with Karpenter's.
func TestAliasesAreKarpenters(t *testing.T) {
	t.Parallel()
	_, record := readFamilies(t)
	for text, want := range record.Aliases {
		alias, err := awsv1.ParseAlias(text)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, image := range amifamily.Of(alias.Family).Images(alias.Version, "1.32") {
			for _, kind := range image.Runs {
				var all []string
				for _, r := range kind {
					all = append(all, strings.TrimSpace(r.Key+" "+string(r.Operator)+" "+strings.Join(r.Values, ",")))
				}
				slices.Sort(all)
				got[image.Parameter] = append(got[image.Parameter], strings.Join(all, "; "))
			}
			slices.Sort(got[image.Parameter])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-Karpenter +Tenon):\n%s", text, diff)
		}
	}
}

// machineOf returns an instance type of the record.
func machineOf(t *testing.T, record *karpenterRecord, name string) *machine {
	t.Helper()
	for i := range record.Machines {
		if info := &record.Machines[i]; string(info.InstanceType) == name {
			m, ok := reduce(info, []string{"us-east-1a"})
			if !ok {
				t.Fatalf("%s is not described completely", name)
			}
			return m
		}
	}
	t.Fatalf("%s is not in the record", name)
	return nil
}

// plainQuantities returns the resources that are not zero.
func plainQuantities(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		if quantity.Sign() != 0 {
			out[string(name)] = quantity.AsDec().String()
		}
	}
	return out
}
