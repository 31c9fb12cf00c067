package oracle_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/oracle"
	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 1)) }

const (
	// scenesVariable names the environment variable that selects the scenes: those whose names match a pattern, or the short
	// form if it is empty.
	scenesVariable = "TENON_ORACLE"
	// everyScene is the pattern that selects every scene; with it, every row of the list must occur.
	everyScene = "."
	// within is how long nodes may take to be launched or removed.
	within = 2 * time.Minute
	// joinWithin is how long the nodes of a scene may take to join.
	joinWithin = 60 * time.Second
	// refusedFor is how long an EC2NodeClass may stay refused: what a class needs may take a while to become known to EC2.
	refusedFor = 20 * time.Second
)

// stage is the laboratory on which scenes are played.
type stage struct {
	*world.World
	t *testing.T
}

// TestOracle plays the scenes with Tenon and then with Karpenter, and compares their calls to AWS.
func TestOracle(t *testing.T) {
	wanted, err := regexp.Compile(os.Getenv(scenesVariable))
	if err != nil {
		t.Fatalf("%s: %v", scenesVariable, err)
	}
	var found []oracle.Difference
	played := 0
	for _, cluster := range []struct {
		name   string
		scenes []scene
		ipv6   bool
	}{
		{name: "IPv4", scenes: append(examples(t), ours()...)},
		{name: "IPv6", scenes: oursIPv6(), ipv6: true},
	} {
		scenes := slices.DeleteFunc(cluster.scenes, func(s scene) bool {
			return wanted.String() == "" && !s.short || !wanted.MatchString(s.name)
		})
		if len(scenes) == 0 {
			continue
		}
		t.Run(cluster.name, func(t *testing.T) { found = append(found, compare(t, scenes, cluster.ipv6)...) })
		played += len(scenes)
	}
	unlisted, stale := oracle.Judge(found, oracle.Differences)
	for _, difference := range unlisted {
		t.Errorf("not in the list: %s", difference)
	}
	for _, allowed := range stale {
		if wanted.String() == everyScene {
			t.Errorf("listed, and no longer so: %+v", allowed)
		}
	}
	t.Logf("%d scenes, %d differences, %d rows", played, len(found), len(oracle.Differences))
}

// compare plays scenes on their own laboratory, and returns the differences between the controllers.
func compare(t *testing.T, scenes []scene, ipv6 bool) []oracle.Difference {
	var options world.Options
	if ipv6 {
		options.Simulator = []string{"--ipv6"}
	}
	s := &stage{World: world.Start(t, options), t: t}
	s.Apply(dns(ipv6))
	s.clear([]string{"default"}, []string{"default"})
	s.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: oracle}\n")
	s.Sim(http.MethodPost, "/_sim/calls/keep", map[string]any{"actions": oracle.Actions}, nil)

	tenon := s.play(scenes)
	if err := s.Lab.Halt(lab.Worker); err != nil {
		t.Fatal(err)
	}
	s.NewKarpenter("").Start()
	karpenter := s.play(scenes)

	var found []oracle.Difference
	for i := range scenes {
		found = append(found, oracle.Compare(scenes[i].name, karpenter[i], tenon[i])...)
	}
	return found
}

// play plays the scenes and returns the controller's calls for each.
func (s *stage) play(scenes []scene) []map[string][]oracle.Document {
	s.t.Helper()
	var out []map[string][]oracle.Document
	for _, scene := range scenes {
		began := time.Now()
		s.Sim(http.MethodPost, "/_sim/reset", nil, nil)
		if scene.profile != "" {
			s.makeProfile(scene.profile)
		}
		scene.manifests = s.fillIDs(s.fill(scene.manifests), s.make(scene))
		pods, pools, classes := scene.pods(s.t)
		s.Apply(scene.manifests + "\n---\n" + pods)
		s.joins(scene.name, len(pools))
		if out, err := s.Kubectl("delete", "pods", "--all", "-n", "oracle", "--wait=false"); err != nil {
			s.t.Fatalf("delete the pods: %v\n%s", err, out)
		}
		s.clear(pools, classes)
		var calls []ec2sim.Call
		for _, action := range oracle.Actions {
			var some []ec2sim.Call
			s.Sim(http.MethodGet, "/_sim/calls?action="+action, nil, &some)
			calls = append(calls, some...)
		}
		out = append(out, oracle.Canonical(calls))
		s.t.Logf("%s: %d calls, %s", scene.name, len(calls), time.Since(began).Round(time.Second))
	}
	return out
}

// fill inserts the cluster's name, endpoint and certificate authority into manifests.
func (s *stage) fill(manifests string) string {
	s.t.Helper()
	config, err := s.Lab.RESTConfig()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		s.t.Fatal(err)
	}
	return strings.NewReplacer("${CLUSTER_NAME}", s.Lab.Cluster(), "${CLUSTER_ENDPOINT}", config.Host,
		"${CLUSTER_CA}", base64.StdEncoding.EncodeToString(config.CAData)).Replace(manifests)
}

