package ec2sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

// call is one request, taken apart.
type call struct {
	id      string // request id
	service string // ec2, iam, ssm, ...: as in the signature's credential scope
	action  string
	// accessKey tells the principal, region the one that the request was signed for.
	accessKey, region string
	form              *params         // Query protocols
	body              json.RawMessage // JSON protocols
	host              string
	at                time.Time
	// answeredAt is when the answer is sent, faults considered.
	answeredAt time.Time
	// replayed says that the answer is that of an earlier call with the same client token.
	replayed bool
}

// reply is a finished answer.
type reply struct {
	status      int
	contentType string
	header      map[string]string
	body        []byte
}

// handler answers one action. It runs with the server locked and returns the value that the protocol encodes.
type handler func(s *Server, c *call) (any, error)

const maxRequestBody = 8 << 20

// ServeHTTP serves the AWS APIs, and the control endpoint below /_sim/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_sim/") {
		s.serveControl(w, r)
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
	c.at = s.now()
	plan := s.faultPlan(c)
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
	_, _ = w.Write(out.body) // a client that hung up is the fault of nobody here
}

// answer runs the action and encodes its outcome.
func (s *Server) answer(r *http.Request, c *call, plan faultPlan) (reply, *apiError) {
	p, h := protocolOf(c)
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
		if err := s.authorize(c); err != nil {
			return err
		}
		value, err = c.run(s, h)
		return err
	}
	err = s.locked(run)
	for wait, ok := value.(*messageWait); err == nil && ok; wait, ok = value.(*messageWait) {
		if !wait.forMessage(r.Context(), s) {
			value, err = wait.empty()
			break
		}
		err = s.locked(run)
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

// run runs the handler of a call and holds the call to what the handler looked at.
func (c *call) run(s *Server, h handler) (any, error) {
	if c.service == "ec2" && strings.HasPrefix(c.action, "Describe") && *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	if c.form != nil {
		c.form.forget() // what was looked at for the model and for policies
		c.form.flag("DryRun")
	}
	value, err := h(s, c)
	if err == nil || errors.Is(err, errDryRun) {
		err = cmp.Or(c.effective(), err)
	}
	return value, err
}

// readCall tells the service by the credential scope of the signature and the action by what its protocol uses.
func readCall(r *http.Request) (*call, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBody))
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	c := &call{id: uuid.NewString(), host: r.Host}
	c.accessKey, c.region, c.service = credentialScope(r)
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		prefix, action, _ := strings.Cut(target, ".")
		c.service, c.action, c.body = jsonServices[prefix], action, body
		return c, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Method == http.MethodGet {
		form = r.URL.Query()
	}
	if action := form.Get("Action"); action != "" {
		c.action, c.form = action, parseParams(form)
		return c, nil
	}
	c.action, c.body = restAction(r), body
	c.form = &params{value: r.URL.Path}
	return c, nil
}

// credentialScope reads access key, region and service out of "Credential=KEY/DATE/REGION/SERVICE/aws4_request".
func credentialScope(r *http.Request) (accessKey, region, service string) {
	credential := r.URL.Query().Get("X-Amz-Credential")
	if _, after, ok := strings.Cut(r.Header.Get("Authorization"), "Credential="); ok {
		credential, _, _ = strings.Cut(after, ",")
	}
	if parts := strings.Split(credential, "/"); len(parts) >= 5 {
		return parts[0], parts[len(parts)-3], parts[len(parts)-2]
	}
	return "", "", ""
}

// protocol is one of AWS's ways to put an answer into HTTP.
type protocol struct {
	success func(c *call, value any) (reply, error)
	failure func(c *call, e *apiError) reply
}

var (
	ec2Protocol   = protocol{ec2Success, ec2Failure}
	queryProtocol = protocol{querySuccess, queryFailure}
	jsonProtocol  = protocol{jsonSuccess, jsonFailure}
	sqsQuery      = protocol{sqsQuerySuccess, sqsQueryFailure}
)

// protocolOf finds the protocol and the handler of a call; the handler is nil if the action is unknown.
func protocolOf(c *call) (protocol, handler) {
	switch c.service {
	case "ec2":
		return ec2Protocol, ec2Actions[c.action]
	case "iam":
		return queryProtocol, iamActions[c.action]
	case "sts":
		return queryProtocol, stsActions[c.action]
	case "ssm":
		return jsonProtocol, ssmActions[c.action]
	case "sqs":
		if c.form != nil {
			return sqsQuery, sqsActions[c.action]
		}
		return jsonProtocol, sqsActions[c.action]
	case "pricing":
		return jsonProtocol, pricingActions[c.action]
	case "eks":
		return jsonProtocol, eksActions[c.action]
	case "fis":
		return jsonProtocol, fisActions[c.action]
	}
	return queryProtocol, nil
}

