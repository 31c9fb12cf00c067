package model

import (
	"cmp"
	"fmt"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Protection parses the annotation karpenter.sh/do-not-disrupt of a Node, a NodeClaim or a pod: "true" protects without
// end, a positive Go duration protects for that long, and "false" or an empty value does not protect. Any other value is an
// error that says so.
func Protection(value string) (protects bool, lasts time.Duration, err error) {
	switch value {
	case "", "false":
		return false, 0, nil
	case "true":
		return true, 0, nil
	}
	lasts, err = time.ParseDuration(value)
	if err != nil || lasts <= 0 {
		return false, 0, fmt.Errorf("annotation %s=%q is neither \"true\" nor a positive duration such as 4h, and is ignored",
			karpv1.DoNotDisruptAnnotationKey, value)
	}
	return true, lasts, nil
}

// protect reads what protects a Node or a claim. The older annotation counts only without the newer one, as for pods.
func (n *Node) protect(annotations map[string]string) {
	value := annotations[karpv1.DoNotDisruptAnnotationKey]
	if value == "" && annotations[karpv1.DoNotConsolidateAnnotationKey] == "true" {
		n.DoNotDisrupt, n.Protection = true, karpv1.DoNotConsolidateAnnotationKey
		return
	}
	protects, lasts, err := Protection(value)
	if n.DoNotDisrupt = protects; lasts > 0 {
		n.DoNotDisruptUntil = n.Created.Add(lasts)
	}
	if err != nil {
		n.Misprotected = value
	}
}

// protectAlso merges the Node's own protection into the claim's: the longer one wins.
func (n *Node) protectAlso(node *Node) {
	n.Misprotected = cmp.Or(node.Misprotected, n.Misprotected)
	switch {
	case !node.DoNotDisrupt || n.DoNotDisrupt && n.DoNotDisruptUntil.IsZero():
	case n.DoNotDisrupt && !node.DoNotDisruptUntil.IsZero() && !n.DoNotDisruptUntil.Before(node.DoNotDisruptUntil):
	default:
		n.DoNotDisrupt, n.DoNotDisruptUntil, n.Protection = true, node.DoNotDisruptUntil, node.Protection
	}
}
