package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// object is what an object of Kubernetes is in JSON.
type object = map[string]any

// plainVariables are environment variables of containers whose values are no secrets, in addition to those of the worker's
// own flags.
var plainVariables = []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_TLS", "TEMPORAL_TLS_SERVER_NAME", "AWS_REGION", "AWS_DEFAULT_REGION", "GOGC", "GOMEMLIMIT", "GOMAXPROCS",
	"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"}

// reducer turns objects into what may leave the cluster.
type reducer struct {
	*Redactor
	// userData and tags keep what is otherwise left out of node classes. Even then they go through the redactor.
	userData, tags bool
	// variables are the environment variables of the worker's flags.
	variables []string
}

// of returns an object as JSON has it: without managed fields, with its annotations as a list of names, and with every text
// redacted.
func (r *reducer) of(from runtime.Object) (object, error) {
	encoded, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encode an object: %w", err)
	}
	var o object
	if err := json.Unmarshal(encoded, &o); err != nil {
		return nil, fmt.Errorf("decode an object: %w", err)
	}
	r.annotations(o)
	return o, nil
}

// annotations replaces the annotations of an object, and of every template in it, by the list of their names, and removes
// managed fields.
func (r *reducer) annotations(o object) {
	for key, value := range o {
		inner, nested := value.(object)
		switch {
		case key == "annotations" && nested:
			o[key] = keysOf(inner)
			r.count += len(inner)
		case key == "managedFields":
			delete(o, key)
		case nested:
			r.annotations(inner)
		}
	}
}

// decoded returns any value as JSON has it, with every text redacted.
func (r *reducer) decoded(from any) (any, error) {
	encoded, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return r.Value(value), nil
}

// plain is the reduction of objects that have nothing of their own to leave out.
func (r *reducer) plain(from runtime.Object) (object, error) {
	o, err := r.of(from)
	if err != nil {
		return nil, err
	}
	return r.Value(o).(object), nil
}

// nodeClass leaves out user data, the context and the values of tags.
func (r *reducer) nodeClass(from runtime.Object) (object, error) {
	o, err := r.of(from)
	if err != nil {
		return nil, err
	}
	if spec, ok := o["spec"].(object); ok {
		if data, is := spec["userData"].(string); is && !r.userData {
			spec["userData"] = r.sized(data)
		}
		if context, is := spec["context"].(string); is {
			spec["context"] = r.sized(context)
		}
	}
	if !r.tags {
		r.hideTags(o)
	}
	return r.Value(o).(object), nil
}

// hideTags replaces the values of all tags: those that instances get, and those by which things are selected.
func (r *reducer) hideTags(value any) {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			r.hideTags(inner)
		}
	case object:
		for key, inner := range value {
			tags, is := inner.(object)
			if key != "tags" || !is {
				r.hideTags(inner)
				continue
			}
			for tag := range tags {
				tags[tag] = r.hide()
			}
		}
	}
}

// node keeps what Tenon reads of a Node.
func (r *reducer) node(from runtime.Object) (object, error) {
	o, err := r.of(from)
	if err != nil {
		return nil, err
	}
	if status, ok := o["status"].(object); ok {
		maps.DeleteFunc(status, func(key string, _ any) bool {
			return !slices.Contains([]string{"capacity", "allocatable", "conditions", "nodeInfo", "phase"}, key)
		})
	}
	return r.Value(o).(object), nil
}

// workload keeps the values of environment variables only where they are settings of the worker, and of containers that
// are not the worker's neither commands nor arguments.
func (r *reducer) workload(from runtime.Object) (object, error) {
	o, err := r.of(from)
	if err != nil {
		return nil, err
	}
	r.containers(o)
	return r.Value(o).(object), nil
}

// containers reduces the containers of a pod or of a template, wherever they are.
func (r *reducer) containers(o object) {
	for key, value := range o {
		switch value := value.(type) {
		case object:
			r.containers(value)
		case []any:
			if key != "containers" && key != "initContainers" && key != "ephemeralContainers" {
				continue
			}
			for i, inner := range value {
				if container, ok := inner.(object); ok {
					r.container(container, key == "containers" && i == 0)
				}
			}
		}
	}
}

// container reduces one container. The chart's first one is the worker's.
func (r *reducer) container(c object, worker bool) {
	variables, _ := c["env"].([]any)
	for _, inner := range variables {
		variable, ok := inner.(object)
		if !ok {
			continue
		}
		name, _ := variable["name"].(string)
		if value, literal := variable["value"].(string); literal && value != "" && !(worker && r.isSetting(name)) {
			variable["value"] = r.hide()
		}
	}
	maps.DeleteFunc(c, func(key string, _ any) bool {
		command := key == "args" || key == "command" || strings.HasSuffix(key, "Probe") || key == "lifecycle"
		return command && !worker
	})
}

func (r *reducer) isSetting(name string) bool {
	return (slices.Contains(plainVariables, name) || slices.Contains(r.variables, name)) && !isSecret(name)
}

func keysOf(o object) []any {
	var keys []any
	for _, key := range slices.Sorted(maps.Keys(o)) {
		keys = append(keys, key)
	}
	return keys
}
