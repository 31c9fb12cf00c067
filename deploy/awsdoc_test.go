package deploy_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/aws.md instead of comparing it")

const (
	awsDoc = "../docs/aws.md"
	// generatedBelow separates what people write in docs/aws.md from what this test writes.
	generatedBelow = "<!-- Below here: go test ./deploy -run TestAWSDoc -update -->\n"
)

// TestAWSDoc checks docs/aws.md against today's calls, policies, request buckets and error codes.
func TestAWSDoc(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile(awsDoc)
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(have), generatedBelow)
	if !found {
		t.Fatalf("%s does not have the line %q", awsDoc, generatedBelow)
	}
	want := text + generatedBelow + callsTable(t) + personsTable(t, "tenon cleanup", "cleanup", cleanupPolicy) +
		personsTable(t, "tenon convert --from-asg", "nodegroups", nodeGroupsPolicy) + bucketsTable(t) + statementsTable(t) + errorsTable(t)
	if *update {
		if err := os.WriteFile(awsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, string(have)); diff != "" {
		t.Errorf("%s is stale, run go test ./deploy -run TestAWSDoc -update (-want +got):\n%s", awsDoc, diff)
	}
}

// whenCalled says when each action is called. An EC2NodeClass is looked up when it changes, and every minute.
var whenCalled = map[string]string{
	"arc-zonal-shift:GetManagedResource": "every thirty seconds with `--enable-zonal-shift`",
	"ec2:CreateFleet":                    "once per launch group, and again while its outcome is unknown; as a dry run when an EC2NodeClass is validated",
	"ec2:CreateLaunchTemplate":           "before the first launch of each half hour that needs this template; when an EC2NodeClass is validated",
	"ec2:CreateTags":                     "once per node, after it has registered, to name the instance after it",
	"ec2:DeleteLaunchTemplate":           "three hours after the launch template was created, when its EC2NodeClass is deleted, and for Karpenter's after an hour",
	"ec2:DescribeCapacityReservations":   "with each look-up of an EC2NodeClass that selects reservations, at most once a minute; once a minute while nodes run in reservations, to see capacity blocks end",
	"ec2:DescribeImages":                 "with each look-up of an EC2NodeClass",
	"ec2:DescribeInstanceStatus":         "every minute, or every hour while the permission is missing",
	"ec2:DescribeInstanceTypeOfferings":  "at startup and every twelve hours",
	"ec2:DescribeInstanceTypes":          "at startup and every twelve hours",
	"ec2:DescribeInstances":              "with each sweep; every two seconds while instances terminate, for all together; after a launch with an unknown outcome",
	"ec2:DescribeLaunchTemplates":        "every ten minutes per EC2NodeClass, to find old launch templates, when it is deleted, and every half hour with a sweep",
	"ec2:DescribePlacementGroups":        "with each look-up of an EC2NodeClass that names a placement group, and before its launches, at most once a minute",
	"ec2:DescribeSecurityGroups":         "with each look-up of an EC2NodeClass",
	"ec2:DescribeSpotPriceHistory":       "at startup and every twelve hours",
	"ec2:DescribeSubnets":                "with each look-up of an EC2NodeClass, at most once a minute",
	"ec2:RunInstances":                   "as a dry run when an EC2NodeClass is validated: after a change, every half hour, and every five minutes while refused",
	"ec2:TerminateInstances":             "once nodes are drained, for all together; again every ten seconds until EC2 shows the instance shutting down",
	"eks:DescribeCluster":                "at startup and every five minutes",
	"iam:AddRoleToInstanceProfile":       "when the instance profile of an EC2NodeClass lacks the role",
	"iam:CreateInstanceProfile":          "for each EC2NodeClass with a role, and again when the role changes",
	"iam:DeleteInstanceProfile":          "when its EC2NodeClass is deleted, and with a sweep, once nothing has needed it for an hour",
	"iam:GetInstanceProfile":             "every fifteen minutes for each EC2NodeClass with a role; before a sweep removes a profile",
	"iam:ListInstanceProfiles":           "when an EC2NodeClass is deleted, and every half hour with a sweep, to find profiles that nothing needs",
	"iam:PassRole":                       "with `ec2:CreateFleet`, `ec2:RunInstances` and `iam:AddRoleToInstanceProfile`",
	"iam:RemoveRoleFromInstanceProfile":  "before an instance profile is deleted or gets another role",
	"iam:TagInstanceProfile":             "with `iam:CreateInstanceProfile`",
	"pricing:GetProducts":                "at startup and every twelve hours",
	"sqs:DeleteMessage":                  "after notices from the interruption queue are handled, up to ten per call",
	"sqs:GetQueueUrl":                    "at startup",
	"sqs:ReceiveMessage":                 "continuously by the leader, as four long polls of up to twenty seconds each",
	"ssm:GetParameter":                   "once a day for image aliases, every five minutes for your own parameters",
}

