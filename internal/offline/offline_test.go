package offline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
)

func TestInstanceTypes(t *testing.T) {
	t.Setenv("AWS_PROFILE", "a profile that does not exist") // the environment must not matter
	t.Setenv("AWS_REGION", "eu-north-1")
	account, err := New(Options{Region: "us-west-2", Zones: []string{"us-west-2b", "us-west-2d"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = account.Close() })
	pods := int32(20)
	for name, test := range map[string]struct {
		reason   string
		class    func(*awsv1.EC2NodeClass)
		pods     int64
		gpu, arm bool
		notes    []string
	}{
		"Plain":   {reason: "an m5.large has addresses for 29 pods", pods: 29, gpu: true, arm: true, class: func(*awsv1.EC2NodeClass) {}},
		"Pinned":  {reason: "a pinned version is as good as the latest", pods: 29, gpu: true, arm: true, class: func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "al2023@v20250101" }},
		"Kubelet": {reason: "the kubelet's settings count", pods: 20, gpu: true, arm: true, class: func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: &pods} }},
		"ImageID": {reason: "images that only AWS knows are assumed", pods: 29, gpu: true, arm: true, class: func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: "ami-1"}} }, notes: []string{"its images are not known offline: one for each architecture is assumed"}},
		"Reserved": {reason: "so are reservations", pods: 29, gpu: true, arm: true, class: func(c *awsv1.EC2NodeClass) {
			c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
		}, notes: []string{"its capacity reservations are not known offline: none is assumed"}},
		"Alias":  {reason: "an alias that has no images is still planned, with a warning", pods: 29, gpu: true, arm: true, class: func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "al2@latest" }, notes: []string{"it would not become Ready: spec.amiSelectorTerms: there are no Amazon Linux 2 images"}},
		"Family": {reason: "Windows is for Intel and AMD only, and network interfaces do not limit its pods", pods: 110, gpu: true, arm: false, class: func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "windows2022@latest" }},
	} {
		t.Run(name, func(t *testing.T) {
			class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
			class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
			test.class(class)
			types, notes, err := account.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			m5 := find(types, "m5.large")
			if m5 == nil {
				t.Fatal("there is no m5.large")
			}
			if got := m5.Allocatable[corev1.ResourcePods]; got.Value() != test.pods {
				t.Errorf("%s: m5.large holds %s pods, want %d", test.reason, got.String(), test.pods)
			}
			if gpu, arm := find(types, "g5.xlarge") != nil, find(types, "m7g.large") != nil; gpu != test.gpu || arm != test.arm {
				t.Errorf("%s: GPU machines %t, want %t; ARM machines %t, want %t", test.reason, gpu, test.gpu, arm, test.arm)
			}
			var zones []string
			for _, offering := range m5.Offerings {
				if !offering.Available || offering.Price <= 0 {
					t.Errorf("%s: offering %+v cannot be bought", test.reason, offering)
				}
				zones = append(zones, offering.Zone)
			}
			if diff := cmp.Diff([]string{"us-west-2b", "us-west-2d"}, slices.Compact(zones)); diff != "" {
				t.Errorf("zones (-want +got):\n%s", diff)
			}
			test.notes = append(test.notes, "its subnets are not known offline: one in each zone is assumed")
			slices.Sort(notes)
			slices.Sort(test.notes)
			if len(notes) != len(test.notes) {
				t.Fatalf("%s: notes %q, want %q", test.reason, notes, test.notes)
			}
			for i := range notes {
				if !strings.HasPrefix(notes[i], test.notes[i]) {
					t.Errorf("%s: note %q, want %q", test.reason, notes[i], test.notes[i])
				}
			}
		})
	}
}

// TestStatus checks that what a cluster has found out about a class is believed.
func TestStatus(t *testing.T) {
	t.Parallel()
	account, err := New(Options{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = account.Close() })
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: "ami-1"}}
	class.Status.AMIs = []awsv1.AMI{{ID: "ami-1", Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}}}
	class.Status.Subnets = []awsv1.Subnet{{ID: "subnet-1", Zone: "us-west-2b"}, {ID: "subnet-2", Zone: "us-west-2b"}}
	types, notes, err := account.InstanceTypes(t.Context(), class)
	if err != nil || len(notes) > 0 {
		t.Fatalf("error %v, notes %q", err, notes)
	}
	if find(types, "m5.large") != nil || find(types, "m7g.large") == nil {
		t.Error("an image for ARM runs on ARM machines, and on no others")
	}
	for _, offering := range find(types, "m7g.large").Offerings {
		if offering.Zone != "us-west-2b" {
			t.Errorf("there is no subnet for %+v", offering)
		}
	}
	class.Status.Subnets[0].Zone, class.Status.Subnets[1].Zone = "eu-west-1a", "eu-west-1b"
	types, notes, err = account.InstanceTypes(t.Context(), class)
	if err != nil || len(types) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "eu-west-1a, eu-west-1b") {
		t.Errorf("%d types, notes %q, error %v: a class of another region has nothing to launch", len(types), notes, err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason  string
		options Options
		fails   string
	}{
		"ForeignZone": {reason: "a zone of another region is a mistake", options: Options{Region: "us-west-2", Zones: []string{"us-east-1a"}}, fails: "us-east-1a"},
		"NoFile":      {reason: "a catalogue that is not there is said to be missing", options: Options{CatalogueFile: "/does/not/exist"}, fails: "/does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := New(test.options); err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: error %v, want one about %q", test.reason, err, test.fails)
			}
		})
	}
}

func find(types []*cloud.InstanceType, name string) *cloud.InstanceType {
	for _, typ := range types {
		if typ.Name == name {
			return typ
		}
	}
	return nil
}
