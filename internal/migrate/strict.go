package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
)

// strict reads a document into a typed object, and returns the paths of the fields of its spec that the type does not have.
func strict(document json.RawMessage, into any) (unknown []string, err error) {
	wrong, err := kjson.UnmarshalStrict(document, into, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	for _, one := range wrong {
		var field kjson.FieldError
		if errors.As(one, &field) && strings.HasPrefix(field.FieldPath(), "spec.") {
			unknown = append(unknown, field.FieldPath())
		}
	}
	return unknown, nil
}
