package workflows

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var update = flag.Bool("update", false, "write testdata/payloads anew")

// payloads returns all types that travel between workflows, activities and people: the inputs and results of activities and
// workflows, and the contents of signals and updates.
func payloads() []reflect.Type {
	seen := map[reflect.Type]bool{}
	var all []reflect.Type
	add := func(types ...reflect.Type) {
		for _, t := range types {
			if t.Kind() == reflect.Struct && t.NumField() > 0 && !seen[t] {
				seen[t] = true
				all = append(all, t)
			}
		}
	}
	activities := reflect.TypeFor[Activities]()
	for i := range activities.NumMethod() {
		method := activities.Method(i).Type
		add(method.In(1), method.Out(0))
	}
	for _, workflow := range []any{Provisioning, Launch, NodeClaim, Drain, Disruption, Replacement, ReplacementOrder, Approval, Sweep} {
		f := reflect.TypeOf(workflow)
		add(f.In(1))
		if f.NumOut() == 2 {
			add(f.Out(0))
		}
	}
	add(reflect.TypeFor[Ending](), reflect.TypeFor[DrainWaiter](), reflect.TypeFor[DrainOrder](), reflect.TypeFor[DrainStatus](), reflect.TypeFor[PodsPending](),
		reflect.TypeFor[CapacityRefused](), reflect.TypeFor[Ended](), reflect.TypeFor[ApprovalDecision](), reflect.TypeFor[PodQuestion](), reflect.TypeFor[PodAnswer](), reflect.TypeFor[NodeQuestion](), reflect.TypeFor[NodeAnswer]())
	return all
}

// ofEC2 is the part of a launch request that the AWS provider writes and reads.
const ofEC2 = `{"capacityBlock":true,"interruptible":true,"prioritized":true,"overrides":[{"instanceType":"InstanceType","zone":"Zone","subnet":"Subnet",` +
	`"launchTemplate":"LaunchTemplate","image":"Image","price":2.5,"reservation":"Reservation"}],"tags":{"key":"Tags"},"profile":"Profile","context":"Context"}`

// fill gives every field a value that is not zero, the same each time.
func fill(value reflect.Value, name string) {
	switch at := value.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		return
	case *resource.Quantity:
		*at = resource.MustParse("1500m")
		return
	case *json.RawMessage:
		*at = json.RawMessage(ofEC2)
		return
	case *corev1.ResourceList:
		*at = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(name)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(int64(len(name)))
	case reflect.Float64:
		value.SetFloat(float64(len(name)) / 2)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), name)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(key, "key")
		fill(element, name)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), name)
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				fill(value.Field(i), value.Type().Field(i).Name)
			}
		}
	default:
		panic(fmt.Sprintf("%s is a %s, which no payload should have", name, value.Kind()))
	}
}

// untagged matches the JSON key of a field without a tag: renaming the field would lose its value in existing histories.
var untagged = regexp.MustCompile(`"[A-Z][A-Za-z]*":`)

// TestPayloadsAreWhatHistoriesHaveKept checks the JSON of every payload: a field that is renamed or changes its type would
// be empty in running workflows.
func TestPayloadsAreWhatHistoriesHaveKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "payloads")
	known := map[string]bool{}
	for _, payload := range payloads() {
		name := strings.NewReplacer("workflows.", "", ".", "_").Replace(payload.String()) + ".json"
		known[name] = true
		filled := reflect.New(payload)
		fill(filled.Elem(), payload.Name())
		got, err := json.MarshalIndent(filled.Interface(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if keys := untagged.FindAllString(string(got), -1); len(keys) > 0 {
			t.Errorf("%s: fields without a JSON tag: %v", payload, keys)
		}
		path := filepath.Join(dir, name)
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%s is a new payload: go test ./workflows -run Payloads -update: %v", payload, err)
			continue
		}
		if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(got)); diff != "" {
			t.Errorf("%s (-kept +now): a field may be added, and none renamed\n%s", payload, diff)
		}
		read := reflect.New(payload)
		if err := json.Unmarshal(want, read.Interface()); err != nil {
			t.Errorf("%s cannot be read: %v", payload, err)
		} else if !reflect.DeepEqual(read.Interface(), filled.Interface()) {
			again, _ := json.MarshalIndent(read.Interface(), "", "  ")
			if diff := cmp.Diff(string(got), string(again)); diff != "" {
				t.Errorf("%s loses something when it is read (-kept +read):\n%s", payload, diff)
			}
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file.Name()] {
			t.Errorf("%s belongs to no payload any more", file.Name())
		}
	}
}
