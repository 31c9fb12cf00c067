package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	tenonaws "github.com/tenon-sh/tenon/cloud/aws"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// live is a run: the account through Tenon's provider, and clients for the calls that Tenon never makes.
type live struct {
	settings
	world

	recorder *recorder
	provider *tenonaws.Provider
	ec2      *ec2.Client
	iam      *iam.Client
	sts      *sts.Client
	fis      *fis.Client
	nodes    kubernetes.Interface // nil without a kubeconfig

	started time.Time
	state   *state
	ledger  *ledger
	results []result

	// Results of steps for the steps that follow.
	caller      caller
	class       *awsv1.EC2NodeClass
	reservedOn  *awsv1.EC2NodeClass // the class with the run's reservation
	machine     machine             // to launch
	reservation string
	spotNode    string
	// prepared are the requests that were prepared before the reservation was full.
	prepared map[string]*spent
	// mayKeep says that what costs nothing may stay for --resume.
	mayKeep bool
}

// caller is the account and partition that the run's credentials belong to.
type caller struct{ account, partition string }

func newLive(ctx context.Context, w world, s settings) (*live, error) {
	l := &live{settings: s, world: w, started: w.now(), prepared: map[string]*spent{}}
	l.state = &state{Run: s.run, Region: s.region, Cluster: s.cluster, file: s.state}
	if s.state != "" {
		if _, err := os.Stat(s.state); err == nil {
			return nil, fmt.Errorf("--state %s is there already: the tokens of another run are in it", s.state)
		}
	}
	l.ledger = newLedger(w.now)
	if s.class != "" {
		if err := l.readClass(); err != nil {
			return nil, err
		}
	}
	if s.kubeconfig != "" {
		var err error
		if l.nodes, err = w.connect(s.kubeconfig); err != nil {
			return nil, err
		}
	}
	var err error
	if l.recorder, err = newRecorder(s.record, s.region, w.now); err != nil {
		return nil, err
	}
	l.mask()
	// The SDK's own client makes the calls, with the certificate authorities that the environment may name; as in the
	// provider, it waits no longer than a minute for a reply.
	cfg, err := config.LoadDefaultConfig(ctx, append([]func(*config.LoadOptions) error{
		config.WithRegion(s.region),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
			transport.ResponseHeaderTimeout = time.Minute
		})),
	}, w.load...)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load configuration: %w", err), l.recorder.close())
	}
	l.recorder.client = cfg.HTTPClient
	cfg.HTTPClient = l.recorder
	l.ec2, l.iam, l.sts, l.fis = ec2.NewFromConfig(cfg), iam.NewFromConfig(cfg), sts.NewFromConfig(cfg), fis.NewFromConfig(cfg)
	l.provider, err = tenonaws.NewFromConfig(cfg, tenonaws.Options{
		Cluster: s.cluster, Now: w.now,
		ClusterEndpoint: s.endpoint, ClusterCA: s.ca, ServiceCIDR: s.serviceCIDR, KubernetesVersion: s.version,
	})
	if err != nil {
		return nil, errors.Join(err, l.recorder.close())
	}
	return l, nil
}

func (l *live) close() { l.provider.Close() }

// mask keeps names out of the recording. The account is masked as soon as it is known.
func (l *live) mask() {
	m := &l.recorder.mask
	if l.class != nil {
		role := l.class.Spec.Role
		m.hide(role[strings.LastIndexByte(role, '/')+1:], "ROLE")
		if profile := l.class.Spec.InstanceProfile; profile != nil {
			m.hide(*profile, "PROFILE")
		}
	}
	m.hide(l.fisRole[strings.LastIndexByte(l.fisRole, '/')+1:], "FISROLE")
	if queue := l.queue[strings.LastIndexByte(l.queue, '/')+1:]; queue != l.cluster {
		m.hide(queue, "QUEUE")
	}
	m.hide(l.cluster, "CLUSTER")
}

// readClass reads the node class and makes a copy for the run: nothing that belongs to the original class is touched.
func (l *live) readClass() error {
	data, err := os.ReadFile(l.settings.class)
	if err != nil {
		return fmt.Errorf("read node class: %w", err)
	}
	class := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict(data, class); err != nil {
		return fmt.Errorf("read node class %s: %w", l.settings.class, err)
	}
	if class.Kind != "EC2NodeClass" {
		return fmt.Errorf("%s has a %s, not an EC2NodeClass", l.settings.class, cmp.Or(class.Kind, "document without a kind"))
	}
	spec := class.Spec
	own := ownClass(l.run)
	own.Spec = spec
	own.Spec.Tags = map[string]string{tagKey: l.run}
	for key, value := range spec.Tags {
		if key != tagKey {
			own.Spec.Tags[key] = value
		}
	}
	own.Spec.CapacityReservationSelectorTerms = nil
	l.class = own
	return nil
}

// ownClass returns the run's node class. Its UID follows from the run's name, so that a later run with the same name finds
// what the first one left: the UID is part of the path of its instance profile.
func ownClass(run string) *awsv1.EC2NodeClass {
	uid := uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://tenon.sh/"+tagKey+"/"+run))
	return &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: tagKey + "-" + run, UID: types.UID(uid.String()), Generation: 1}}
}

// token returns the client token of a step: 64 characters at most, and different for every run.
func (l *live) token(step string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{l.run, step, strconv.FormatInt(l.started.UnixNano(), 10)}, "/")))
	return hex.EncodeToString(sum[:16])
}

// group returns the launch group of a step.
func (l *live) group(step string) string {
	return fmt.Sprintf("%s-%s-%s", l.run, strings.ReplaceAll(step, " ", "-"), strconv.FormatInt(l.started.Unix(), 36))
}

// await polls until a condition holds. It fails with what it waited for if that takes longer than patience.
func (l *live) await(ctx context.Context, what string, patience, every time.Duration, so func() (bool, error)) error {
	deadline := l.now().Add(patience)
	for {
		done, err := so()
		if err != nil || done {
			return err
		}
		if l.now().Add(every).After(deadline) {
			return fmt.Errorf("after %v still waiting for %s", patience, what)
		}
		if err := l.sleep(ctx, every); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

func (l *live) report(name string, o outcome) {
	l.results = append(l.results, result{name, o})
	fmt.Fprintf(l.out, "%s  %-33s %-8s  %s\n", l.now().UTC().Format(time.TimeOnly), name, o.verdict, o.text)
}
