package ec2sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	sdkeks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	sdkfis "github.com/aws/aws-sdk-go-v2/service/fis"
	sdkiam "github.com/aws/aws-sdk-go-v2/service/iam"
	sdkpricing "github.com/aws/aws-sdk-go-v2/service/pricing"
	sdksqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sdkssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	sdksts "github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
)

// TestModelIsThePublishedOne compares model.json with the AWS SDK for Go, which AWS generates from the models it
// publishes: the types and enums of all parameters, their names on the wire as the SDK writes them, the required
// parameters as the SDK checks them, and the filter names that its documentation lists. Limits and patterns are not in
// the SDK.
func TestModelIsThePublishedOne(t *testing.T) {
	t.Parallel()
	sent := &sentRequest{}
	clients := sdkClients(sent)
	for name, service := range readModels() {
		client := reflect.ValueOf(clients[name])
		for operation, of := range service.Operations {
			t.Run(name+":"+operation, func(t *testing.T) {
				method := client.MethodByName(operation)
				if !method.IsValid() {
					t.Fatal("the SDK does not have the operation")
				}
				input := method.Type().In(1).Elem()
				p := published{T: t, serviceModel: service, seen: map[string]bool{}}
				p.compare("", of.Input, input)
				call := func(scalars bool) error {
					in := reflect.New(input)
					fillRequest(in.Elem(), scalars, nil)
					return method.Call([]reflect.Value{reflect.ValueOf(t.Context()), in})[1].Interface().(error)
				}
				*sent = sentRequest{}
				if err := call(true); !errors.Is(err, errKept) {
					t.Fatal(err)
				}
				modelled := map[string]bool{}
				p.wireNames(modelled, "", of.Input, nil)
				if diff := cmp.Diff(slices.Sorted(maps.Keys(modelled)), sent.names(t)); diff != "" {
					t.Errorf("names on the wire (-model +SDK):\n%s", diff)
				}
				required := map[string]bool{}
				p.required(required, operation+"Input", of.Input, nil)
				var missing smithy.InvalidParamsError
				var refused []string
				if errors.As(call(false), &missing) {
					for _, err := range missing.Errs() {
						if param := smithy.InvalidParamError(nil); errors.As(err, &param) {
							refused = append(refused, param.Field())
						}
					}
				}
				slices.Sort(refused)
				if diff := cmp.Diff(slices.Sorted(maps.Keys(required)), refused); diff != "" {
					t.Errorf("required parameters (-model +SDK):\n%s", diff)
				}
			})
		}
	}
}

// errKept is the answer to every request that a sentRequest keeps.
var errKept = errors.New("the request was kept")

// sentRequest is an HTTP client that keeps the last request instead of sending it.
type sentRequest struct {
	url  *url.URL
	body []byte
}

func (s *sentRequest) Do(r *http.Request) (*http.Response, error) {
	s.url = r.URL
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		s.body = body
	}
	return nil, errKept
}

// sdkClients returns the SDK's client for each service of the model. Their requests end at sent.
func sdkClients(sent *sentRequest) map[string]any {
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String("http://kept.invalid"), HTTPClient: sent,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
	return map[string]any{
		"arc-zonal-shift": arczonalshift.NewFromConfig(cfg), "autoscaling": autoscaling.NewFromConfig(cfg),
		"ec2": ec2.NewFromConfig(cfg), "eks": sdkeks.NewFromConfig(cfg), "events": eventbridge.NewFromConfig(cfg), "fis": sdkfis.NewFromConfig(cfg), "iam": sdkiam.NewFromConfig(cfg),
		"pricing": sdkpricing.NewFromConfig(cfg), "sqs": sdksqs.NewFromConfig(cfg), "ssm": sdkssm.NewFromConfig(cfg), "sts": sdksts.NewFromConfig(cfg),
	}
}

// names returns the names of all parameters of the request, sorted. The first item of a list is named 1, a map's key k.
func (s *sentRequest) names(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	if form, err := url.ParseQuery(string(s.body)); err == nil && form.Get("Action") != "" {
		for name := range form {
			found[name] = name != "Action" && name != "Version"
		}
	} else if len(s.body) > 0 {
		var body any
		if err := json.NewDecoder(bytes.NewReader(s.body)).Decode(&body); err != nil {
			t.Fatalf("%q: %v", s.body, err)
		}
		jsonNames(found, "", body)
	}
	maps.DeleteFunc(found, func(_ string, counts bool) bool { return !counts })
	return slices.Sorted(maps.Keys(found))
}

