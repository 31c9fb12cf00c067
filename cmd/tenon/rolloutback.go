package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// wayBack is what tenon rollout back changes.
type wayBack struct {
	NodePool     string `json:"nodePool"`
	EC2NodeClass string `json:"ec2NodeClass"`
	// PoolPatch and ClassPatch are JSON merge patches of the two objects; empty where nothing has to change.
	PoolPatch  json.RawMessage `json:"poolPatch,omitempty"`
	ClassPatch json.RawMessage `json:"classPatch,omitempty"`
	// Shared are the other NodePools whose nodes are made from the same class, and drift as well.
	Shared []string `json:"shared,omitempty"`
	// Note says what to know about the images.
	Note string `json:"note,omitempty"`
	// Done says that the objects were changed.
	Done bool `json:"done"`
}

// back restores what the nodes of a NodePool were made from before the rollout.
func (r *rolloutCommand) back(ctx context.Context, name string, flags rolloutFlags) error {
	pool, err := r.pool(ctx, name)
	if err != nil {
		return err
	}
	targets, err := pool.RolloutTargets()
	switch {
	case err != nil:
		return err
	case targets.Previous == nil:
		return fmt.Errorf("NodePool %s: it is not known what its nodes were made from before; that is recorded from the moment at which the NodePool has the annotation %s", name, karpv1.RolloutAnnotationKey)
	case targets.Current != nil && targets.Current.Target == targets.Previous.Target:
		return fmt.Errorf("NodePool %s: its nodes are made from what they were made from before already", name)
	}
	way, class, restored, err := r.wayBack(ctx, pool, targets.Previous)
	if err != nil {
		return err
	}
	if flags.yes {
		// The class first: a NodePool that names another class again finds it as it was.
		if len(way.ClassPatch) > 0 {
			before := class.DeepCopy()
			class.Spec = restored
			if err := r.kube.Patch(ctx, class, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{})); err != nil {
				return fmt.Errorf("restore EC2NodeClass %s: %w", class.Name, err)
			}
		}
		if err := r.write(ctx, name, karpv1.RolloutBack, flags.reason, func(pool *karpv1.NodePool) { pool.Spec.Template = *targets.Previous.Template }); err != nil {
			return err
		}
		way.Done = true
	}
	if r.json {
		return writeJSON(r.out, way)
	}
	return r.printWay(way)
}

// wayBack finds what has to change, and the spec that the class gets.
func (r *rolloutCommand) wayBack(ctx context.Context, pool *karpv1.NodePool, to *karpv1.RolloutTarget) (wayBack, *awsv1.EC2NodeClass, awsv1.EC2NodeClassSpec, error) {
	var restored awsv1.EC2NodeClassSpec
	if to.Template == nil || to.Template.Spec.NodeClassRef == nil || len(to.ClassSpec) == 0 {
		return wayBack{}, nil, restored, errors.New("what the nodes were made from before was not recorded completely")
	}
	class := &awsv1.EC2NodeClass{}
	way := wayBack{NodePool: pool.Name, EC2NodeClass: to.Template.Spec.NodeClassRef.Name}
	if err := r.kube.Get(ctx, kube.ObjectKey{Name: way.EC2NodeClass}, class); err != nil {
		return way, nil, restored, fmt.Errorf("read EC2NodeClass %s: %w", way.EC2NodeClass, err)
	}
	if err := json.Unmarshal(to.ClassSpec, &restored); err != nil {
		return way, nil, restored, fmt.Errorf("read what EC2NodeClass %s was: %w", way.EC2NodeClass, err)
	}
	way.Note = pin(&restored, to.Images)
	var err error
	if way.PoolPatch, err = patchOf("template", pool.Spec.Template, to.Template); err != nil {
		return way, nil, restored, err
	}
	if way.ClassPatch, err = patchOf("", class.Spec, restored); err != nil {
		return way, nil, restored, err
	}
	var pools karpv1.NodePoolList
	if err := r.kube.List(ctx, &pools); err != nil {
		return way, nil, restored, fmt.Errorf("list NodePools: %w", err)
	}
	for i := range pools.Items {
		if ref := pools.Items[i].Spec.Template.Spec.NodeClassRef; ref != nil && ref.Name == way.EC2NodeClass && pools.Items[i].Name != pool.Name {
			way.Shared = append(way.Shared, pools.Items[i].Name)
		}
	}
	return way, class, restored, nil
}