// jsonServices maps the prefix of X-Amz-Target to the service.
var jsonServices = map[string]string{
	"AmazonSSM": "ssm", "AmazonSQS": "sqs", "AWSPriceListService": "pricing",
}

// rawXML is an answer that was encoded before: everything inside the root element but the request id.
type rawXML []byte

const ec2Namespace = "http://ec2.amazonaws.com/doc/2016-11-15/"

func ec2Success(c *call, value any) (reply, error) {
	inner, err := innerXML(value)
	if err != nil {
		return reply{}, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s<%sResponse xmlns=\"%s\"><requestId>%s</requestId>", xml.Header, c.action, ec2Namespace, c.id)
	b.Write(inner)
	fmt.Fprintf(&b, "</%sResponse>", c.action)
	return reply{status: http.StatusOK, contentType: "text/xml;charset=UTF-8", body: b.Bytes()}, nil
}

// innerXML encodes a struct without the element around it.
func innerXML(value any) (rawXML, error) {
	if raw, ok := value.(rawXML); ok {
		return raw, nil
	}
	var b bytes.Buffer
	if err := xml.NewEncoder(&b).EncodeElement(value, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(b.Bytes(), []byte("<x>")), []byte("</x>")), nil
}

func ec2Failure(c *call, e *apiError) reply {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s<Response><Errors><Error><Code>%s</Code><Message>", xml.Header, e.code)
	_ = xml.EscapeText(&b, []byte(e.message)) // a bytes.Buffer does not fail
	fmt.Fprintf(&b, "</Message></Error></Errors><RequestID>%s</RequestID></Response>", c.id)
	return reply{status: e.status, contentType: "text/xml;charset=UTF-8", body: b.Bytes()}
}

func queryNamespace(service string) string {
	switch service {
	case "sts":
		return "https://sts.amazonaws.com/doc/2011-06-15/"
	case "sqs":
		return sqsNamespace
	}
	return "https://iam.amazonaws.com/doc/2010-05-08/"
}

func querySuccess(c *call, value any) (reply, error) {
	inner, err := innerXML(value)
	if err != nil {
		return reply{}, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<%sResponse xmlns=\"%s\">", c.action, queryNamespace(c.service))
	if value != (struct{}{}) { // an action without a result has no element for it
		fmt.Fprintf(&b, "<%[1]sResult>%[2]s</%[1]sResult>", c.action, inner)
	}
	fmt.Fprintf(&b, "<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>", c.id, c.action)
	return reply{status: http.StatusOK, contentType: "text/xml", body: b.Bytes()}, nil
}

func queryFailure(c *call, e *apiError) reply {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<ErrorResponse xmlns=\"%s\"><Error><Type>Sender</Type><Code>%s</Code><Message>", queryNamespace(c.service), e.code)
	_ = xml.EscapeText(&b, []byte(e.message)) // a bytes.Buffer does not fail
	fmt.Fprintf(&b, "</Message></Error><RequestId>%s</RequestId></ErrorResponse>", c.id)
	return reply{status: e.status, contentType: "text/xml", body: b.Bytes()}
}

func jsonContentType(c *call) string {
	switch c.service {
	case "sqs":
		return "application/x-amz-json-1.0"
	case "eks", "fis":
		return "application/json"
	}
	return "application/x-amz-json-1.1"
}

func jsonSuccess(c *call, value any) (reply, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return reply{}, fmt.Errorf("encode answer: %w", err)
	}
	return reply{status: http.StatusOK, contentType: jsonContentType(c), body: body}, nil
}

func jsonFailure(c *call, e *apiError) reply {
	body, err := json.Marshal(map[string]string{"__type": e.code, "message": e.message})
	if err != nil {
		return reply{status: http.StatusInternalServerError, contentType: jsonContentType(c)}
	}
	header := map[string]string{"X-Amzn-Errortype": e.code}
	if c.service == "sqs" {
		header = map[string]string{"X-Amzn-Query-Error": sqsLegacyCode(e.code) + ";Sender"}
	}
	return reply{status: e.status, contentType: jsonContentType(c), header: header, body: body}
}
