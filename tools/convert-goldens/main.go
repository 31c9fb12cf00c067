// Command convert-goldens has Karpenter's own released code convert older manifests, and records the results as golden files
// for api/admission, which compares what package convert makes of the same manifests.
//
// The code is unmodified, from two releases: v0.32.10 of the AWS provider, the last to know v1alpha1 and v1alpha5, and v1.0.8
// of provider and core, whose webhooks convert v1beta1 to v1. Of v0.32's core, which is no longer published, the module core
// beside this file has the names that the provider's code refers to; so the one step between Provisioner and NodePool that
// was core's own is missing, and only the defaults of Provisioners are recorded. Before a v1beta1 object is converted it gets
// the defaults of the released definitions, as an API server gives them.
//
// The definitions are also the source of fields.json, the list of all fields that older manifests can have.
//
//	go run . -root ../..          # write the golden files
//	go run . -root ../.. -check   # fail if they are not what Karpenter's code says
//	go run . -published DIR       # the same for DIR, after writing the releases' own examples and random manifests there
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	awsv1beta1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1beta1"
	oldaws "github.com/aws/karpenter/pkg/apis/v1alpha1"
	oldcore "github.com/aws/karpenter/pkg/apis/v1alpha5"
	"github.com/aws/karpenter/pkg/utils/nodeclass"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpv1beta1 "sigs.k8s.io/karpenter/pkg/apis/v1beta1"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/yaml"
)

func main() {
	root := flag.String("root", filepath.Join("..", ".."), "directory of the main module")
	check := flag.Bool("check", false, "compare with the golden files instead of writing them")
	published := flag.String("published", "", "directory to write more manifests to, with their golden files")
	flag.Parse()
	if err := run(filepath.Join(*root, "internal", "convert", "testdata"), *published, *check); err != nil {
		fmt.Fprintf(os.Stderr, "convert-goldens: %v\n", err)
		os.Exit(1)
	}
}

// run converts the manifests in testdata, or more manifests that it writes to another directory before.
func run(testdata, published string, check bool) error {
	definitions, err := released()
	if err != nil {
		return err
	}
	if published == "" {
		return record(definitions, testdata, check)
	}
	if err := copyExamples(published); err != nil {
		return err
	}
	if err := writeVariants(definitions, testdata, published); err != nil {
		return err
	}
	return record(definitions, published, false)
}

// record converts the manifests of a directory, and writes or checks the golden files in its directory karpenter.
func record(definitions definitions, testdata string, check bool) error {
	inputs, err := filepath.Glob(filepath.Join(testdata, "*.yaml"))
	if err != nil || len(inputs) == 0 {
		return fmt.Errorf("no manifests in %s: %w", testdata, err)
	}
	golden := map[string][]byte{}
	if golden["fields.json"], err = json.MarshalIndent(definitions.fields(), "", "  "); err != nil {
		return err
	}
	for _, input := range inputs {
		objects, err := convertFile(definitions, input)
		if err != nil {
			return fmt.Errorf("%s: %w", input, err)
		}
		if golden[strings.TrimSuffix(filepath.Base(input), ".yaml")+".json"], err = json.MarshalIndent(objects, "", "  "); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(testdata, "karpenter"), 0o755); err != nil {
		return err
	}
	for name, data := range golden {
		path := filepath.Join(testdata, "karpenter", name)
		data = append(data, '\n')
		if !check {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				return err
			}
			continue
		}
		if committed, err := os.ReadFile(path); err != nil || !bytes.Equal(committed, data) {
			return fmt.Errorf("%s is not what Karpenter's code says now: run without -check (%v)", path, err)
		}
	}
	return nil
}

// converted is what Karpenter makes of one old object.
type converted struct {
	// From is the kind and name of the old object.
	From string `json:"from"`
	// Object is the v1 object.
	Object any `json:"object,omitempty"`
	// Requirements are a Provisioner's with its defaults.
	Requirements any `json:"requirements,omitempty"`
}

