package worker

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestProfilesAreServedToWhoAsksForThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		profiles bool
		path     string
		want     int
	}{
		{profiles: false, path: "/metrics", want: http.StatusOK},
		{profiles: false, path: "/debug/pprof/heap", want: http.StatusNotFound},
		{profiles: false, path: "/debug/pprof/", want: http.StatusNotFound},
		{profiles: false, path: "/debug/pprof/cmdline", want: http.StatusNotFound},
		{profiles: false, path: "/debug/pprof/symbol", want: http.StatusNotFound},
		{profiles: true, path: "/debug/pprof/cmdline", want: http.StatusOK},
		{profiles: true, path: "/debug/pprof/goroutine", want: http.StatusOK},
		{profiles: true, path: "/debug/pprof/symbol", want: http.StatusOK},
		{profiles: true, path: "/metrics", want: http.StatusOK},
		{profiles: true, path: "/debug/pprof/heap", want: http.StatusOK},
	} {
		answer := httptest.NewRecorder()
		metricsHandler(test.profiles).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, test.path, nil))
		if answer.Code != test.want {
			t.Errorf("profiles %t: %s is answered with %d, want %d", test.profiles, test.path, answer.Code, test.want)
		}
	}
}
