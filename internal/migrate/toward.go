package migrate

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/amifamily"
)

// Toward says what becomes of a cluster when Tenon takes it over.
func Toward(c *Cluster) (*Report, error) {
	r := &Report{Findings: []Finding{}}
	karpenter := karpenterOf(c, r)
	if karpenter == nil {
		r.add(Differs, "Cluster", "", "no Deployment that runs Karpenter is in the cluster: its settings could not be compared", "")
	} else {
		karpenter.judge(r)
		unlocked(c, karpenter, r)
	}
	classes, err := judgeClasses(c, karpenter, r)
	if err != nil {
		return nil, err
	}
	pools, err := judgePools(c, karpenter, classes, r)
	if err != nil {
		return nil, err
	}
	if err := judgeClaims(c, pools, r); err != nil {
		return nil, err
	}
	r.sort()
	return r, nil
}

// karpenterOf returns the installation of Karpenter, the one with most replicas if there are several; nil if there is none.
func karpenterOf(c *Cluster, r *Report) *installation {
	if c.Lease != nil && c.Lease.Spec.HolderIdentity != nil {
		r.Holder = *c.Lease.Spec.HolderIdentity
	}
	var found *installation
	for i := range c.Deployments {
		if one := installationOf(&c.Deployments[i]); one != nil && (found == nil || one.replicas > found.replicas) {
			found = one
		}
	}
	return found
}

// unlocked says what Karpenter ignores because a feature gate is off, and Tenon does not.
func unlocked(c *Cluster, karpenter *installation, r *Report) {
	if !karpenter.gate("CapacityBuffer", false) {
		for _, name := range c.Buffers {
			r.add(Differs, "CapacityBuffer "+name, "", "Karpenter ignores it, because its feature gate CapacityBuffer is off; Tenon launches nodes for it", "delete it, if it is not wanted")
		}
	}
	if karpenter.gate("NodeOverlay", false) {
		for _, name := range c.Overlays {
			r.add(Differs, "NodeOverlay "+name, "", "Tenon reads it with the feature gate NodeOverlay only", "install with settings.featureGates.nodeOverlay=true, as Karpenter's values have it")
			break
		}
	}
}

// judgeClasses judges the EC2NodeClasses, and returns which of them Tenon continues with.
func judgeClasses(c *Cluster, karpenter *installation, r *Report) (map[string]bool, error) {
	known := map[string]bool{}
	for _, document := range c.NodeClasses {
		var class awsv1.EC2NodeClass
		unknown, err := strict(document, &class)
		object := "EC2NodeClass " + class.Name
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object, err)
		}
		known[class.Name] = true
		r.NodeClasses++
		unknownFields(r, object, unknown)
		for _, wrong := range amifamily.Of(class.AMIFamily()).Unsupported(&class) {
			r.add(Refused, object, wrong.Field, wrong.ErrorBody()+": the condition ValidationSucceeded will say so, and nothing is launched for it", "change the field; nodes that are there keep serving")
		}
		if len(class.Spec.CapacityReservationSelectorTerms) > 0 && karpenter != nil && !karpenter.gate("ReservedCapacity", true) {
			r.add(Differs, object, "spec.capacityReservationSelectorTerms", "Karpenter ignores them, because its feature gate ReservedCapacity is off; Tenon launches into these reservations", "remove the terms, if that is not wanted")
		}
	}
	return known, nil
}

// unknownFields says which fields this version of Tenon does not know.
func unknownFields(r *Report, object string, fields []string) {
	for _, field := range fields {
		r.add(Refused, object, field, "this version of Tenon does not know the field, and acts as if it were not there", "remove it, or stay with Karpenter for what needs it")
	}
}