// patchOf returns the JSON merge patch of a spec, or of a field of it, from what it is to what it was; empty if they are the
// same.
func patchOf(field string, is, was any) (json.RawMessage, error) {
	from, err := json.Marshal(is)
	if err != nil {
		return nil, fmt.Errorf("encode what is: %w", err)
	}
	to, err := json.Marshal(was)
	if err != nil {
		return nil, fmt.Errorf("encode what was: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	if field != "" {
		patch = fmt.Appendf(nil, `{%q:%s}`, field, patch)
	}
	return fmt.Appendf(nil, `{"spec":%s}`, patch), nil
}

// pin has a class choose the images that it chose once, whatever is newer now, and returns what to know about that. An alias
// is pinned to the version that the names of the images have, since images that are named by their ids do not say for which
// machines they are.
func pin(spec *awsv1.EC2NodeClassSpec, images []karpv1.Image) string {
	if len(images) == 0 || !slices.ContainsFunc(spec.AMISelectorTerms, floats) {
		return ""
	}
	for i := range spec.AMISelectorTerms {
		alias, err := awsv1.ParseAlias(spec.AMISelectorTerms[i].Alias)
		if err != nil {
			continue
		}
		if version := versionOf(images); version != "" {
			alias.Version = version
			spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: alias.String()}}
			return "its images are pinned to " + alias.String()
		}
		if spec.AMIFamily == nil {
			spec.AMIFamily = &alias.Family
		}
	}
	spec.AMISelectorTerms = nil
	var ids []string
	for _, image := range images {
		ids = append(ids, image.ID)
	}
	slices.Sort(ids)
	for _, id := range ids {
		spec.AMISelectorTerms = append(spec.AMISelectorTerms, awsv1.AMISelectorTerm{ID: id})
	}
	return "its images are pinned to " + strings.Join(ids, ", ") + "; of several for one architecture, the newest is used for all instance types"
}

// floats says that a term may choose other images than it did.
func floats(term awsv1.AMISelectorTerm) bool {
	if term.Alias != "" {
		return strings.HasSuffix(term.Alias, "@"+awsv1.AliasVersionLatest)
	}
	return term.ID == ""
}

// imageVersions find the version in the name of an image of Amazon Linux and of Bottlerocket.
var imageVersions = []*regexp.Regexp{regexp.MustCompile(`-(v[0-9]{8})$`), regexp.MustCompile(`^bottlerocket-.*-(v[0-9]+\.[0-9]+\.[0-9]+)-`)}

// versionOf returns the version that all images have; empty if they have none, or several.
func versionOf(images []karpv1.Image) string {
	versions := map[string]bool{}
	for _, image := range images {
		found := ""
		for _, pattern := range imageVersions {
			if match := pattern.FindStringSubmatch(image.Name); match != nil {
				found = match[1]
			}
		}
		versions[found] = true
	}
	if len(versions) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(versions))[0]
}

// printWay shows the way back.
func (r *rolloutCommand) printWay(way wayBack) error {
	var text strings.Builder
	did := "would change"
	if way.Done {
		did = "changed"
	}
	for _, object := range []struct {
		kind, name string
		patch      json.RawMessage
	}{{"EC2NodeClass", way.EC2NodeClass, way.ClassPatch}, {"NodePool", way.NodePool, way.PoolPatch}} {
		if len(object.patch) > 0 {
			fmt.Fprintf(&text, "%s %s %s: %s\n", did, object.kind, object.name, object.patch)
		}
	}
	if way.Note != "" {
		fmt.Fprintf(&text, "%s\n", way.Note)
	}
	if len(way.Shared) > 0 {
		fmt.Fprintf(&text, "nodes of these NodePools are made from the same EC2NodeClass, and drift as well: %s\n", strings.Join(way.Shared, ", "))
	}
	text.WriteString("if the objects come from manifests (GitOps), change those too: what applies them undoes this\n")
	if !way.Done {
		text.WriteString("nothing was changed; --yes changes it\n")
	}
	_, err := fmt.Fprint(r.out, text.String())
	return err
}
