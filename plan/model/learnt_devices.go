package model

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const (
	// devicesLearntFor is how long devices are remembered after the last node that had them: as long as the memory that nodes
	// have reported.
	devicesLearntFor = 60 * 24 * time.Hour
	// seenEvery is how exact LearntTemplate.Seen is: each renewal costs a write.
	seenEvery = 24 * time.Hour
	// maxLearntText limits the text of all devices of a NodePool in bytes. All annotations of an object may have 256 KiB.
	maxLearntText = 64 << 10
	// maxLearntPlain limits what a text expands to, as people can write annotations too.
	maxLearntPlain = 8 << 20
	// learntPool is the pool of learnt devices whose pool was named after their node.
	learntPool = "node"
)

// LearntDevices are the devices that drivers have published for nodes of one NodePool, by instance type. An annotation of the
// NodePool keeps them, so that a new process knows what nodes had that are gone.
type LearntDevices map[string]LearntTemplate

// LearntTemplate is what drivers publish for a node of one instance type.
type LearntTemplate struct {
	// Seen is when a node last had these devices, to the day.
	Seen time.Time `json:"seen"`
	// Slices do not say where the devices are.
	Slices []resourcev1.ResourceSliceSpec `json:"slices"`
}

// ParseLearntDevices is the inverse of Text. It fails if Text has not written the text.
func ParseLearntDevices(text string) (LearntDevices, error) {
	if text == "" {
		return nil, nil
	}
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("learnt devices: %w", err)
	}
	unpacking, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("learnt devices: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(unpacking, maxLearntPlain+1))
	if err == nil && len(plain) > maxLearntPlain {
		err = errors.New("they are too large")
	}
	var learnt LearntDevices
	if err == nil {
		err = json.Unmarshal(plain, &learnt)
	}
	if err != nil {
		return nil, fmt.Errorf("learnt devices: %w", err)
	}
	return learnt, nil
}

// Text returns the learnt devices as an annotation keeps them: JSON, compressed because the devices of a node are alike, in
// base64. It is empty for none. If they are too many, those that were seen last remain.
func (l LearntDevices) Text() (string, error) {
	kept := maps.Clone(l)
	for len(kept) > 0 {
		text, err := pack(kept)
		if err != nil || len(text) <= maxLearntText {
			return text, err
		}
		delete(kept, slices.MinFunc(SortedKeys(kept), func(a, b string) int { return cmp.Or(kept[a].Seen.Compare(kept[b].Seen), strings.Compare(b, a)) }))
	}
	return "", nil
}

func pack(l LearntDevices) (string, error) {
	plain, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("learnt devices: %w", err)
	}
	var packed bytes.Buffer
	packing := gzip.NewWriter(&packed)
	if _, err := packing.Write(plain); err != nil {
		return "", fmt.Errorf("learnt devices: %w", err)
	}
	if err := packing.Close(); err != nil {
		return "", fmt.Errorf("learnt devices: %w", err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// Renewed returns what is known of a NodePool's devices, given what nodes of it have published now: that replaces what their
// instance types had before. What no node has had for a long time is forgotten. It returns the receiver if nothing is new.
func (l LearntDevices) Renewed(published DeviceTemplates, pool string, now time.Time) LearntDevices {
	renewed, now := maps.Clone(l), now.UTC().Truncate(time.Second)
	changed := false
	for kind, complete := range published {
		if kind.Pool != pool {
			continue
		}
		specs := anyNodes(complete)
		before, known := l[kind.InstanceType]
		if known && equality.Semantic.DeepEqual(before.Slices, specs) && now.Sub(before.Seen) < seenEvery {
			continue
		}
		if renewed == nil {
			renewed = LearntDevices{}
		}
		renewed[kind.InstanceType], changed = LearntTemplate{Seen: now, Slices: specs}, true
	}
	for instanceType, template := range l {
		if now.Sub(template.Seen) >= devicesLearntFor && !renewed[instanceType].Seen.After(template.Seen) {
			delete(renewed, instanceType)
			changed = true
		}
	}
	if !changed {
		return l
	}
	return renewed
}

// anyNodes returns the specs of a node's slices without what is the node's own, so that they are equal for nodes with the same
// devices.
func anyNodes(published []*resourcev1.ResourceSlice) []resourcev1.ResourceSliceSpec {
	specs := make([]resourcev1.ResourceSliceSpec, len(published))
	for i, s := range published {
		spec := *s.Spec.DeepCopy()
		if spec.NodeName != nil && *spec.NodeName != "" {
			spec.Pool.Name = strings.ReplaceAll(spec.Pool.Name, *spec.NodeName, learntPool)
		}
		spec.NodeName, spec.Pool.Generation = nil, 1
		specs[i] = spec
	}
	slices.SortStableFunc(specs, func(a, b resourcev1.ResourceSliceSpec) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Pool.Name, b.Pool.Name), strings.Compare(nameOfFirst(a), nameOfFirst(b)))
	})
	return specs
}

// nameOfFirst orders the slices of a pool.
func nameOfFirst(spec resourcev1.ResourceSliceSpec) string {
	if len(spec.Devices) > 0 {
		return spec.Devices[0].Name
	}
	if len(spec.SharedCounters) > 0 {
		return "\x00" + spec.SharedCounters[0].Name
	}
	return ""
}

// Templates returns the learnt devices of a NodePool as templates of its new nodes.
func (l LearntDevices) Templates(pool string) DeviceTemplates {
	templates := DeviceTemplates{}
	for instanceType, template := range l {
		made := make([]*resourcev1.ResourceSlice, len(template.Slices))
		for i := range template.Slices {
			made[i] = &resourcev1.ResourceSlice{Spec: template.Slices[i]}
			made[i].Name = fmt.Sprintf("%s-%s-%d", pool, instanceType, i)
		}
		templates[NodeKind{Pool: pool, InstanceType: instanceType}] = made
	}
	return templates
}

// Or returns the templates, and those of others for kinds of nodes that have none.
func (t DeviceTemplates) Or(others DeviceTemplates) DeviceTemplates {
	all := t
	for kind, template := range others {
		if _, known := t[kind]; known {
			continue
		}
		if len(all) == len(t) {
			if all = maps.Clone(t); all == nil {
				all = DeviceTemplates{}
			}
		}
		all[kind] = template
	}
	return all
}
