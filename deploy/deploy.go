// Package deploy holds what people apply to a cluster: the custom resource definitions, example resources, the Helm
// chart, the IAM policies and the settings of Temporal's own chart.
//
// The definitions, the examples and the worker's permissions are embedded, because the laboratory on one machine (tenon-lab dev)
// applies the very files that people apply by hand. The definitions are generated from package api. The examples are written
// by hand and name the cluster as ${CLUSTER_NAME}, which Example replaces.
package deploy

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed crds examples chart/rbac iam/*.json kwok temporal/values.yaml temporal/authorizer.yaml
var files embed.FS

// clusterPlaceholder stands for the cluster's name in the examples. Its form suits envsubst too.
const clusterPlaceholder = "${CLUSTER_NAME}"

// CRDs returns every custom resource definition as YAML, keyed by file name, such as karpenter.sh_nodepools.yaml.
func CRDs() (map[string][]byte, error) {
	entries, err := fs.Glob(files, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list custom resource definitions: %w", err)
	}
	crds := make(map[string][]byte, len(entries))
	for _, name := range entries {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read custom resource definition: %w", err)
		}
		crds[strings.TrimPrefix(name, "crds/")] = data
	}
	return crds, nil
}

// Examples returns the names of the example files in alphabetical order, without their ending: default-nodeclass,
// default-nodepool and so on.
func Examples() ([]string, error) {
	entries, err := fs.Glob(files, "examples/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list examples: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, name := range entries {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(name, "examples/"), ".yaml"))
	}
	return names, nil
}

// Example returns one example as YAML, possibly of several documents, for the named cluster. The error wraps fs.ErrNotExist
// if there is no example of that name.
func Example(name, cluster string) ([]byte, error) {
	data, err := files.ReadFile("examples/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read example: %w", err)
	}
	return []byte(strings.ReplaceAll(string(data), clusterPlaceholder, cluster)), nil
}

// DefaultNodeClass returns the EC2NodeClass named default, for the named cluster, as YAML.
func DefaultNodeClass(cluster string) ([]byte, error) { return Example("default-nodeclass", cluster) }

// DefaultNodePool returns the NodePool named default, which uses the default node class, as YAML.
func DefaultNodePool(cluster string) ([]byte, error) { return Example("default-nodepool", cluster) }
