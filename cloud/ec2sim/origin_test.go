package ec2sim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestPagesOfOthersAreRefused: a page that somebody visits cannot use that person's browser to control the simulator.
func TestPagesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	host := strings.TrimPrefix(a.sim.URL(), "http://")
	for reason, test := range map[string]struct {
		headers map[string]string
		host    string
		refused bool
	}{
		"curl sends no Origin":                                 {},
		"the simulator's own page":                             {headers: map[string]string{"Origin": "http://" + host, "Sec-Fetch-Site": "same-origin"}},
		"a page of another site":                               {headers: map[string]string{"Origin": "https://example.com", "Sec-Fetch-Site": "cross-site"}, refused: true},
		"an old browser does not say where it is":              {headers: map[string]string{"Origin": "https://example.com"}, refused: true},
		"another port of this machine":                         {headers: map[string]string{"Origin": "http://127.0.0.1:1"}, refused: true},
		"a page in a sandbox has no origin":                    {headers: map[string]string{"Origin": "null"}, refused: true},
		"a browser that says so without an Origin":             {headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, refused: true},
		"a name that resolves to this machine (DNS rebinding)": {headers: map[string]string{"Origin": "http://example.com:80", "Sec-Fetch-Site": "same-origin"}, host: "example.com:80", refused: true},
	} {
		for _, path := range []string{"/_sim/reset", "/"} {
			request, err := http.NewRequestWithContext(ctx(t), http.MethodPost, a.sim.URL()+path, strings.NewReader("Action=DescribeVpcs&Version=2016-11-15"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for name, value := range test.headers {
				request.Header.Set(name, value)
			}
			if test.host != "" {
				request.Host = test.host
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			// Without a signature, AWS's own answer to the call is MissingAuthenticationToken, with the same status.
			refused := response.StatusCode == http.StatusForbidden && response.Header.Get("Content-Type") == "text/plain; charset=utf-8"
			if refused != test.refused {
				t.Errorf("%s: POST %s is answered with %s, want refused: %t", reason, path, response.Status, test.refused)
			}
		}
	}
}