func jsonNames(found map[string]bool, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			jsonNames(found, join(path, name), below)
		}
	case []any:
		for _, below := range value {
			jsonNames(found, join(path, "1"), below)
		}
	default:
		found[path] = true
	}
}

// fillRequest gives a value to everything below v that has none: one item to every list and map. Without scalars it leaves these
// empty, and lists of them. Types within themselves are filled once.
func fillRequest(v reflect.Value, scalars bool, within []reflect.Type) {
	holds := func(t reflect.Type) bool {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]()
	}
	switch v.Kind() {
	case reflect.Pointer:
		if (scalars || holds(v.Type())) && !slices.Contains(within, v.Type().Elem()) {
			v.Set(reflect.New(v.Type().Elem()))
			fillRequest(v.Elem(), scalars, within)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)))
			return
		}
		within = append(slices.Clip(within), v.Type())
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillRequest(v.Field(i), scalars, within)
			}
		}
	case reflect.Slice:
		if (scalars || holds(v.Type().Elem())) && !slices.Contains(within, v.Type().Elem()) {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fillRequest(v.Index(0), scalars, within)
		}
	case reflect.Map:
		if scalars || holds(v.Type().Elem()) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString("k")
			fillRequest(value, scalars, within)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		if !scalars {
			return
		}
		v.SetString("x")
		if values := enumValues(v.Type()); len(values) > 0 {
			v.SetString(values[0])
		}
	case reflect.Bool:
		v.SetBool(scalars)
	case reflect.Int32, reflect.Int64:
		if scalars {
			v.SetInt(1)
		}
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		if scalars {
			v.SetFloat(1)
		}
	default:
		panic(fmt.Sprintf("a parameter of type %v", v.Type()))
	}
}

// enumValues returns the values of a type of the SDK, or nil if it is no enum.
func enumValues(t reflect.Type) []string {
	method, ok := t.MethodByName("Values")
	if !ok {
		return nil
	}
	var values []string
	for _, v := range method.Func.Call([]reflect.Value{reflect.Zero(t)})[0].Seq2() {
		values = append(values, v.String())
	}
	return values
}

// published compares the shapes of a service with the SDK's types.
type published struct {
	*testing.T
	*serviceModel
	seen map[string]bool
}

// compare compares a shape, and everything below it, with a type.
func (p published) compare(path, shapeName string, t reflect.Type) {
	s := p.Shapes[shapeName]
	if s == nil {
		p.Errorf("%s: the model has no shape %s", path, shapeName)
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if kinds := map[string][]reflect.Kind{
		"structure": {reflect.Struct}, "list": {reflect.Slice}, "map": {reflect.Map}, "string": {reflect.String}, "integer": {reflect.Int32}, "long": {reflect.Int64},
		"boolean": {reflect.Bool}, "timestamp": {reflect.Struct}, "double": {reflect.Float64}, "float": {reflect.Float32}, "blob": {reflect.Slice},
	}[s.Type]; !slices.Contains(kinds, t.Kind()) {
		p.Errorf("%s: %s in the model is %v in the SDK", path, s.Type, t)
		return
	}
	switch s.Type {
	case "structure":
		if p.seen[shapeName] {
			return
		}
		p.seen[shapeName] = true
		p.compareMembers(path, s, t)
	case "list":
		p.compare(path+"[]", s.Member.Shape, t.Elem())
	case "map":
		p.compare(path+"[]", s.Value, t.Elem())
	case "string":
		values := enumValues(t)
		slices.Sort(values)
		if shapeName == "InstanceType" && len(s.Enum) == 0 {
			return // see publishedModel
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(s.Enum)), values); diff != "" {
			p.Errorf("%s: values (-model +SDK):\n%s", path, diff)
		}
	}
}

func (p published) compareMembers(path string, s *shape, t reflect.Type) {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		if field := t.Field(i); field.IsExported() {
			fields[field.Name] = field.Type
		}
	}
	for name, member := range s.Members {
		field := strings.ToUpper(name[:1]) + name[1:]
		if fields[field] == nil {
			p.Errorf("%s: the SDK does not have it", join(path, name))
			continue
		}
		p.compare(join(path, name), member.Shape, fields[field])
		delete(fields, field)
	}
	for field := range fields {
		p.Errorf("%s: the model does not have it", join(path, field))
	}
}

