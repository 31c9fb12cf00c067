package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// variants is how many files of random manifests there are, and seed is where they come from.
const variants, seed = 300, 20240814

// writeVariants writes random manifests: those that have every field, each time without some of the fields that their
// definitions do not require.
func writeVariants(definitions definitions, testdata, to string) error {
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range variants {
		file := []string{"alpha.yaml", "beta.yaml"}[n%2]
		data, err := os.ReadFile(filepath.Join(testdata, file))
		if err != nil {
			return err
		}
		var written bytes.Buffer
		for _, document := range bytes.Split(data, []byte("\n---")) {
			var object map[string]any
			if err := yaml.Unmarshal(document, &object); err != nil {
				return err
			}
			spec, _ := object["spec"].(map[string]any)
			thin(random, definitions.of(object).Properties["spec"], spec)
			text, err := yaml.Marshal(object)
			if err != nil {
				return err
			}
			fmt.Fprintf(&written, "---\n%s", text)
		}
		if err := os.WriteFile(filepath.Join(to, fmt.Sprintf("random-%03d.yaml", n)), written.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// of returns the newest released definition of an object's kind.
func (d definitions) of(object map[string]any) apiextensionsv1.JSONSchemaProps {
	kind, _ := object["kind"].(string)
	names := map[string]string{"Provisioner": "provisioners.karpenter.sh", "AWSNodeTemplate": "awsnodetemplates.karpenter.k8s.aws",
		"NodePool": "nodepools.karpenter.sh", "EC2NodeClass": "ec2nodeclasses.karpenter.k8s.aws"}
	versions := d[names[kind]]
	return versions[len(versions)-1]
}

// needed are fields that a manifest needs although its definition does not require them, because rules or webhooks did.
var needed = []string{"role", "amiFamily", "subnetSelector", "securityGroupSelector", "subnetSelectorTerms", "securityGroupSelectorTerms", "providerRef",
	"consolidationPolicy", "consolidateAfter", "disruption", "evictionSoft", "evictionSoftGracePeriod", "snapshotID", "tags", "id", "name", "schedule", "duration",
	"key", "operator", "values"}

// thin removes each field with a chance of one half, unless something needs it.
func thin(random *rand.Rand, schema apiextensionsv1.JSONSchemaProps, object map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		value, there := object[name]
		if !there {
			continue
		}
		if !slices.Contains(schema.Required, name) && !slices.Contains(needed, name) && random.IntN(2) == 0 {
			delete(object, name)
			continue
		}
		property := schema.Properties[name]
		switch v := value.(type) {
		case map[string]any:
			thin(random, property, v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok && property.Items != nil && property.Items.Schema != nil {
					thin(random, *property.Items.Schema, m)
				}
			}
		}
	}
}
