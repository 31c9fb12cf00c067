package deploy_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// controllerPolicies are the worker's policies; together they are all that it may do.
var controllerPolicies = []string{"node-lifecycle", "instance-profiles", "discovery", "interruption"}

// cleanupPolicy is the policy of a person who runs tenon cleanup.
const cleanupPolicy = "cleanup"

// nodeGroupsPolicy is the policy of a person who runs tenon convert --from-asg.
const nodeGroupsPolicy = "node-groups"

// personsPolicies are the policies of people; the worker has none of them.
var personsPolicies = []string{cleanupPolicy, nodeGroupsPolicy}

// implied are actions that AWS authorises although no operation of that name is called.
var implied = map[string]string{
	"ec2:RunInstances":       "CreateFleet is authorised as RunInstances for what it launches",
	"ec2:CreateTags":         "creating something with tags",
	"iam:PassRole":           "launching with an instance profile, adding a role to one",
	"iam:TagInstanceProfile": "creating an instance profile with tags",
}

// authorisedAs are operations that AWS authorises under the name of another.
var authorisedAs = map[string]string{"sqs:DeleteMessageBatch": "sqs:DeleteMessage"}

// prefixes are the prefixes of the actions of services whose package in the SDK has another name.
var prefixes = map[string]string{"arczonalshift": "arc-zonal-shift", "eventbridge": "events"}

// list is a JSON value that may be one string or several.
type list []string

func (l *list) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		var one string
		err := json.Unmarshal(data, &one)
		*l = list{one}
		return err
	}
	return json.Unmarshal(data, (*[]string)(l))
}

type document struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid       string
	Effect    string
	Action    list
	Resource  list
	Principal map[string]list
	// Condition is operator → key → values.
	Condition map[string]map[string]list
}

func TestPolicyAllowsWhatIsCalledAndNoMore(t *testing.T) {
	t.Parallel()
	for dir, of := range map[string]struct {
		policies []string
		implied  map[string]string
	}{
		"../cloud/aws":            {controllerPolicies, implied},
		"../cloud/aws/cleanup":    {[]string{cleanupPolicy}, nil},
		"../cloud/aws/nodegroups": {[]string{nodeGroupsPolicy}, nil},
	} {
		called := awsOperations(t, dir)
		allowed := map[string]bool{}
		for _, name := range of.policies {
			for _, s := range readPolicy(t, name).Statement {
				for _, action := range s.Action {
					allowed[action] = true
				}
			}
		}
		for action, where := range called {
			if !allowed[action] {
				t.Errorf("%s calls %s, which no policy allows", where, action)
			}
		}
		for action := range allowed {
			if called[action] == "" && of.implied[action] == "" {
				t.Errorf("%s is allowed, but %s never calls it", action, dir)
			}
		}
	}
}

func TestPolicyChangesOnlyWhatIsTagged(t *testing.T) {
	t.Parallel()
	// unscoped are the statements that allow changes without requiring the cluster's tags.
	unscoped := map[string]string{
		"LaunchFromSharedResources":  "images, subnets and security groups belong to others; what is launched from them is scoped",
		"HandTheNodeRoleToInstances": "scoped to one role and to EC2 instead",
		"ReadTheInterruptionQueue":   "scoped to one queue instead",
	}
	for _, name := range slices.Concat(controllerPolicies, personsPolicies) {
		for _, s := range readPolicy(t, name).Statement {
			if s.Effect != "Allow" {
				t.Errorf("%s/%s: effect %q, want Allow", name, s.Sid, s.Effect)
			}
			for _, action := range s.Action {
				if strings.Contains(action, "*") {
					t.Errorf("%s/%s: action %q is a pattern", name, s.Sid, action)
				}
			}
			if readOnly(s.Action) {
				continue
			}
			if slices.Contains(s.Resource, "*") {
				t.Errorf("%s/%s changes things and is for every resource", name, s.Sid)
			}
			if unscoped[s.Sid] == "" && !askForOwnership(s) {
				t.Errorf("%s/%s changes things and does not ask for the cluster's tags", name, s.Sid)
			}
		}
	}
}

func TestPassRoleIsForOneRoleAndEC2(t *testing.T) {
	t.Parallel()
	for _, s := range readPolicy(t, "instance-profiles").Statement {
		if !slices.Contains(s.Action, "iam:PassRole") {
			continue
		}
		if len(s.Action) != 1 || len(s.Resource) != 1 || strings.Contains(s.Resource[0], "*") {
			t.Errorf("PassRole is for %v on %v, want one role", s.Action, s.Resource)
		}
		if got := s.Condition["StringEquals"]["iam:PassedToService"]; len(got) == 0 {
			t.Error("PassRole is not limited to a service")
		}
		return
	}
	t.Error("no statement passes the node role")
}

// TestTrustIsForOneCluster: without the conditions, any cluster of the account could hand the worker's role to its pods.
func TestTrustIsForOneCluster(t *testing.T) {
	t.Parallel()
	for _, s := range readPolicy(t, "controller-trust-pod-identity").Statement {
		if got := s.Condition["StringEquals"]["aws:SourceAccount"]; !slices.Equal(got, []string{"${AWS_ACCOUNT_ID}"}) {
			t.Errorf("Pod Identity of the accounts %q may assume the worker's role", got)
		}
		want := []string{"arn:${AWS_PARTITION}:eks:${AWS_REGION}:${AWS_ACCOUNT_ID}:cluster/${CLUSTER_NAME}"}
		if got := s.Condition["ArnEquals"]["aws:SourceArn"]; !slices.Equal(got, want) {
			t.Errorf("Pod Identity of the clusters %q may assume the worker's role", got)
		}
	}
}

