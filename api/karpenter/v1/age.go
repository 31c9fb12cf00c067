package v1

import (
	"fmt"
	"time"
)

// MinimumNodeAge is how old a node of the pool has to be before it goes for being empty or underutilized, by the
// annotation MinimumNodeAgeAnnotationKey; zero where there is none. An error says what is wrong with it.
func (in *NodePool) MinimumNodeAge() (time.Duration, error) {
	value := in.Annotations[MinimumNodeAgeAnnotationKey]
	if value == "" {
		return 0, nil
	}
	age, err := time.ParseDuration(value)
	if err != nil || age < 0 {
		return 0, fmt.Errorf("annotation %s: %q is not a duration such as 2h", MinimumNodeAgeAnnotationKey, value)
	}
	return age, nil
}
