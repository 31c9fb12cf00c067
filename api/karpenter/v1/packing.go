package v1

import "fmt"

// Packing is what wins between plans of almost equal cost, by the annotation PackingAnnotationKey: PackingCheapest or
// PackingSpread; empty where there is none. An error says what is wrong with it.
func (in *NodePool) Packing() (string, error) {
	switch value := in.Annotations[PackingAnnotationKey]; value {
	case "", PackingCheapest, PackingSpread:
		return value, nil
	default:
		return "", fmt.Errorf("annotation %s: %q must be %s or %s", PackingAnnotationKey, value, PackingCheapest, PackingSpread)
	}
}
