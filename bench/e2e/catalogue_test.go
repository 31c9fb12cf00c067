package e2e

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"

	known "github.com/tenon-sh/tenon/cloud/catalogue"
)

// TestBothBuyTheSame checks that the two files the rivals read sell the same machines at the same prices.
func TestBothBuyTheSame(t *testing.T) {
	sizes, err := catalogue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := filepath.Join(t.TempDir(), "kwok.json"), filepath.Join(t.TempDir(), "ec2.json")
	if err := writeForKwok(theirs, sizes); err != nil {
		t.Fatal(err)
	}
	if err := writeForEC2(ours, sizes); err != nil {
		t.Fatal(err)
	}
	types, err := kwok.ConstructInstanceTypes(kwokoptions.ToContext(t.Context(), &kwokoptions.Options{InstanceTypesFilePath: theirs}))
	if err != nil {
		t.Fatal(err)
	}
	machines, err := known.Load(ours)
	if err != nil {
		t.Fatal(err)
	}
	if len(types) != len(sizes) || len(machines.Types()) != len(sizes) {
		t.Fatalf("%d sizes, but %d and %d machines", len(sizes), len(types), len(machines.Types()))
	}
	for i, it := range types {
		s, machine := sizes[i], machines.Type(it.Name)
		has := it.Allocatable()
		if has.Cpu().MilliValue() != int64(1000*s.cores-reservedMilliCPU) || has.Memory().Value()>>20 != s.memoryMiB-reservedMemoryMiB {
			t.Errorf("%s: Karpenter reckons with %s and %s, want %+v less what is reserved", it.Name, has.Cpu(), has.Memory(), s)
		}
		if machine == nil || machine.VCPUs != s.cores || machine.PriceUSD != s.usd {
			t.Errorf("%s: EC2 sells %+v, want %+v", it.Name, machine, s)
		}
		for _, offering := range it.Offerings {
			if offering.Price != s.usd || offering.Requirements.Get(corev1.LabelTopologyZone).Len() != 1 {
				t.Errorf("%s: Karpenter's offering is %v, want a price of %v in one zone", it.Name, offering, s.usd)
			}
		}
	}
}
