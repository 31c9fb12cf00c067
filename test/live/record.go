package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// exchange is one request and its reply. It keeps no headers, and so no credentials.
type exchange struct {
	// Origin says who answered: ec2 or ec2sim.
	Origin string `json:"origin"`
	Region string `json:"region"`
	// Step is the step that sent it.
	Step string    `json:"step"`
	At   time.Time `json:"at"`
	// Sent and Answered number the events, so that overlapping requests can be recognized.
	Sent     int    `json:"sent"`
	Answered int    `json:"answered"`
	Service  string `json:"service"`
	Action   string `json:"action"`
	// Parameters belong to the Query protocols, Body to the JSON ones.
	Parameters map[string]string `json:"parameters,omitempty"`
	Body       string            `json:"body,omitempty"`
	Status     int               `json:"status,omitempty"`
	RequestID  string            `json:"requestID,omitempty"`
	Reply      string            `json:"reply,omitempty"`
	// Cut is the length of a reply that was too long to be kept whole.
	Cut int `json:"cut,omitempty"`
	// Failure says why there was no reply.
	Failure string `json:"failure,omitempty"`
}

const (
	// keptReply limits how much of a reply is kept. The catalogue and the prices are megabytes, and say nothing about
	// launches.
	keptReply = 64 << 10
	// maskedAccount stands for the account, as in AWS's own examples.
	maskedAccount = "111122223333"
)

// recorder is an HTTP client for the SDK that records what it sends and receives.
type recorder struct {
	client aws.HTTPClient
	now    func() time.Time
	region string

	mu     sync.Mutex
	file   *os.File
	failed error // the first failure to write
	mask   masks
	moment int
	step   string
}

func newRecorder(file, region string, now func() time.Time) (*recorder, error) {
	r := &recorder{now: now, region: region}
	if file == "" {
		return r, nil
	}
	var err error
	if r.file, err = os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return r, nil
}

// close ends the recording and returns an error if it is incomplete.
func (r *recorder) close() error {
	if r.file == nil {
		return nil
	}
	return errors.Join(r.failed, r.file.Close())
}

// enter names the step that requests belong to from now on. A context could not do that: the provider terminates in batches,
// which belong to no caller.
func (r *recorder) enter(step string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = step
}

// watch collects the exchanges of a context as they are answered.
type watch struct {
	mu  sync.Mutex
	all []exchange
}

type watchKey struct{}

func watching(ctx context.Context) (context.Context, *watch) {
	w := &watch{}
	return context.WithValue(ctx, watchKey{}, w), w
}

// last returns the last exchange of an action.
func (w *watch) last(action string) (exchange, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Backward(w.all) {
		if e.Action == action {
			return e, true
		}
	}
	return exchange{}, false
}

// Do implements aws.HTTPClient.
func (r *recorder) Do(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.Body != nil {
		var err error
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		// A body in memory is written in one piece with its headers; package cloud/aws explains why.
		request = request.Clone(request.Context())
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
		if len(sent) == 0 {
			request.Body = http.NoBody
		}
	}
	e := describe(request, sent)
	e.At, e.Region = r.now().UTC(), r.region
	e.Sent = r.next()
	response, err := r.client.Do(request)
	if err != nil {
		e.Failure = err.Error()
		r.write(request.Context(), e)
		return nil, err
	}
	reply, err := io.ReadAll(response.Body)
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		e.Failure = err.Error()
		r.write(request.Context(), e)
		return nil, fmt.Errorf("read reply: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(reply))
	e.Status, e.Reply, e.RequestID = response.StatusCode, string(reply), requestID(response, reply)
	r.write(request.Context(), e)
	return response, nil
}

func (r *recorder) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moment++
	return r.moment
}

// write passes an exchange unchanged to the context's watch, and masked to the file. A recording that fails does not stop
// the run: what was launched has to be terminated.
func (r *recorder) write(ctx context.Context, e exchange) {
	r.mu.Lock()
	r.moment++
	e.Step, e.Answered = r.step, r.moment
	switch e.Service {
	case "sts":
		r.mask.learnCaller(e.Reply)
	case "iam":
		r.mask.learnRoles(e.Reply)
	}
	if r.file != nil {
		line, err := json.Marshal(r.mask.apply(e))
		if err == nil {
			_, err = r.file.Write(append(line, '\n'))
		}
		if err != nil && r.failed == nil {
			r.failed = fmt.Errorf("the recording is not complete: %w", err)
		}
	}
	r.mu.Unlock()
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		w.mu.Lock()
		w.all = append(w.all, e)
		w.mu.Unlock()
	}
}

var scope = regexp.MustCompile(`Credential=[^/]+/[^/]+/[^/]+/([^/]+)/aws4_request`)

