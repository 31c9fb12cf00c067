package aws

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

var al2023 = amifamily.Of(awsv1.AMIFamilyAL2023)

func int32p(n int32) *int32 { return &n }

var (
	m5large   = &machine{name: "m5.large", vcpus: 2, memoryMiB: 8192, enis: 3, ipv4PerENI: 10}
	m5xlarge4 = &machine{name: "m5.4xlarge", vcpus: 16, memoryMiB: 65536, enis: 8, ipv4PerENI: 30}
	m6gdlarge = &machine{name: "m6gd.large", arm64: true, vcpus: 2, memoryMiB: 8192, enis: 3, ipv4PerENI: 10, storeGB: 118}
	p4d       = &machine{name: "p4d.24xlarge", vcpus: 96, memoryMiB: 1179648, enis: 15, ipv4PerENI: 50}
)

func TestPods(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		m    *machine
		s    shape
		want int64
		why  string
	}{
		{m: m5large, s: shape{family: al2023}, want: 29, why: "EKS publishes 29 for m5.large"},
		{m: m5xlarge4, s: shape{family: al2023}, want: 234, why: "EKS publishes 234 for m5.4xlarge"},
		{m: p4d, s: shape{family: al2023}, want: 737, why: "the default network card only"},
		{m: m5large, s: shape{family: al2023, reservedENIs: 1}, want: 20, why: "one interface less"},
		{m: m5large, s: shape{family: al2023, reservedENIs: 3}, want: 0, why: "no interface left"},
		{m: m5large, s: shape{family: al2023, maxPods: int32p(110)}, want: 110, why: "the class knows better"},
		{m: m5large, s: shape{podsPerCore: int32p(4), family: al2023}, want: 8, why: "pods per core is a bound"},
		{m: m5large, s: shape{podsPerCore: int32p(4), family: amifamily.Of(awsv1.AMIFamilyBottlerocket)}, want: 29, why: "Bottlerocket has no pods per core"},
		{m: m5large, s: shape{family: amifamily.Of(awsv1.AMIFamilyWindows2022)}, want: 110, why: "Windows has no ENI density"},
	} {
		if got := tc.s.pods(tc.m); got != tc.want {
			t.Errorf("pods of %s = %d; want %d (%s)", tc.m.name, got, tc.want, tc.why)
		}
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	type row map[corev1.ResourceName]string
	for _, tc := range []struct {
		why                   string
		m                     *machine
		s                     shape
		capacity, allocatable row
	}{
		{
			why: "m5.large by the book: 7577 MiB less 574 and 100, 70 mCPU, 20 GiB less 1 and a tenth",
			m:   m5large, s: shape{family: al2023, vmOverhead: 0.075, rootVolume: 20 << 30},
			capacity:    row{"cpu": "2", "memory": "7577Mi", "pods": "29", "ephemeral-storage": "20Gi"},
			allocatable: row{"cpu": "1930m", "memory": "6903Mi", "pods": "29", "ephemeral-storage": "17Gi"},
		},
		{
			why: "Graviton keeps 64 MiB; RAID0 counts decimal gigabytes",
			m:   m6gdlarge, s: shape{family: al2023, vmOverhead: 0.075, rootVolume: 20 << 30, raid0: true},
			capacity: row{"memory": "7518Mi", "ephemeral-storage": "118G"},
		},
		{
			why: "what the class reserves replaces the default of that resource only",
			m:   m5large, s: shape{
				family: al2023, vmOverhead: 0, rootVolume: 20 << 30, kubeReserved: map[string]string{"cpu": "200m"},
				systemReserved: map[string]string{"memory": "100Mi"}, evictionHard: map[string]string{"memory.available": "5%"},
				evictionSoft: map[string]string{"memory.available": "500Mi", "nodefs.available": "100%"},
			},
			allocatable: row{"cpu": "1800m", "memory": "7018Mi", "ephemeral-storage": "19Gi"},
		},
		{
			why: "16 CPUs: 60+10+10+30 mCPU; memory is reserved for the pods the interfaces allow, whatever maxPods says",
			m:   m5xlarge4, s: shape{family: al2023, maxPods: int32p(20), rootVolume: 20 << 30},
			allocatable: row{"cpu": "15890m", "memory": "62607Mi", "pods": "20"},
		},
	} {
		capacity, allocatable, err := tc.s.resources(tc.m)
		if err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		for what, lists := range map[string]struct {
			got  corev1.ResourceList
			want row
		}{"capacity": {capacity, tc.capacity}, "allocatable": {allocatable, tc.allocatable}} {
			for name, want := range lists.want {
				if got := lists.got[name]; got.Cmp(resource.MustParse(want)) != 0 {
					t.Errorf("%s: %s of %s = %s; want %s", tc.why, what, name, got.String(), want)
				}
			}
		}
	}
}

func TestResourcesRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, s := range []shape{
		{family: al2023, kubeReserved: map[string]string{"cpu": "much"}},
		{family: al2023, systemReserved: map[string]string{"cpu": "much"}},
		{family: al2023, evictionHard: map[string]string{"memory.available": "ten%"}},
	} {
		if _, _, err := s.resources(m5large); err == nil {
			t.Errorf("resources took %+v", s)
		}
	}
}

func TestDevicesAreCapacity(t *testing.T) {
	t.Parallel()
	m := *m5large
	m.extended = corev1.ResourceList{awsv1.ResourceNVIDIAGPU: resource.MustParse("4")}
	s := shape{family: al2023, rootVolume: 20 << 30, ownInterfaces: true, efas: 1}
	capacity, allocatable, err := s.resources(&m)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[corev1.ResourceName]int64{awsv1.ResourceNVIDIAGPU: 4, awsv1.ResourceEFA: 1, awsv1.ResourceAWSPodENI: 9} {
		if got := capacity[name]; got.Value() != want || got.Cmp(allocatable[name]) != 0 {
			t.Errorf("%s: capacity %s; want %d, all of it allocatable", name, got.String(), want)
		}
	}
}