// convertFile converts the objects of a file that Karpenter's code knows.
func convertFile(definitions definitions, path string) ([]converted, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := []converted{}
	for _, document := range bytes.Split(data, []byte("\n---")) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		if object == nil {
			continue
		}
		results, err := convert(definitions, object)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

// convert converts one object.
func convert(definitions definitions, object map[string]any) ([]converted, error) {
	metadata, _ := object["metadata"].(map[string]any)
	from := fmt.Sprintf("%v %v", object["kind"], metadata["name"])
	switch fmt.Sprintf("%v %v", object["apiVersion"], object["kind"]) {
	case "karpenter.sh/v1alpha5 Provisioner":
		var provisioner oldcore.Provisioner
		if err := into(object, &provisioner); err != nil {
			return nil, err
		}
		provisioner.SetDefaults(context.Background())
		all := []converted{{From: from, Requirements: provisioner.Spec.Requirements}}
		if provisioner.Spec.Provider != nil {
			inline, err := oldaws.DeserializeProvider(provisioner.Spec.Provider.Raw)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", from, err)
			}
			template := &oldaws.AWSNodeTemplate{ObjectMeta: provisioner.ObjectMeta, Spec: oldaws.AWSNodeTemplateSpec{AWS: *inline}}
			class, err := nodeClassOf(definitions, template)
			if err != nil {
				return nil, err
			}
			all = append(all, converted{From: from, Object: class})
		}
		return all, nil
	case "karpenter.k8s.aws/v1alpha1 AWSNodeTemplate":
		var template oldaws.AWSNodeTemplate
		if err := into(object, &template); err != nil {
			return nil, err
		}
		class, err := nodeClassOf(definitions, &template)
		return []converted{{From: from, Object: class}}, err
	case "karpenter.sh/v1beta1 NodePool":
		if err := definitions.complete("nodepools.karpenter.sh", object); err != nil {
			return nil, err
		}
		var old karpv1beta1.NodePool
		if err := into(object, &old); err != nil {
			return nil, err
		}
		pool := &karpv1.NodePool{}
		ctx := injection.WithNodeClasses(context.Background(), []schema.GroupVersionKind{{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}})
		if err := pool.ConvertFrom(ctx, &old); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		written, err := asWritten(pool, "karpenter.sh/v1", "NodePool")
		return []converted{{From: from, Object: written}}, err
	case "karpenter.k8s.aws/v1beta1 EC2NodeClass":
		class, err := webhook(definitions, object)
		return []converted{{From: from, Object: class}}, err
	}
	return nil, nil
}

// nodeClassOf converts an AWSNodeTemplate by way of v1beta1, with the family that it had without one.
func nodeClassOf(definitions definitions, template *oldaws.AWSNodeTemplate) (map[string]any, error) {
	if template.Spec.AMIFamily == nil {
		template.Spec.AMIFamily = &oldaws.AMIFamilyAL2
	}
	var beta map[string]any
	if err := into(nodeclass.New(template), &beta); err != nil {
		return nil, err
	}
	return webhook(definitions, beta)
}

// webhook converts a v1beta1 EC2NodeClass as the conversion webhook does.
func webhook(definitions definitions, object map[string]any) (map[string]any, error) {
	if err := definitions.complete("ec2nodeclasses.karpenter.k8s.aws", object); err != nil {
		return nil, err
	}
	var old awsv1beta1.EC2NodeClass
	if err := into(object, &old); err != nil {
		return nil, err
	}
	class := &awsv1.EC2NodeClass{}
	if err := class.ConvertFrom(context.Background(), &old); err != nil {
		return nil, err
	}
	return asWritten(class, "karpenter.k8s.aws/v1", "EC2NodeClass")
}

// asWritten returns an object without what the API server fills in.
func asWritten(typed any, apiVersion, kind string) (map[string]any, error) {
	var object map[string]any
	if err := into(typed, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	delete(object["metadata"].(map[string]any), "creationTimestamp")
	object["apiVersion"], object["kind"] = apiVersion, kind
	return object, nil
}

// into copies a value into another type by way of JSON.
func into(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
