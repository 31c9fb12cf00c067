package v1

import (
	"fmt"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// EC2NodeClassHashVersion is the version of EC2NodeClass.Hash. Hashes of different versions say nothing about each
// other. It is the version of Karpenter v1.14, which has the same fields as this package; the "v6" of later releases
// belongs to a spec.kubelet of any shape.
const EC2NodeClassHashVersion = "v5"

// Hash returns the hash of the parts of the class whose change makes nodes drift: everything but selectors, which are
// compared by what they select, and the number of address prefixes. caBundle is the cluster's certificate bundle, base64
// encoded, where the worker knows it, else "". It is Karpenter's hash v5, bit for bit: drift would otherwise be found on
// every node when one takes over from the other.
func (in *EC2NodeClass) Hash(caBundle string) (string, error) {
	// The family counts by what it resolves to, so that writing down what the alias implies is not drift.
	hash, err := karpv1.Hash([]any{in.Spec, in.AMIFamily(), caBundle})
	if err != nil {
		return "", fmt.Errorf("hashing EC2NodeClass %s: %w", in.Name, err)
	}
	return hash, nil
}