// make creates what exists before a scene, and returns the ids by placeholder.
func (s *stage) make(scene scene) map[string]string {
	s.t.Helper()
	ids := map[string]string{}
	made := func(placeholder, path string, what any) {
		var answer struct{ ID string }
		s.Sim(http.MethodPost, path, what, &answer)
		ids[placeholder] = answer.ID
	}
	if scene.reserve != nil {
		made("${RESERVATION}", "/_sim/reserve", scene.reserve)
	}
	if scene.image != nil {
		made("${IMAGE}", "/_sim/image", scene.image)
	}
	if scene.placement != nil {
		out, err := s.ec2().CreatePlacementGroup(s.Context(), scene.placement)
		if err != nil {
			s.t.Fatalf("make the placement group: %v", err)
		}
		ids["${PLACEMENT_GROUP}"] = *out.PlacementGroup.GroupId
	}
	return ids
}

// ec2 returns a client of the simulated EC2.
func (s *stage) ec2() *ec2.Client {
	return ec2.New(ec2.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.Lab.EC2SimURL()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
}

// fillIDs inserts ids into manifests, including those of a subnet and of a security group of the cluster.
func (s *stage) fillIDs(manifests string, ids map[string]string) string {
	s.t.Helper()
	api := s.ec2()
	clusters := []types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{s.Lab.Cluster()}}}
	subnets, err := api.DescribeSubnets(s.Context(), &ec2.DescribeSubnetsInput{Filters: clusters})
	if err != nil || len(subnets.Subnets) == 0 {
		s.t.Fatalf("no subnets of the cluster: %v", err)
	}
	groups, err := api.DescribeSecurityGroups(s.Context(), &ec2.DescribeSecurityGroupsInput{Filters: clusters})
	if err != nil || len(groups.SecurityGroups) == 0 {
		s.t.Fatalf("no security groups of the cluster: %v", err)
	}
	version, err := s.version()
	if err != nil {
		s.t.Fatal(err)
	}
	ids["${SUBNET}"], ids["${KUBERNETES}"] = *subnets.Subnets[0].SubnetId, version
	ids["${GROUP}"], ids["${GROUP_NAME}"] = *groups.SecurityGroups[0].GroupId, *groups.SecurityGroups[0].GroupName
	for placeholder, id := range ids {
		manifests = strings.ReplaceAll(manifests, placeholder, id)
	}
	return manifests
}

// version returns the minor version of Kubernetes, such as 1.36.
func (s *stage) version() (string, error) {
	config, err := s.Lab.RESTConfig()
	if err != nil {
		return "", err
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	found, err := api.ServerVersion()
	if err != nil {
		return "", err
	}
	return found.Major + "." + strings.TrimSuffix(found.Minor, "+"), nil
}

// makeProfile creates an instance profile of somebody else.
func (s *stage) makeProfile(name string) {
	s.t.Helper()
	api := iam.New(iam.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.Lab.EC2SimURL()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	if _, err := api.CreateInstanceProfile(s.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name)}); err != nil {
		s.t.Fatalf("make instance profile %s: %v", name, err)
	}
	if _, err := api.AddRoleToInstanceProfile(s.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(s.fill(nodeRole))}); err != nil {
		s.t.Fatalf("give instance profile %s its role: %v", name, err)
	}
}

// joins waits until each pod runs on its own node. If they do not, the scene has failed, and the next one is played.
func (s *stage) joins(name string, pods int) {
	s.t.Helper()
	running, began := 0, time.Now()
	for deadline := began.Add(world.Patience(joinWithin)); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		running = 0
		for _, pod := range s.Pods("oracle") {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero() {
				running++
			}
		}
		if running == pods {
			return
		}
		if time.Since(began) > refusedFor && s.refused() {
			break
		}
	}
	said, _ := s.Kubectl("describe", "pods,ec2nodeclasses,nodeclaims,nodepools", "-n", "oracle")
	s.t.Errorf("%s: %d of %d pods run:\n%s", name, running, pods, said)
}

// refused reports whether the controller refuses an EC2NodeClass.
func (s *stage) refused() bool {
	s.t.Helper()
	var classes awsv1.EC2NodeClassList
	if err := s.List(s.Context(), &classes); err != nil {
		s.t.Fatalf("list EC2NodeClasses: %v", err)
	}
	for i := range classes.Items {
		if condition := classes.Items[i].Condition(awsv1.ConditionTypeValidationSucceeded); condition != nil && condition.Status == metav1.ConditionFalse {
			return true
		}
	}
	return false
}

// clear deletes NodePools and EC2NodeClasses and waits until nothing of them is left.
func (s *stage) clear(pools, classes []string) {
	s.t.Helper()
	for _, name := range pools {
		s.DeletePool(name)
	}
	s.AwaitNothing(within)
	for _, name := range classes {
		class := &unstructured.Unstructured{}
		class.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"})
		class.SetName(name)
		if err := s.Delete(s.Context(), class); client.IgnoreNotFound(err) != nil {
			s.t.Fatalf("delete EC2NodeClass %s: %v", name, err)
		}
		s.Await("EC2NodeClass "+name+" gone", within, func() (bool, string) {
			err := s.Get(s.Context(), client.ObjectKeyFromObject(class), class)
			return errors.IsNotFound(err), "it is still there"
		})
	}
}
