package ec2sim

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// The protocols of the services.
var (
	ec2Protocol   = protocol{ec2Success, ec2Failure}
	queryProtocol = protocol{querySuccess, queryFailure}
	jsonProtocol  = protocol{jsonSuccess, jsonFailure}
	sqsQuery      = protocol{sqsQuerySuccess, sqsQueryFailure}
)

// protocolOf returns the protocol in which a call is answered.
func protocolOf(c *call) protocol {
	switch c.service {
	case "ec2":
		return ec2Protocol
	case "ssm", "pricing", "eks", "events", "fis", "arc-zonal-shift":
		return jsonProtocol
	case "sqs":
		if c.form != nil {
			return sqsQuery
		}
		return jsonProtocol
	}
	return queryProtocol
}

// ServeHTTP serves the AWS APIs, and the control endpoint below /_sim/. It refuses whatever a browser sends for a page of another
// origin: whoever visits a page while a simulator runs on the same machine has not asked for that.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := foreign(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/_sim/") {
		controlAPI{s}.serve(w, r)
		return
	}
	if r.URL.Path == "/healthz" {
		w.WriteHeader(http.StatusOK)
		return
	}
	c, err := readCall(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.at = s.opts.Now()
	plan := s.plan(c)
	out, failure := s.answer(r, c, plan)
	s.calls.record(c, failure, plan.lost)
	select {
	case <-time.After(s.opts.Latency + plan.delay):
	case <-r.Context().Done():
	}
	if plan.lost {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	w.Header().Set("Content-Type", out.contentType)
	w.Header().Set("X-Amzn-Requestid", c.id)
	for k, v := range out.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body) // fails only if the client has hung up
}

// sameOrigin knows requests that a browser sends for a page of another origin by their headers.
var sameOrigin = http.NewCrossOriginProtection()

// foreign returns an error about a request that is not its sender's own. Names other than the machine's own do not count as its
// origin: a page could have its name resolve to 127.0.0.1. Reading is refused as well, since a page reads what it may send.
func foreign(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return sameOrigin.Check(r)
	}
	parsed, err := url.Parse(origin)
	if err != nil || parsed.Host != r.Host || !local(parsed.Hostname()) {
		return fmt.Errorf("this request comes from a page of %q, not from this machine", origin)
	}
	return nil
}

// local reports whether a host is this machine, or an address.
func local(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

// plan draws the faults for a call.
func (s *Server) plan(c *call) faultPlan {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	return s.faults.plan(c)
}

// answer runs the action and encodes its result.
func (s *Server) answer(r *http.Request, c *call, plan faultPlan) (reply, *apiError) {
	p, h := protocolOf(c), s.handlers[c.service][c.action]
	if c.service == "" {
		e := &apiError{http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token"}
		return p.failure(c, e), e
	}
	if h == nil {
		e := &apiError{http.StatusBadRequest, "InvalidAction", fmt.Sprintf("The action %s is not valid for this web service.", c.action)}
		return p.failure(c, e), e
	}
	if plan.refusal != nil {
		return p.failure(c, plan.refusal), plan.refusal
	}
	if c.service == "sqs" && c.form != nil {
		if err := readSQSQuery(c, r.URL.Path); err != nil {
			e := asAPIError(err)
			return p.failure(c, e), e
		}
	}
	if err := checkModel(c); err != nil {
		e := asAPIError(err)
		return p.failure(c, e), e
	}
	var (
		value any
		err   error
	)
	run := func(time.Time) error {
		if err := s.authorizer.authorize(c); err != nil {
			return err
		}
		value, err = c.run(h)
		return err
	}
	err = s.guard.change(run)
	for wait, ok := value.(*messageWait); err == nil && ok; wait, ok = value.(*messageWait) {
		if !wait.forMessage(r.Context()) {
			value, err = wait.empty()
			break
		}
		err = s.guard.change(run)
	}
	if err == nil {
		var out reply
		if out, err = p.success(c, value); err == nil {
			return out, nil
		}
	}
	e := asAPIError(err)
	return p.failure(c, e), e
}
