package workload

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// size is what a pod requests: thousandths of a core, and MiB.
type size struct{ cpu, memory int64 }

func (s size) requests() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(s.cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(s.memory<<20, resource.BinarySI),
	}
}

// sizes draws sizes of which hardly two are the same, like requests measured for each workload by a person or a program: the
// logarithm of the cores is normal, and so is that of the memory per core.
type sizes struct {
	// cpu is the median, in thousandths of a core, and perCore the median of the memory per core, in MiB.
	cpu, perCore float64
	// cpuSigma and perCoreSigma are the standard deviations of the natural logarithms.
	cpuSigma, perCoreSigma float64
	least, most            size
}

var (
	// measured sizes have a median of half a core and 2 GiB per core.
	measured = sizes{cpu: 500, perCore: 2048, cpuSigma: 0.9, perCoreSigma: 0.8, least: size{10, 16}, most: size{14_000, 100_000}}
	// recommended sizes are a vertical autoscaler's for services, most of which do little: 35m and 126Mi.
	recommended = sizes{cpu: 90, perCore: 3000, cpuSigma: 1.3, perCoreSigma: 0.9, least: size{11, 50}, most: size{12_000, 60_000}}
)

func (d draw) size(s sizes) size {
	cpu := s.cpu * math.Exp(s.cpuSigma*d.NormFloat64())
	memory := cpu / 1000 * s.perCore * math.Exp(s.perCoreSigma*d.NormFloat64())
	return size{
		cpu:    min(max(int64(math.Round(cpu)), s.least.cpu), s.most.cpu),
		memory: min(max(int64(math.Round(memory)), s.least.memory), s.most.memory),
	}
}

// differentSizes returns sizes that all differ.
func (d draw) differentSizes(count int, s sizes) []size {
	drawn, seen := make([]size, 0, count), make(map[size]bool, count)
	for len(drawn) < count {
		next := d.size(s)
		for seen[next] {
			next.memory++
		}
		seen[next] = true
		drawn = append(drawn, next)
	}
	return drawn
}
