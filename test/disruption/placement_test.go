package disruption_test

import (
	"fmt"

	"github.com/tenon-sh/tenon/test/flow"
)

// placementScenarios are about what binds pods to places, and which room may be counted on.
func placementScenarios() []scenario {
	cordon, open := patchNode(`{"spec":{"unschedulable":true}}`), patchNode(`{"spec":{"unschedulable":false}}`)
	zonal := []string{fmt.Sprintf("topologySpreadConstraints: [{maxSkew: 1, topologyKey: %s, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {tier: any}}}]", zoneKey)}
	apart := []string{fmt.Sprintf("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {app: web}}}]}}", hostKey)}
	volume := func(zone string) string {
		return fmt.Sprintf(`
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: SCENE-%[1]s}, spec: {storageClassName: "", capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain,
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: SCENE, name: %[1]s}, csi: {driver: disk.example.com, volumeHandle: SCENE-%[1]s},
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: %[2]s, operator: In, values: [%[1]s]}]}]}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: SCENE, name: %[1]s}, spec: {storageClassName: "", volumeName: SCENE-%[1]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, zone, zoneKey)
	}
	database := func(zone, requests string) workload {
		return workload{name: "in-" + zone, count: 1, requests: requests, spec: []string{"volumes: [{name: data, persistentVolumeClaim: {claimName: " + zone + "}}]"}}
	}
	east := func(zone string) string { return zoneKey + ": us-east-1" + zone }
	return []scenario{{
		name: "uninitialized", rule: "room on a node that does not serve yet is not counted on", pools: []pool{{template: []string{"startupTaints: [{key: starting, effect: NoSchedule}]"}}},
		steps: []step{
			launch(workload{name: "first", count: 1}), release(1), running, on("first", cordon),
			launch(workload{name: "second", count: 1}), claims(2), on("first", open), running, opened("0s"),
			keeps("first", "Underutilized", "Room|Price", ""), release(2), serve(1), spread("first", hostKey, 1)},
		takes: takes{"Empty": 1},
	}, {
		name: "spread-kept", rule: "nodes go so that the pods that move stay spread over the zones", pools: []pool{{requirements: flow.In(zoneKey, "us-east-1a", "us-east-1b")}},
		steps: []step{
			deploy(workload{name: "ballast", count: 4, requests: ballast, labels: "tier: any", spec: zonal}), deploy(workload{name: "web", count: 4, labels: "tier: any", spec: zonal}),
			scale("ballast", 0), serve(4), opened("0s"), serve(2), stays(2), spread("web", zoneKey, 2, 2)},
		takes: takes{"Underutilized": 2},
	}, {
		name: "anti-affinity", rule: "nodes stay whose pods must not meet",
		steps: then(halfEmpty(2, workload{spec: apart}), opened("0s"), keeps(everyNode, "Underutilized", "Room|Price", ""), scale("web", 1), serve(1)),
		takes: takes{"Empty": 1},
	}, {
		name: "volume-zone", rule: "what replaces a node is in the zone of its pods' volumes", pools: []pool{{types: []string{"m5.xlarge"}}},
		steps: []step{create(volume("us-east-1b") + volume("us-east-1c")), deploy(database("us-east-1b", whole), database("us-east-1c", whole)), serve(2),
			sell(pool{types: []string{"m5.xlarge", "m5.large"}}), opened("0s"), replaced(2), have(typeKey, "m5.large"),
			zoned("in-us-east-1b", "us-east-1b"), zoned("in-us-east-1c", "us-east-1c")},
		takes: takes{"Underutilized": 2},
	}, {
		name: "volume-destination", rule: "pods move to nodes in the zone of their volumes, and a node stays whose pods' volumes are where no other node is",
		steps: []step{
			create(volume("us-east-1b") + volume("us-east-1c")),
			deploy(workload{name: "ballast-b", count: 2, requests: ballast, selector: east("b")}, workload{name: "ballast-c", count: 1, requests: ballast, selector: east("c")}),
			deploy(database("us-east-1b", light), database("us-east-1c", tiny), workload{name: "web", count: 1, selector: east("b")}),
			scale("ballast-b", 0), scale("ballast-c", 0), serve(3), opened("0s"), stays(2), mark,
			zoned("in-us-east-1b", "us-east-1b"), zoned("in-us-east-1c", "us-east-1c"), keeps("in-us-east-1c", "Underutilized", "Room|Price", "")},
		takes: takes{"Underutilized": 1},
	}}
}

// bufferScenarios are about room that is kept free.
func bufferScenarios() []scenario {
	buffer := fmt.Sprintf(`
---
{apiVersion: v1, kind: PodTemplate, metadata: {namespace: SCENE, name: room}, template: {metadata: {labels: {app: room}}, spec: {nodeSelector: {%s: SCENE}, containers: [{name: app, image: app, resources: {requests: {%s}}}]}}}
---
{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {namespace: SCENE, name: spare}, spec: {podTemplateRef: {name: room}, replicas: 1}}`, sceneLabel, light)
	return []scenario{{
		name: "buffer-empty", rule: "an empty node stays while a CapacityBuffer needs its room",
		steps: []step{create(buffer), claims(1), serve(1), opened("0s"), keeps(everyNode, "Empty", "Buffer", "room"), remove(spareBuffer(), "spare"), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "buffer-half", rule: "the room of a CapacityBuffer is not given to pods of a node that would go",
		steps: then(halfEmpty(2, workload{}), ended("ballast"), create(buffer), fits("spare"), opened("0s"), keeps(everyNode, "Underutilized", "Buffer|Room|Price", ""), remove(spareBuffer(), "spare"), serve(1), stays(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "buffer-beyond", rule: "nodes go until only the room of a CapacityBuffer is left, and the node says so that it would be taken from",
		steps: then(halfEmpty(4, workload{}), ended("ballast"), create(buffer), fits("spare"), opened("0s"), stays(3), mark, keeps(everyNode, "Underutilized", "Buffer|Room|Price", ""),
			keepsOne("Underutilized", "Buffer|Price", "keeps room free for buffer-beyond/capacity-buffer-spare-0"), remove(spareBuffer(), "spare"), serve(2), made(4)),
		takes: takes{"Underutilized": 2},
	}}
}
