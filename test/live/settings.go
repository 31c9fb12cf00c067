package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// world is a run's environment. Tests provide the simulator, a fake clock and a fake API server; nothing else differs.
type world struct {
	out io.Writer
	now func() time.Time
	// sleep waits, unless the context ends first.
	sleep func(ctx context.Context, d time.Duration) error
	// load are further options of the SDK's configuration, such as an endpoint.
	load []func(*config.LoadOptions) error
	// connect returns the API server of a kubeconfig file.
	connect func(kubeconfig string) (kubernetes.Interface, error)
}

func realWorld(out io.Writer) world {
	return world{
		out: out, now: time.Now,
		sleep: func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		connect: func(kubeconfig string) (kubernetes.Interface, error) {
			cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
			}
			return kubernetes.NewForConfig(cfg)
		},
	}
}

// settings are the flags.
type settings struct {
	spend, plan, policy, cleanupOnly bool

	tag        string // as given: tenon-live=NAME
	run        string // NAME
	region     string
	cluster    string
	class      string
	types      []string
	maxDollars float64

	kubeconfig string
	queue      string
	fisRole    string

	state, resume, record string

	endpoint, ca, serviceCIDR, version string
	account                            string
}

// check rejects flags that cannot work.
func (s *settings) check() error {
	name, ok := strings.CutPrefix(s.tag, tagKey+"=")
	switch {
	case !ok || !runName.MatchString(name):
		return fmt.Errorf("--tag %q is not %s=NAME with letters, digits and dashes", s.tag, tagKey)
	case s.region == "":
		return errors.New("--region is missing")
	case s.cluster == "":
		return errors.New("--cluster is missing")
	case s.policy && s.account == "":
		return errors.New("--account is missing")
	case s.class == "" && !s.cleanupOnly && !s.policy && s.resume == "":
		return errors.New("--class is missing")
	case s.resume != "" && s.state != "":
		return errors.New("--resume reads the state, --state begins another: one of them")
	}
	s.run = name
	return nil
}

// continues takes over the settings of the previous run, and rejects flags that contradict them.
func (s *settings) continues(before *state) error {
	for _, same := range []struct {
		flag string
		now  *string
		then string
	}{
		{"--tag", &s.tag, tagKey + "=" + before.Run}, {"--region", &s.region, before.Region}, {"--cluster", &s.cluster, before.Cluster},
	} {
		if *same.now == "" {
			*same.now = same.then
		}
		if *same.now != same.then {
			return fmt.Errorf("%s %s is not that of the run that is resumed, %s", same.flag, *same.now, same.then)
		}
	}
	return nil
}

// tagKey is the tag that everything a run makes carries; its value is the run's name.
const tagKey = "tenon-live"

var runName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$`)