// describe reads what a request asks for. The signature's scope names the service.
func describe(request *http.Request, body []byte) exchange {
	e := exchange{Origin: "ec2sim"}
	if host := request.URL.Hostname(); strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn") ||
		strings.HasSuffix(host, ".api.aws") {
		e.Origin = "ec2"
	}
	if match := scope.FindStringSubmatch(request.Header.Get("Authorization")); match != nil {
		e.Service = match[1]
	}
	if target := request.Header.Get("X-Amz-Target"); target != "" {
		e.Action, e.Body = target[strings.LastIndexByte(target, '.')+1:], string(body)
		return e
	}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Get("Action") != "" {
		e.Action, e.Parameters = form.Get("Action"), map[string]string{}
		for key := range form {
			if key != "Action" && key != "Version" {
				e.Parameters[key] = form.Get(key)
			}
		}
		return e
	}
	e.Action, e.Body = request.Method+" "+request.URL.Path, string(body)
	return e
}

var requestIDElement = regexp.MustCompile(`<(?:requestId|RequestID|RequestId)>([^<]+)<`)

func requestID(response *http.Response, reply []byte) string {
	if id := response.Header.Get("X-Amzn-Requestid"); id != "" {
		return id
	}
	if match := requestIDElement.FindSubmatch(reply); match != nil {
		return string(match[1])
	}
	return ""
}

// masks are the names that a recording does not reveal, and their substitutes.
type masks struct {
	names []maskedName
	roles map[string]bool // already learnt
}

// maskedName is a name and its substitute. With whole, it is masked only as a word of its own.
type maskedName struct {
	name, stands string
	whole        *regexp.Regexp
}

// hide masks a name wherever it is a word of its own: not within other words, nor before a dot or a dash. The run's own tag
// is never masked.
func (m *masks) hide(name, stands string) {
	if name == "" || name == tagKey {
		return
	}
	whole := regexp.MustCompile(`(^|[^A-Za-z0-9.-])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9.-])`)
	m.names = append(m.names, maskedName{name, stands, whole})
}

// learnCaller masks the account and the caller, as STS names them.
func (m *masks) learnCaller(reply string) {
	var caller struct {
		Result struct {
			Account string
			Arn     string // the wire's spelling
			UserID  string `xml:"UserId"`
		} `xml:"GetCallerIdentityResult"`
	}
	if xml.Unmarshal([]byte(reply), &caller) != nil || caller.Result.Account == "" {
		return
	}
	if _, who, ok := strings.Cut(caller.Result.Arn, caller.Result.Account+":"); ok {
		m.names = append(m.names, maskedName{name: who, stands: "user/CALLER"})
	}
	m.names = append(m.names, maskedName{name: caller.Result.UserID, stands: "CALLERID"}, maskedName{name: caller.Result.Account, stands: maskedAccount})
}

var roleElement = regexp.MustCompile(`<RoleName>([^<]+)</RoleName>`)

// learnRoles masks the roles that IAM names, because a run that only cleans up knows no node class.
func (m *masks) learnRoles(reply string) {
	for _, match := range roleElement.FindAllStringSubmatch(reply, -1) {
		if role := match[1]; role != spotRole && !m.roles[role] {
			if m.roles == nil {
				m.roles = map[string]bool{}
			}
			m.roles[role] = true
			m.hide(role, "ROLE")
		}
	}
}

func (m *masks) text(text string) string {
	for _, name := range m.names {
		switch {
		case name.name == "" || !strings.Contains(text, name.name):
		case name.whole == nil:
			text = strings.ReplaceAll(text, name.name, name.stands)
		default:
			// Twice, because adjacent matches share the character between them.
			for range 2 {
				text = name.whole.ReplaceAllString(text, "${1}"+name.stands+"${2}")
			}
		}
	}
	return text
}

// apply masks an exchange. User data and the replies of EKS contain the cluster's address and certificate.
func (m *masks) apply(e exchange) exchange {
	parameters := make(map[string]string, len(e.Parameters))
	for key, value := range e.Parameters {
		if strings.HasSuffix(key, "UserData") {
			value = fmt.Sprintf("(masked: %d bytes)", len(value))
		}
		parameters[key] = m.text(value)
	}
	if len(e.Parameters) > 0 {
		e.Parameters = parameters
	}
	e.Action, e.Body = m.text(e.Action), m.text(e.Body)
	if e.Service == "eks" {
		e.Reply = fmt.Sprintf("(masked: %d bytes)", len(e.Reply))
	}
	if len(e.Reply) > keptReply {
		e.Cut = len(e.Reply)
		e.Reply = strings.ToValidUTF8(e.Reply[:keptReply], "")
	}
	e.Reply = m.text(e.Reply)
	e.Failure = m.text(e.Failure)
	return e
}