// callsTable has a row for each action that is called or implied: when and where it is called, and what allows it.
func callsTable(t *testing.T) string {
	called := awsOperations(t, "../cloud/aws")
	allowedBy := allowedBy(t, controllerPolicies...)
	actions := maps.Clone(called)
	for action := range implied {
		actions[action] = cmp.Or(actions[action], "")
	}
	var b strings.Builder
	b.WriteString("\n## Calls\n\n| action | when | called in `cloud/aws`, or why it is needed | allowed by |\n|---|---|---|---|\n")
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		where := implied[action]
		if file := actions[action]; file != "" {
			where = "`" + filepath.Base(file) + "`"
		}
		when := whenCalled[action]
		if when == "" {
			t.Errorf("nothing says when %s is called", action)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", action, when, where, strings.Join(allowedBy[action], ", "))
	}
	for action := range whenCalled {
		if _, known := actions[action]; !known {
			t.Errorf("%s is not called", action)
		}
	}
	return b.String()
}

// personsTable has a row for each action that a command calls, which people run and for which a package of cloud/aws is.
func personsTable(t *testing.T, command, of, policy string) string {
	called := awsOperations(t, "../cloud/aws/"+of)
	allowedBy := allowedBy(t, policy)
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Calls of `%s`\n\n| action | called in `cloud/aws/%s` | allowed by |\n|---|---|---|\n", command, of)
	for _, action := range slices.Sorted(maps.Keys(called)) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", action, filepath.Base(called[action]), strings.Join(allowedBy[action], ", "))
	}
	return b.String()
}

// allowedBy returns the statements of policies that allow each action.
func allowedBy(t *testing.T, policies ...string) map[string][]string {
	t.Helper()
	statements := map[string][]string{}
	for _, name := range policies {
		for _, s := range readPolicy(t, name).Statement {
			for _, action := range s.Action {
				statements[action] = append(statements[action], fmt.Sprintf("`%s`/%s", name, s.Sid))
			}
		}
	}
	return statements
}

// bucketsTable reads the limits of cloud/aws/ratelimit.go, and which actions each limit applies to.
func bucketsTable(t *testing.T) string {
	file, err := parser.ParseFile(token.NewFileSet(), "../cloud/aws/ratelimit.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	limits, actions := map[string][2]string{}, map[string][]string{"nonMutating": {"Describe…", "Get…"}, "mutating": {"other mutating calls"}}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if len(n.Values) != 1 {
				break
			}
			table, ok := n.Values[0].(*ast.CompositeLit)
			if !ok || len(table.Elts) != 2 {
				break
			}
			if kind, ok := table.Type.(*ast.Ident); !ok || kind.Name != "limit" {
				break
			}
			rows = append(rows, n.Names[0].Name)
			limits[n.Names[0].Name] = [2]string{table.Elts[0].(*ast.BasicLit).Value, table.Elts[1].(*ast.BasicLit).Value}
		case *ast.CaseClause:
			if answer, ok := n.Body[0].(*ast.ReturnStmt); ok && len(answer.Results) == 1 {
				if name, ok := answer.Results[0].(*ast.Ident); ok {
					for _, action := range n.List {
						actions[name.Name] = append(actions[name.Name], literal(t, action))
					}
				}
			}
		}
		return true
	})
	var b strings.Builder
	b.WriteString("\n## Request buckets\n\n| calls | tokens in the bucket | tokens per second |\n|---|---|---|\n")
	for _, name := range rows {
		if len(actions[name]) == 0 {
			t.Errorf("ratelimit.go: no action has the limit %s", name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(actions[name], ", "), limits[name][0], limits[name][1])
	}
	if len(rows) < 5 {
		t.Errorf("only %d limits found in ratelimit.go: has its shape changed?", len(rows))
	}
	return b.String()
}