// TestTrustIsForOneServiceAccount: of all identities that a cluster's issuer vouches for, only one service account may have
// the worker's role, and only with tokens made for AWS.
func TestTrustIsForOneServiceAccount(t *testing.T) {
	t.Parallel()
	statements := readPolicy(t, "controller-trust-irsa").Statement
	if len(statements) != 1 {
		t.Fatalf("%d statements, want one", len(statements))
	}
	s := statements[0]
	for place, want := range map[string]string{"sub": "system:serviceaccount:${TENON_NAMESPACE}:tenon", "aud": "sts.amazonaws.com"} {
		if got := s.Condition["StringEquals"]["${OIDC_ISSUER}:"+place]; !slices.Equal(got, []string{want}) {
			t.Errorf("the role may be assumed with %s %q, want %s", place, got, want)
		}
	}
	if got, want := s.Principal["Federated"], []string{"arn:${AWS_PARTITION}:iam::${AWS_ACCOUNT_ID}:oidc-provider/${OIDC_ISSUER}"}; !slices.Equal(got, want) {
		t.Errorf("%q vouch for the service account, want %q", got, want)
	}
	if !slices.Equal(s.Action, []string{"sts:AssumeRoleWithWebIdentity"}) {
		t.Errorf("the trust is for %q", s.Action)
	}
}

// TestNodesOfAllPartitionsGetTheirRole: EC2 has another name in China.
func TestNodesOfAllPartitionsGetTheirRole(t *testing.T) {
	t.Parallel()
	for _, s := range readPolicy(t, "node-trust").Statement {
		if got := s.Principal["Service"]; !slices.Equal(got, []string{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}) {
			t.Errorf("the node role is for %q", got)
		}
	}
}

// TestPolicyFits checks the documents against what IAM accepts: 6,144 characters without white space, and no placeholder
// that the README does not explain.
func TestPolicyFits(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("iam/README.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("iam/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no policies found: %v", err)
	}
	for _, file := range names {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if got := readPolicy(t, name).Version; got != "2012-10-17" {
			t.Errorf("%s: version %q", file, got)
		}
		for _, placeholder := range regexp.MustCompile(`\$\{[^}]*\}`).FindAllString(string(data), -1) {
			if !bytes.Contains(readme, []byte("`"+placeholder+"`")) {
				t.Errorf("%s: the README does not explain %s", file, placeholder)
			}
		}
		// The longest cluster name has 100 characters.
		filled := strings.ReplaceAll(string(data), "${CLUSTER_NAME}", strings.Repeat("c", 100))
		var packed bytes.Buffer
		if err := json.Compact(&packed, []byte(filled)); err != nil {
			t.Fatal(err)
		}
		if packed.Len() > 6144 {
			t.Errorf("%s: %d characters, IAM takes 6144", file, packed.Len())
		}
	}
}

// askForOwnership reports whether a statement applies only to what has, or gets, both tags of the cluster, or the one of its
// queue and rules.
func askForOwnership(s statement) bool {
	if slices.Equal(s.Condition["StringEquals"]["aws:ResourceTag/tenon.sh/cluster"], []string{"${CLUSTER_NAME}"}) {
		return true
	}
	for _, at := range []string{"aws:ResourceTag/", "aws:RequestTag/"} {
		if slices.Equal(s.Condition["StringEquals"][at+"kubernetes.io/cluster/${CLUSTER_NAME}"], []string{"owned"}) &&
			slices.Equal(s.Condition["StringLike"][at+"karpenter.k8s.aws/ec2nodeclass"], []string{"*"}) {
			return true
		}
	}
	return false
}

func readOnly(actions []string) bool {
	return !slices.ContainsFunc(actions, func(action string) bool {
		_, verb, _ := strings.Cut(action, ":")
		return !strings.HasPrefix(verb, "Describe") && !strings.HasPrefix(verb, "Get") && !strings.HasPrefix(verb, "List")
	})
}

func readPolicy(t *testing.T, name string) document {
	t.Helper()
	return readDocument(t, filepath.Join("iam", name+".json"))
}

func readDocument(t *testing.T, name string) document {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var p document
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// awsOperations finds the operations that one package calls, as IAM actions with the file that calls them: every call of
// the SDK takes a struct named after the operation, such as ec2.CreateFleetInput.
func awsOperations(t *testing.T, dir string) map[string]string {
	t.Helper()
	const services = "github.com/aws/aws-sdk-go-v2/service/"
	operations := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		imported := map[string]string{}
		for _, spec := range file.Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			service, ok := strings.CutPrefix(importPath, services)
			if !ok || strings.Contains(service, "/") {
				continue
			}
			name := service
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imported[name] = service
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, isName := selector.X.(*ast.Ident)
			operation, isInput := strings.CutSuffix(selector.Sel.Name, "Input")
			if isName && isInput && imported[pkg.Name] != "" {
				action := cmp.Or(prefixes[imported[pkg.Name]], imported[pkg.Name]) + ":" + operation
				if other := authorisedAs[action]; other != "" {
					action = other
				}
				operations[action] = path
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(operations) == 0 {
		t.Fatalf("%s calls nothing of AWS", dir)
	}
	return operations
}