// wireNames adds the names of a parameter and everything below it on the wire, as sentRequest.names does.
func (p published) wireNames(names map[string]bool, path, shapeName string, within []string) {
	s, check := p.Shapes[shapeName], modelCheck{service: p.serviceModel}
	if s == nil {
		return
	}
	switch s.Type {
	case "structure":
		if slices.Contains(within, shapeName) {
			return
		}
		for name, member := range s.Members {
			if member.Location != "" {
				continue
			}
			if check.service.Protocol == "ec2" || check.service.Protocol == "query" {
				name = check.wireName(name, member)
			}
			p.wireNames(names, join(path, name), member.Shape, append(slices.Clip(within), shapeName))
		}
	case "list":
		if p.Protocol == "query" && !s.Flattened {
			path += "." + s.itemLevel()
		}
		p.wireNames(names, join(path, "1"), s.Member.Shape, within)
	case "map":
		p.wireNames(names, join(path, "k"), s.Value, within)
	default:
		names[path] = true
	}
}

// required adds the required parameters that a request with empty structures lacks, named as the SDK names them.
func (p published) required(names map[string]bool, path, shapeName string, within []string) {
	s := p.Shapes[shapeName]
	if s == nil {
		return
	}
	switch s.Type {
	case "structure":
		if slices.Contains(within, shapeName) {
			return
		}
		for name, member := range s.Members {
			below := path + "." + strings.ToUpper(name[:1]) + name[1:]
			// The SDK makes up tokens itself.
			if slices.Contains(s.Required, name) && !p.holds(member.Shape) && below != path+".ClientToken" {
				names[below] = true
			}
			p.required(names, below, member.Shape, append(slices.Clip(within), shapeName))
		}
	case "list":
		p.required(names, path+"[0]", s.Member.Shape, within)
	case "map":
		p.required(names, path+`["k"]`, s.Value, within)
	}
}

// holds reports whether fillRequest makes a value of a shape although there are no scalars.
func (p published) holds(shapeName string) bool {
	switch s := p.Shapes[shapeName]; s.Type {
	case "structure":
		return true
	case "list":
		return p.Shapes[s.Member.Shape].Type == "structure"
	case "map":
		return p.Shapes[s.Value].Type == "structure"
	}
	return false
}

// documentedFilter is an item of the documentation of a parameter that begins with the name of a filter.
var documentedFilter = regexp.MustCompile(`(?m)^  -\s+([a-z]\S*)(?: :)?\s+-\s`)

// filterValues are items of the documentation that are values of the filter above them: severities of findings in images.
var filterValues = []string{"critical", "high", "medium", "low", "informational"}

// TestFiltersAreTheDocumentedOnes compares the filter names of the model with those that the SDK's documentation lists.
func TestFiltersAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2/service/ec2").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, compared := strings.TrimSpace(string(out)), 0
	service := readModels()["ec2"]
	for operation, of := range service.Operations {
		for name, member := range service.Shapes[of.Input].Members {
			if !strings.HasPrefix(name, "Filter") {
				continue
			}
			documented := map[string]bool{}
			for _, item := range documentedFilter.FindAllStringSubmatch(fieldDoc(t, filepath.Join(dir, "api_op_"+operation+".go"), name), -1) {
				switch name := item[1]; {
				case name == "tag:":
					documented["tag:<key>"] = true // as the model spells it
				case !slices.Contains(filterValues, name):
					documented[name] = true
				}
			}
			modelled := map[string]bool{}
			for _, filter := range member.Filters {
				modelled[filter] = true
			}
			if diff := cmp.Diff(modelled, documented); diff != "" {
				t.Errorf("%s: filters (-model +SDK):\n%s", operation, diff)
			}
			compared += len(documented)
		}
	}
	if compared < 100 {
		t.Errorf("only %d filters were found", compared)
	}
}

// fieldDoc returns the comment of a field in a Go file.
func fieldDoc(t *testing.T, path, name string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var doc string
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && len(field.Names) == 1 && field.Names[0].Name == name {
			doc = field.Doc.Text()
		}
		return true
	})
	return doc
}
