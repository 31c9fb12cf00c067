package v1

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// HooksAnnotationKey on a NodePool holds the hooks of its nodes: a list of Hook, in YAML or JSON. While it cannot be read, no
// node of the NodePool is drained, deadlines aside.
const HooksAnnotationKey = "tenon.sh/hooks"

// HookPoint is when a hook runs.
type HookPoint string

const (
	// AfterReady is once a new node has initialized and serves pods.
	AfterReady HookPoint = "AfterReady"
	// BeforeDrain is once a node is cordoned, before its first pod is evicted.
	BeforeDrain HookPoint = "BeforeDrain"
)

// HookFailurePolicy is what follows if a hook fails, or takes too long.
type HookFailurePolicy string

const (
	// HookIgnore has an Event say so, and goes on. It is the default.
	HookIgnore HookFailurePolicy = "Ignore"
	// HookFail has a drain wait, and try the hook again, until it succeeds or the drain's deadline has come; a node whose hook
	// AfterReady fails is removed.
	HookFail HookFailurePolicy = "Fail"
)

const (
	defaultHookTimeout = time.Minute
	maxHookTimeout     = 30 * time.Minute
	// MaxHooks is how many hooks a NodePool may have.
	MaxHooks = 8
)

// Hook is something outside Tenon that takes part in the life of a NodePool's nodes: an HTTP call or a Job.
type Hook struct {
	// Name tells the hooks of a NodePool apart: a DNS label.
	Name string    `json:"name"`
	When HookPoint `json:"when"`
	HTTP *HTTPHook `json:"http,omitempty"`
	Job  *JobHook  `json:"job,omitempty"`
	// Timeout is how long the hook may take, all its tries together: a minute where it is absent, half an hour at most.
	Timeout       *metav1.Duration  `json:"timeout,omitempty"`
	FailurePolicy HookFailurePolicy `json:"failurePolicy,omitempty"`
}

// HTTPHook is a POST of a JSON document about the node. A status from 200 to 299 is success; others are tried again.
type HTTPHook struct {
	URL string `json:"url"`
}

// JobHook is a Job with the template of a CronJob, which is usually suspended.
type JobHook struct {
	Namespace string `json:"namespace"`
	CronJob   string `json:"cronJob"`
	// OnNode has the Job's pods run on the node itself, although it is cordoned.
	OnNode bool `json:"onNode,omitempty"`
}

// Within is how long the hook may take.
func (h *Hook) Within() time.Duration {
	if h.Timeout == nil {
		return defaultHookTimeout
	}
	return h.Timeout.Duration
}

// Fails says that a failure of the hook keeps a node from being drained, or from serving.
func (h *Hook) Fails() bool { return h.FailurePolicy == HookFail }

// HooksAt returns the hooks of a NodePool that run at a point, in their order; an error if the annotation cannot be read.
func (in *NodePool) HooksAt(point HookPoint) ([]Hook, error) {
	hooks, err := ReadHooks(in.Annotations[HooksAnnotationKey])
	return slices.DeleteFunc(hooks, func(h Hook) bool { return h.When != point }), err
}

// ReadHooks reads the value of HooksAnnotationKey.
func ReadHooks(text string) ([]Hook, error) {
	var hooks []Hook
	if err := yaml.UnmarshalStrict([]byte(text), &hooks); err != nil {
		return nil, fmt.Errorf("%s must be a list of hooks: %w", HooksAnnotationKey, err)
	}
	if len(hooks) > MaxHooks {
		return nil, fmt.Errorf("%s has %d hooks, more than %d", HooksAnnotationKey, len(hooks), MaxHooks)
	}
	seen := map[string]bool{}
	for i := range hooks {
		if err := hooks[i].check(); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", HooksAnnotationKey, i, err)
		}
		if seen[hooks[i].Name] {
			return nil, fmt.Errorf("%s[%d]: name: %q is the name of two hooks", HooksAnnotationKey, i, hooks[i].Name)
		}
		seen[hooks[i].Name] = true
	}
	return hooks, nil
}

// check returns what is wrong with a hook, by field.
func (h *Hook) check() error {
	switch {
	case len(validation.IsDNS1123Label(h.Name)) > 0 || len(h.Name) > 20:
		return fmt.Errorf("name: %q must be lower-case letters, digits and dashes, at most 20", h.Name)
	case h.When != AfterReady && h.When != BeforeDrain:
		return fmt.Errorf("when: %q must be %s or %s", h.When, AfterReady, BeforeDrain)
	case (h.HTTP == nil) == (h.Job == nil):
		return errors.New("one of http and job is needed")
	case h.FailurePolicy != "" && h.FailurePolicy != HookIgnore && h.FailurePolicy != HookFail:
		return fmt.Errorf("failurePolicy: %q must be %s or %s", h.FailurePolicy, HookIgnore, HookFail)
	case h.Within() <= 0 || h.Within() > maxHookTimeout:
		return fmt.Errorf("timeout: %s must be more than nothing and at most %s", h.Within(), maxHookTimeout)
	case h.Job != nil && (h.Job.Namespace == "" || h.Job.CronJob == ""):
		return errors.New("job: namespace and cronJob are needed")
	case h.HTTP != nil:
		if to, err := url.Parse(h.HTTP.URL); err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
			return fmt.Errorf("http.url: %q must begin with http:// or https:// and name a host", h.HTTP.URL)
		}
	}
	return nil
}
