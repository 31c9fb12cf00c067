package codec

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/internal/bearer"
)

const (
	// namespaceHeader is the header in which Temporal's UI and command say which namespace they read.
	namespaceHeader = "X-Namespace"
	// largestRequest bounds a request, in bytes. Temporal itself bounds the answers in which payloads come at 4 MiB.
	largestRequest = 16 << 20
	// stopWithin is how long requests may take to end once the server is to stop.
	stopWithin = 5 * time.Second
)

// ServerOptions say whom a Server answers, and where.
type ServerOptions struct {
	// Address is where the server listens. Without a token it has to be an address of the machine itself.
	Address string
	// HealthProbeAddress is where /healthz is served in addition, for a kubelet; empty means nowhere.
	HealthProbeAddress string
	// UIOrigin is the origin of Temporal's web UI, whose scripts may read what is decrypted; empty means that no script may.
	UIOrigin string
	// TokenFile has the token that callers need; empty means that they need none.
	TokenFile string
	// TLSCertFile and TLSKeyFile are the certificate of the server and its key; both empty means plain HTTP.
	TLSCertFile, TLSKeyFile string
}

// Server decrypts payloads for Temporal's UI and command (https://docs.temporal.io/codec-server).
type Server struct {
	options ServerOptions
	codec   *Codec
	log     *zap.Logger
}

// NewServer returns a server, or an error about an option.
func NewServer(codec *Codec, options ServerOptions, log *zap.Logger) (*Server, error) {
	s := &Server{options: options, codec: codec, log: log}
	switch {
	case !codec.Encrypts():
		return nil, errors.New("--codec-keys and --codec-key-id (TENON_CODEC_KEYS, TENON_CODEC_KEY_ID): a codec server needs the keys of the workers")
	case options.UIOrigin != "" && !isOrigin(options.UIOrigin):
		return nil, fmt.Errorf("--ui-origin %q: must be the origin of Temporal's web UI and nothing else, such as https://temporal.example.com", options.UIOrigin)
	case options.TokenFile == "" && !isLoopback(options.Address):
		return nil, fmt.Errorf("--address %q: whoever reaches a codec server reads what is encrypted. Without --token-file it listens on this machine only, as on 127.0.0.1:8089", options.Address)
	case (options.TLSCertFile == "") != (options.TLSKeyFile == ""):
		return nil, errors.New("--tls-cert-file and --tls-key-file: both or none")
	}
	if _, err := s.token(); err != nil {
		return nil, err
	}
	if options.TLSCertFile != "" {
		if _, err := s.certificate(nil); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func isOrigin(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != "" && text == parsed.Scheme+"://"+parsed.Host
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	parsed, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && parsed.IsLoopback()
}

// token reads the token; it is empty if none is needed.
func (s *Server) token() (string, error) {
	if s.options.TokenFile == "" {
		return "", nil
	}
	return bearer.Read(s.options.TokenFile, "the codec server's token (--token-file)")
}

// certificate reads the certificate for every connection, so that a Secret may be rotated.
func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(s.options.TLSCertFile, s.options.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read --tls-cert-file and --tls-key-file: %w", err)
	}
	return &pair, nil
}

// Handler returns what answers requests: /decode, /encode and /healthz.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	for _, path := range []string{"/decode", "/encode"} {
		mux.Handle("POST "+path, s.admitted(converter.NewPayloadCodecHTTPHandler(s.codec)))
		mux.HandleFunc("OPTIONS "+path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	return s.shared(mux)
}

// shared lets scripts of the UI's origin read the answers, and refuses those of all others. A browser names the origin in every
// request that a script makes to another one; the command names none.
func (s *Server) shared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" {
			if origin != s.options.UIOrigin {
				http.Error(w, "pages of this origin may not read here (--ui-origin)", http.StatusForbidden)
				return
			}
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Allow-Credentials", "true") // for a proxy before this server that knows its users by a cookie
			header.Set("Access-Control-Allow-Methods", "POST")
			header.Set("Access-Control-Allow-Headers", "Authorization, Authorization-Extras, Content-Type, "+namespaceHeader)
			header.Set("Access-Control-Max-Age", "600")
		}
		next.ServeHTTP(w, r)
	})
}

// admitted answers only requests that carry the token, and notes who asks.
func (s *Server) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields := []zap.Field{zap.String("path", r.URL.Path), zap.String("namespace", r.Header.Get(namespaceHeader)), zap.String("from", r.RemoteAddr)}
		token, err := s.token()
		if err != nil {
			s.log.Error("nobody can be admitted", zap.Error(err))
			http.Error(w, "the token cannot be read; the codec server's log says why", http.StatusServiceUnavailable)
			return
		}
		if given, _ := bearer.Of(r); token != "" && !bearer.Equal(given, token) {
			s.log.Warn("refused: not the token", fields...)
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this needs the codec server's token, as Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		s.log.Info("asked", fields...)
		r.Body = http.MaxBytesReader(w, r.Body, largestRequest)
		next.ServeHTTP(w, r)
	})
}

// health says whether the key that encrypts is there.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if err := s.codec.Check(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Run serves until ctx ends, which is not an error, and lets requests under way end.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.serve(ctx, s.options.Address, s.Handler(), s.options.TLSCertFile != "") })
	if s.options.HealthProbeAddress != "" {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /healthz", s.health)
		group.Go(func() error { return s.serve(ctx, s.options.HealthProbeAddress, mux, false) })
	}
	return group.Wait()
}

func (s *Server) serve(ctx context.Context, address string, handler http.Handler, secure bool) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	if secure {
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate, NextProtos: []string{"http/1.1"}})
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute}
	s.log.Info("serving", zap.Stringer("address", listener.Addr()), zap.Bool("tls", secure))
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		stopped <- server.Shutdown(ending)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve on %s: %w", address, err)
	}
	return <-stopped
}