// judgePools judges the NodePools, and returns which of them Tenon continues with.
func judgePools(c *Cluster, karpenter *installation, classes map[string]bool, r *Report) (map[string]bool, error) {
	served := map[string]bool{}
	for _, document := range c.NodePools {
		var pool karpv1.NodePool
		unknown, err := strict(document, &pool)
		object := "NodePool " + pool.Name
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object, err)
		}
		if !ofEC2(pool.Spec.Template.Spec.NodeClassRef) {
			r.add(Left, object, "spec.template.spec.nodeClassRef", foreign(pool.Spec.Template.Spec.NodeClassRef), "")
			continue
		}
		served[pool.Name] = true
		r.NodePools++
		unknownFields(r, object, unknown)
		if name := pool.Spec.Template.Spec.NodeClassRef.Name; !classes[name] {
			r.add(Differs, object, "spec.template.spec.nodeClassRef.name", "there is no EC2NodeClass "+name+": nothing is launched for it, by either controller", "")
		}
		if pool.Spec.Replicas != nil && karpenter != nil && !karpenter.gate("StaticCapacity", false) {
			r.add(Differs, object, "spec.replicas", fmt.Sprintf("Karpenter ignores the NodePool, because its feature gate StaticCapacity is off; Tenon keeps %d nodes of it", *pool.Spec.Replicas),
				"delete the NodePool, if that is not wanted")
		}
	}
	return served, nil
}

// ofEC2 says whether a reference names an EC2NodeClass.
func ofEC2(ref *karpv1.NodeClassReference) bool {
	return ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind
}

func foreign(ref *karpv1.NodeClassReference) string {
	if ref == nil {
		return "it names no EC2NodeClass"
	}
	return fmt.Sprintf("it names a %s.%s, which another controller serves", ref.Kind, ref.Group)
}

// judgeClaims judges the NodeClaims and their Nodes.
func judgeClaims(c *Cluster, pools map[string]bool, r *Report) error {
	serves := map[string]bool{}
	for _, document := range c.NodeClaims {
		var claim karpv1.NodeClaim
		if err := json.Unmarshal(document, &claim); err != nil {
			return fmt.Errorf("read a NodeClaim: %w", err)
		}
		object := "NodeClaim " + claim.Name
		if !ofEC2(claim.Spec.NodeClassRef) {
			r.add(Left, object, "spec.nodeClassRef", foreign(claim.Spec.NodeClassRef), "")
			continue
		}
		r.NodeClaims++
		serves[claim.Status.NodeName] = true
		switch {
		case claim.DeletionTimestamp != nil:
			r.add(Waits, object, "", "it is being deleted: Tenon goes on with the drain, and gives its pods their time anew", "wait until it is gone, if its pods are slow to end")
		case claim.Status.ProviderID == "":
			r.add(Waits, object, "status.providerID", "it has no instance yet: Karpenter may be launching one now, and Tenon would launch another", "wait until it has one, or is gone")
		case claim.Status.NodeName == "":
			r.add(Waits, object, "status.nodeName", "its instance has not joined yet", "wait until it has")
		}
	}
	for i := range c.Nodes {
		node := &c.Nodes[i]
		switch pool := node.Labels[karpv1.NodePoolLabelKey]; {
		case serves[node.Name]:
			r.Nodes++
		case pools[pool]:
			r.add(Left, "Node "+node.Name, "metadata.labels", "it has the label of NodePool "+pool+" and no NodeClaim: Tenon neither counts nor removes it", "")
		}
		if taints := startupTaints(node); taints != "" && serves[node.Name] {
			r.add(Waits, "Node "+node.Name, "spec.taints", "it is not ready for pods yet, or is about to be removed: it has "+taints, "wait, or look at the NodeClaim's conditions")
		}
	}
	return nil
}

// startupTaints lists the taints of Karpenter's on a Node.
func startupTaints(node *corev1.Node) string {
	var names []string
	for _, taint := range node.Spec.Taints {
		if taint.Key == karpv1.DisruptedTaintKey || taint.Key == karpv1.UnregisteredTaintKey {
			names = append(names, taint.Key)
		}
	}
	return strings.Join(names, ", ")
}
