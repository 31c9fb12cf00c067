package clustermetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// collectOfferings tells what can be bought, each thing once however many NodePools may buy it. Where the pools see different
// prices, because of NodeOverlays, the first one counts.
func collectOfferings(to chan<- prometheus.Metric, pools []plan.Pool) {
	type offering struct{ kind, zone, capacityType string }
	kinds, offerings := map[string]bool{}, map[offering]*cloud.Offering{}
	for _, pool := range pools {
		for _, kind := range pool.Types {
			if !kinds[kind.Name] {
				kinds[kind.Name] = true
				has := plan.ResourcesOf(kind.Capacity)
				to <- gauge(descTypeCPU, inUnits(string(corev1.ResourceCPU), has.CPU), pair("instance_type", kind.Name))
				to <- gauge(descTypeMemory, float64(has.Memory), pair("instance_type", kind.Name))
			}
			for i := range kind.Offerings {
				of := &kind.Offerings[i]
				key := offering{kind.Name, of.Zone, of.CapacityType}
				if known := offerings[key]; known == nil || !known.Available && of.Available {
					offerings[key] = of
				}
			}
		}
	}
	for key, of := range offerings {
		available := 0.0
		if of.Available {
			available = 1
		}
		capacityType, kind, zone := pair("capacity_type", key.capacityType), pair("instance_type", key.kind), pair("zone", key.zone)
		to <- gauge(descAvailable, available, capacityType, kind, zone)
		to <- gauge(descPriceEstimates, of.Price, capacityType, kind, zone)
	}
}
