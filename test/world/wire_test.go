package world

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWire(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	wire := NewWire(t, strings.TrimPrefix(server.URL, "http://"))
	ask := func(within time.Duration) error {
		client := http.Client{Timeout: within, Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}}
		response, err := client.Get("http://" + wire.Address())
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	if err := ask(time.Minute); err != nil {
		t.Fatalf("a whole wire passes nothing on: %v", err)
	}
	if wire.Bytes() == 0 {
		t.Error("what went through was not counted")
	}
	wire.Cut()
	answered := make(chan error, 1)
	go func() { answered <- ask(time.Minute) }()
	if err := ask(100 * time.Millisecond); err == nil {
		t.Error("there was an answer through a wire that is cut")
	}
	wire.Mend()
	if err := <-answered; err != nil {
		t.Errorf("who waited long enough has no answer after the wire was mended: %v", err)
	}
}