// statementsTable has a row for each statement: what it is limited to.
func statementsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("\n## Statements\n\n| statement | resources | conditions |\n|---|---|---|\n")
	for _, name := range slices.Concat(controllerPolicies, personsPolicies) {
		for _, s := range readPolicy(t, name).Statement {
			var conditions []string
			for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
				for _, key := range slices.Sorted(maps.Keys(s.Condition[operator])) {
					conditions = append(conditions, fmt.Sprintf("`%s %s %s`", operator, key, strings.Join(s.Condition[operator][key], ", ")))
				}
			}
			resources := make([]string, 0, len(s.Resource))
			for _, resource := range s.Resource {
				resources = append(resources, "`"+resource+"`")
			}
			fmt.Fprintf(&b, "| `%s`/%s | %s | %s |\n", name, s.Sid, strings.Join(resources, "<br>"), strings.Join(conditions, "<br>"))
		}
	}
	return b.String()
}

// errorsTable reads the two tables of cloud/aws/errors.go: codes with a kind, and codes of missing capacity.
func errorsTable(t *testing.T) string {
	file, err := parser.ParseFile(token.NewFileSet(), "../cloud/aws/errors.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	rows, constants := map[string][2]string{}, map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == 1 && len(spec.Values) == 1 {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				constants[spec.Names[0].Name] = literal(t, value)
			}
		}
		return true
	})
	named := func(e ast.Expr) string {
		if name, ok := e.(*ast.Ident); ok {
			return constants[name.Name]
		}
		return literal(t, e)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		table, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, element := range table.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch value := pair.Value.(type) {
			case *ast.CompositeLit: // of verdicts: a kind and a reason
				if kind, ok := value.Elts[0].(*ast.SelectorExpr); ok && len(value.Elts) == 2 {
					rows[literal(t, pair.Key)] = [2]string{kind.Sel.Name, literal(t, value.Elts[1])}
				}
			case *ast.BasicLit, *ast.Ident: // of capacityCodes: a reason
				if spec.Names[0].Name == "capacityCodes" {
					rows[named(pair.Key)] = [2]string{"InsufficientCapacity", named(value)}
				}
			}
		}
		return true
	})
	if len(rows) < 20 {
		t.Fatalf("only %d error codes found in errors.go: has its shape changed?", len(rows))
	}
	var b bytes.Buffer
	b.WriteString("\n## Errors\n\n| code | kind | reason |\n|---|---|---|\n")
	for _, code := range slices.SortedFunc(maps.Keys(rows), func(x, y string) int {
		return cmp.Or(cmp.Compare(rows[x][0], rows[y][0]), cmp.Compare(x, y))
	}) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, rows[code][0], rows[code][1])
	}
	return b.String()
}

// literal returns the text of a string in Go source.
func literal(t *testing.T, of ast.Expr) string {
	t.Helper()
	basic, ok := of.(*ast.BasicLit)
	if !ok {
		t.Fatalf("errors.go: %T where a string was expected", of)
	}
	text, err := strconv.Unquote(basic.Value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
