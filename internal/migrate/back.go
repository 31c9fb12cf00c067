package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

// ofTenon is the group of the annotations and taints that Karpenter does not know.
const ofTenon = "tenon.sh/"

// limits are the annotations of NodePools that hold Tenon back, with what Karpenter does.
var limits = map[string]string{
	karpv1.PauseAnnotationKey:              "Karpenter knows no pauses, and does what is paused",
	karpv1.ObserveAnnotationKey:            "Karpenter acts on every NodePool",
	karpv1.ExpirationAnnotationKey:         "Karpenter ends expired nodes by force",
	karpv1.MinimumNodeAgeAnnotationKey:     "Karpenter disrupts nodes of any age",
	karpv1.DisruptionRateAnnotationKey:     "Karpenter has budgets only, no rate",
	karpv1.BudgetTimezoneAnnotationKey:     "Karpenter reads the schedules of budgets in UTC",
	karpv1.MaintenanceWindowsAnnotationKey: "Karpenter knows no maintenance windows: budgets with schedules stop neither expiry nor repair",
	karpv1.PackingAnnotationKey:            "Karpenter packs in its own way",
	karpv1.HooksAnnotationKey:              "Karpenter runs no hooks",
	karpv1.ApprovalAnnotationKey:           "Karpenter asks nobody for approval",
	karpv1.RolloutAnnotationKey:            "Karpenter replaces all drifted nodes, as fast as the budgets allow",
	karpv1.WaitForReadyAnnotationKey:       "Karpenter's replacements serve once they are initialized",

	karpv1alpha1.DeviceTemplatesAnnotationKey: "Karpenter 1.14 does not plan devices",
}

// Back says what becomes of a cluster when Karpenter gets it back.
func Back(c *Cluster) (*Report, error) {
	r := &Report{Findings: []Finding{}}
	karpenter := karpenterOf(c, r)
	if karpenter != nil {
		r.Karpenter = karpenter.version
	}
	r.NodeClasses = len(c.NodeClasses)
	for _, pause := range c.Pauses {
		r.add(Differs, "ConfigMap "+karpv1.PauseNamespace+"/"+karpv1.PauseConfigMapName, string(pause.What), "Karpenter knows no pauses, and does what is paused in the whole cluster",
			"set the budgets of all NodePools to nodes: \"0\" instead, which stops what budgets can stop")
	}
	if err := poolsBack(c, karpenter, r); err != nil {
		return nil, err
	}
	if karpenter != nil && !karpenter.gate("CapacityBuffer", false) {
		for _, name := range c.Buffers {
			r.add(Differs, "CapacityBuffer "+name, "", "Karpenter's feature gate CapacityBuffer is off: the nodes that Tenon keeps for it are removed as empty", "turn the gate on")
		}
	}
	if err := claimsBack(c, r); err != nil {
		return nil, err
	}
	for i := range c.Nodes {
		node := &c.Nodes[i]
		for _, taint := range node.Spec.Taints {
			if strings.HasPrefix(taint.Key, ofTenon) {
				r.add(Waits, "Node "+node.Name, "spec.taints", fmt.Sprintf("nobody takes the taint %s away once Tenon is gone, and no pod gets on the node", taint.Key),
					fmt.Sprintf("wait until the node serves, or kubectl taint node %s %s-", node.Name, taint.Key))
			}
		}
	}
	r.sort()
	return r, nil
}

func poolsBack(c *Cluster, karpenter *installation, r *Report) error {
	for _, document := range c.NodePools {
		var pool karpv1.NodePool
		if err := json.Unmarshal(document, &pool); err != nil {
			return fmt.Errorf("read a NodePool: %w", err)
		}
		object := "NodePool " + pool.Name
		r.NodePools++
		for _, key := range slices.Sorted(maps.Keys(pool.Annotations)) {
			if message := limits[key]; message != "" {
				r.add(Differs, object, "metadata.annotations."+key, message, "")
			}
		}
		if pool.Spec.Replicas != nil && karpenter != nil && !karpenter.gate("StaticCapacity", false) {
			r.add(Differs, object, "spec.replicas", "Karpenter's feature gate StaticCapacity is off: it keeps up no number of nodes", "turn the gate on")
		}
	}
	return nil
}

func claimsBack(c *Cluster, r *Report) error {
	serves := map[string]bool{}
	for _, document := range c.NodeClaims {
		var claim karpv1.NodeClaim
		if err := json.Unmarshal(document, &claim); err != nil {
			return fmt.Errorf("read a NodeClaim: %w", err)
		}
		object := "NodeClaim " + claim.Name
		r.NodeClaims++
		serves[claim.Status.NodeName] = true
		initialized := claim.Condition(karpv1.ConditionTypeInitialized)
		switch {
		case claim.DeletionTimestamp != nil:
			r.add(Waits, object, "", "it is being deleted: Karpenter goes on with the drain, without Tenon's order and its deadline", "wait until it is gone")
		case claim.Status.ProviderID == "":
			r.add(Waits, object, "status.providerID", "it has no instance yet: Tenon may be launching one now, and Karpenter would launch another", "wait until it has one, or is gone")
		case claim.Annotations[karpv1.ReplacementAnnotationKey] != "" && (initialized == nil || initialized.Status != "True"):
			r.add(Waits, object, "metadata.annotations."+karpv1.ReplacementAnnotationKey, "it replaces other nodes and does not serve yet: Karpenter keeps both", "wait until the replacement has ended")
		}
		if claim.Annotations[karpv1.HeldInterruptionsAnnotationKey] != "" {
			r.add(Differs, object, "metadata.annotations."+karpv1.HeldInterruptionsAnnotationKey, "the announcement is gone from the queue, and Karpenter does not look at the annotation", "end the pause, or drain the node")
		}
	}
	for i := range c.Nodes {
		if serves[c.Nodes[i].Name] {
			r.Nodes++
		}
	}
	return nil
}
