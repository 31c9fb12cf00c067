package model

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Valid says whether there is such a way to pack.
func (p Packing) Valid() bool { return p == PackingSpread || p == PackingCheapest }

// PackingOf is how the pods of a NodePool are packed: as its annotation tenon.sh/packing says, or in the given way where it
// says nothing or nothing that can be read.
func PackingOf(pool *karpv1.NodePool, otherwise Packing) Packing {
	if own, err := pool.Packing(); err == nil && own != "" {
		return Packing(own)
	}
	return otherwise
}
