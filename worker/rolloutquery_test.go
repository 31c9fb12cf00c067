package worker

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRolloutQuery asks a server that answers as the documentation of Prometheus's HTTP API says.
func TestRolloutQuery(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, answer  string
		status          int
		failed, unknown string
	}{
		"Good":      {reason: "samples that are not zero", answer: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1435781451.781,"0.2"]}]}}`},
		"Scalar":    {reason: "a number", answer: `{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"1"]}}`},
		"Empty":     {reason: "a comparison that does not hold leaves nothing", answer: `{"status":"success","data":{"resultType":"vector","result":[]}}`, failed: "returns no samples"},
		"Zero":      {reason: "with bool, it leaves a zero", answer: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1435781451.781,"1"]},{"metric":{"job":"web"},"value":[1435781451.781,"0"]}]}}`, failed: `returns 0 for {job="web"}`},
		"NoNumber":  {reason: "a division by zero proves nothing", answer: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1435781451.781,"NaN"]}]}}`, failed: "returns NaN"},
		"NoScalar":  {reason: "a number that is zero", answer: `{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"0"]}}`, failed: "returns 0"},
		"Matrix":    {reason: "a range says nothing of now", answer: `{"status":"success","data":{"resultType":"matrix","result":[]}}`, unknown: "returns a matrix"},
		"Mistake":   {reason: "a query that Prometheus cannot read", status: http.StatusBadRequest, answer: `{"status":"error","errorType":"bad_data","error":"1:2: parse error"}`, unknown: "bad_data: 1:2: parse error"},
		"Away":      {reason: "a proxy without a Prometheus", status: http.StatusBadGateway, answer: "bad gateway", unknown: "server_error"},
		"NotAnswer": {reason: "something else answers", answer: "<html>", unknown: "bad_response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path + " " + r.FormValue("query")
				w.Header().Set("Content-Type", "application/json")
				if test.status != 0 {
					w.WriteHeader(test.status)
				}
				_, _ = w.Write([]byte(test.answer))
			}))
			defer server.Close()
			query, err := rolloutQuery(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			got := query(t.Context(), "up == 1")
			if asked != "/api/v1/query up == 1" {
				t.Errorf("asked %q", asked)
			}
			if !matches(got.Failed, test.failed) || !matches(got.Unknown, test.unknown) {
				t.Errorf("%s: %+v, want failed %q, unknown %q", test.reason, got, test.failed, test.unknown)
			}
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	query, err := rolloutQuery(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t.Context(), "up"); got.Unknown == "" {
		t.Errorf("a Prometheus that is gone answers %+v", got)
	}
	if query, err := rolloutQuery(""); query != nil || err != nil {
		t.Errorf("without an address there is a query: %v", err)
	}
}

func matches(got, want string) bool {
	return (got == "") == (want == "") && strings.Contains(got, want)
}
