package ec2sim

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// restAction returns the action of a REST request, which EKS, FIS and ARC use.
func restAction(r *http.Request) string {
	if r.Method == http.MethodGet && clusterPath.MatchString(r.URL.Path) {
		return "DescribeCluster"
	}
	if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, managedResources) {
		return "GetManagedResource"
	}
	if action := nodeGroupAction(r.Method, r.URL.Path); action != "" {
		return action
	}
	if action := fisAction(r.Method, r.URL.Path); action != "" {
		return action
	}
	return r.Method + " " + r.URL.Path
}

const maxRequestBody = 8 << 20

// jsonServices maps the prefix of X-Amz-Target to the service.
var jsonServices = map[string]string{
	"AmazonSSM": "ssm", "AmazonSQS": "sqs", "AWSPriceListService": "pricing", "AWSEvents": "events",
}

// readCall parses a request. The service comes from the credential scope of the signature, the action from where its
// protocol puts it. With X-Amz-Target, both come from that header.
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
	c.form = &params{value: r.URL.Path, children: parseParams(r.URL.Query()).children}
	return c, nil
}

// credentialScope extracts access key, region and service from "Credential=KEY/DATE/REGION/SERVICE/aws4_request".
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
