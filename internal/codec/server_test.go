package codec

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	uiOrigin = "https://temporal.example.com"
	token    = "the token of a test"
)

// request asks a codec server, as whoever the headers say.
func request(t *testing.T, server *Server, method, path string, body []byte, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8089"+path, bytes.NewReader(body))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, r)
	return w.Result()
}

// TestCodecServer asks as Temporal's UI and command do, and as others would like to.
func TestCodecServer(t *testing.T) {
	t.Parallel()
	c := newCodec(t, directory(t, "a"), "a")
	file := filepath.Join(t.TempDir(), "token")
	put(t, filepath.Dir(file), "token", []byte(token+"\n"))
	core, logs := observer.New(zap.InfoLevel)
	open, err := NewServer(c, ServerOptions{Address: "localhost:8089", UIOrigin: uiOrigin}, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := NewServer(c, ServerOptions{Address: ":8089", TokenFile: file}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	plain := &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"secret"`)}}}
	encoded, err := c.Encode(plain.GetPayloads())
	if err != nil {
		t.Fatal(err)
	}
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: encoded})
	if err != nil {
		t.Fatal(err)
	}
	bearer := func(text string) map[string]string { return map[string]string{"Authorization": text} }
	for name, row := range map[string]struct {
		reason       string
		server       *Server
		method, path string
		header       map[string]string
		status       int
		reads        bool
	}{
		"UI":            {"a script of the UI's origin", open, "POST", "/decode", map[string]string{"Origin": uiOrigin, "X-Namespace": "tenon"}, 200, true},
		"Command":       {"the temporal command names no origin", open, "POST", "/decode", map[string]string{"X-Namespace": "tenon"}, 200, true},
		"Preflight":     {"browsers ask first, without the token", open, "OPTIONS", "/decode", map[string]string{"Origin": uiOrigin, "Access-Control-Request-Method": "POST"}, 204, false},
		"OtherOrigin":   {"a page of others", open, "POST", "/decode", map[string]string{"Origin": "https://example.com"}, 403, false},
		"Likeness":      {"an origin that begins like the UI's", open, "POST", "/decode", map[string]string{"Origin": uiOrigin + ".evil.example"}, 403, false},
		"NullOrigin":    {"a sandboxed page", open, "POST", "/decode", map[string]string{"Origin": "null"}, 403, false},
		"OtherAsksOnce": {"a page of others asks first", open, "OPTIONS", "/decode", map[string]string{"Origin": "https://example.com"}, 403, false},
		"NoOrigins":     {"without --ui-origin no page may read", guarded, "POST", "/decode", map[string]string{"Origin": uiOrigin, "Authorization": "Bearer " + token}, 403, false},
		"Get":           {"nothing is decrypted in an address", open, "GET", "/decode", nil, 405, false},
		"Elsewhere":     {"there is nothing else", open, "POST", "/keys", nil, 404, false},
		"Token":         {"with the token", guarded, "POST", "/decode", bearer("Bearer " + token), 200, true},
		"NoToken":       {"without the token", guarded, "POST", "/decode", nil, 401, false},
		"WrongToken":    {"with another token", guarded, "POST", "/decode", bearer("Bearer " + token + "x"), 401, false},
		"Basic":         {"with the token in another way", guarded, "POST", "/decode", bearer("Basic " + token), 401, false},
		"NoTokenEncode": {"encrypting needs the token too", guarded, "POST", "/encode", nil, 401, false},
		"Health":        {"a kubelet has no token", guarded, "GET", "/healthz", nil, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := request(t, row.server, row.method, row.path, body, row.header)
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			var decoded commonpb.Payloads
			_ = protojson.Unmarshal(text, &decoded) // a refusal is not JSON
			if answer.StatusCode != row.status || equal(decoded.GetPayloads(), plain.GetPayloads()) != row.reads {
				t.Errorf("%s: %s %s", row.reason, answer.Status, text)
			}
			allowed := answer.Header.Get("Access-Control-Allow-Origin")
			if want := row.header["Origin"]; row.status < 300 && allowed != want || row.status >= 400 && allowed != "" {
				t.Errorf("%s: the origin %q may read", row.reason, allowed)
			}
		})
	}
	t.Run("Encode", func(t *testing.T) {
		t.Parallel()
		encodes, err := protojson.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		answer := request(t, open, "POST", "/encode", encodes, nil)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		var got commonpb.Payloads
		if err := protojson.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if decoded, err := c.Decode(got.GetPayloads()); err != nil || !encrypted(got.GetPayloads()[0]) || !equal(decoded, plain.GetPayloads()) {
			t.Errorf("%s: %v, %v", text, decoded, err)
		}
	})
	t.Run("Log", func(t *testing.T) {
		t.Parallel()
		_ = request(t, open, "POST", "/decode", body, map[string]string{"X-Namespace": "of the log"}).Body.Close()
		if logs.FilterField(zap.String("namespace", "of the log")).Len() != 1 {
			t.Error("who asked is not in the log")
		}
	})
}

// TestCodecServerTokenMayBeRotated shows that a new token counts at once, and that none can be used while it cannot be read.
func TestCodecServerTokenMayBeRotated(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	put(t, filepath.Dir(file), "token", []byte(token))
	server, err := NewServer(newCodec(t, directory(t, "a"), "a"), ServerOptions{Address: ":8089", TokenFile: file}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	asked := func(token string) int {
		answer := request(t, server, "POST", "/decode", []byte("{}"), map[string]string{"Authorization": "Bearer " + token})
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	put(t, filepath.Dir(file), "token", []byte(token+" anew"))
	if before, after := asked(token), asked(token+" anew"); before != 401 || after != 200 {
		t.Errorf("the old token gets %d, the new one %d", before, after)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := asked(token + " anew"); got != 503 {
		t.Errorf("without its file, a token gets %d", got)
	}
}

// TestCodecServerMistakes names the flag.
func TestCodecServerMistakes(t *testing.T) {
	t.Parallel()
	c := newCodec(t, directory(t, "a"), "a")
	none, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	short := directory(t)
	put(t, short, "token", []byte("short"))
	for name, row := range map[string]struct {
		reason  string
		codec   *Codec
		options ServerOptions
		says    string
	}{
		"NoKeys":    {"it could decrypt nothing", none, ServerOptions{Address: "127.0.0.1:0"}, "--codec-keys"},
		"Open":      {"everybody could read everything", c, ServerOptions{Address: ":8089"}, "--token-file"},
		"OpenHost":  {"an address of the network", c, ServerOptions{Address: "10.0.0.1:8089"}, "--token-file"},
		"Short":     {"a short token can be guessed", c, ServerOptions{Address: ":8089", TokenFile: filepath.Join(short, "token")}, "at least 16"},
		"NoFile":    {"the file must exist", c, ServerOptions{Address: ":8089", TokenFile: filepath.Join(short, "none")}, "--token-file"},
		"Path":      {"an origin has no path", c, ServerOptions{Address: "[::1]:8089", UIOrigin: uiOrigin + "/"}, "--ui-origin"},
		"Wildcard":  {"not every page", c, ServerOptions{Address: "[::1]:8089", UIOrigin: "*"}, "--ui-origin"},
		"HalfTLS":   {"a certificate needs its key", c, ServerOptions{Address: "[::1]:8089", TLSCertFile: "tls.crt"}, "--tls-key-file"},
		"NoTLSFile": {"the certificate must exist", c, ServerOptions{Address: "[::1]:8089", TLSCertFile: "none.crt", TLSKeyFile: "none.key"}, "--tls-cert-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewServer(row.codec, row.options, zap.NewNop()); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v does not say %s", row.reason, err, row.says)
			}
		})
	}
}

// TestCodecServerServesTLS serves with a certificate, and ends when it is told to.
func TestCodecServerServesTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	put(t, dir, "tls.crt", certificate)
	put(t, dir, "tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	core, logs := observer.New(zap.InfoLevel)
	server, err := NewServer(newCodec(t, directory(t, "a"), "a"), ServerOptions{Address: "127.0.0.1:0", HealthProbeAddress: "127.0.0.1:0",
		TLSCertFile: filepath.Join(dir, "tls.crt"), TLSKeyFile: filepath.Join(dir, "tls.key")}, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	addresses := map[bool]string{} // by whether TLS is served there
	for len(addresses) < 2 {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
		for _, entry := range logs.FilterMessage("serving").All() {
			fields := entry.ContextMap()
			addresses[fields["tls"].(bool)] = fields["address"].(string)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	for _, url := range []string{"https://" + addresses[true] + "/healthz", "http://" + addresses[false] + "/healthz"} {
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(ask)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", url, answer.Status)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("told to stop, it says %v", err)
	}
}
