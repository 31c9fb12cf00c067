package v1

import (
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// NodePoolHashVersion is the version of NodePool.Hash. Hashes of different versions say nothing about each other.
const NodePoolHashVersion = "v3"

// Hash returns the hash of the parts of the pool's template whose change makes nodes drift: everything but the
// requirements, which are compared with the nodes' labels instead. It is Karpenter's hash v3, bit for bit: drift would
// otherwise be found on every node when one takes over from the other.
func (in *NodePool) Hash() (string, error) {
	hash, err := Hash(in.Spec.Template)
	if err != nil {
		return "", fmt.Errorf("hashing the template of NodePool %s: %w", in.Name, err)
	}
	return hash, nil
}

// Hash returns the static hash of a value, in which the order of lists does not count and fields that are not set are
// the same as fields that do not exist. Names of types and fields and the order of fields take part, so renaming or
// moving a field changes the hash.
func Hash(value any) (string, error) {
	sum, err := hashstructure.Hash(value, hashstructure.FormatV2, &hashstructure.HashOptions{
		SlicesAsSets:    true,
		IgnoreZeroValue: true,
		ZeroNil:         true,
	})
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(sum, 10), nil
}
