package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/tenon-sh/tenon/internal/bearer"
)

const (
	// policy is the Content-Security-Policy: this server's own files and nothing else, no script or style within a document,
	// no frames, and no text that is parsed as HTML (Trusted Types).
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	// cookie is the name of the cookie that a browser gets for the token.
	cookie = "tenon-page"
)

// guard decides who may read.
type guard struct{ tokenFile string }

// token reads the token; it is empty if none is needed. An error means that nobody may read.
func (g guard) token() (string, error) {
	if g.tokenFile == "" {
		return "", nil
	}
	return bearer.Read(g.tokenFile, "the page's token")
}

// wrap sets the headers of every answer, and refuses what only reads nothing or comes from elsewhere.
func (g guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
			"Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
		case strings.HasPrefix(r.URL.Path, "/api/") && site != "" && site != "same-origin" && site != "none":
			http.Error(w, "other sites may not read this", http.StatusForbidden)
		case g.tokenFile == "" && !private(r.Host):
			// Another site's name may be made to resolve to this address, and its scripts could then read the page.
			http.Error(w, fmt.Sprintf("without a token the page is not served as %q: use an address, localhost or a name of the cluster, or set --ui-token-file", r.Host),
				http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// private reports whether a host is an address, or a name that nobody outside can make resolve to this server.
func private(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

// needsToken answers only requests that carry the token, as a bearer or by the cookie that session gives for it.
func (g guard) needsToken(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.admits(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}

// session gives a browser a cookie for the token, because a stream of events cannot send the token itself. The cookie is
// derived from the token: it holds on every replica, and ends when the token is changed.
func (g guard) session(w http.ResponseWriter, r *http.Request) {
	if err := g.admits(r); err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if token, err := g.token(); err == nil && token != "" {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: derived(token), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"})
	}
	w.WriteHeader(http.StatusNoContent)
}

var (
	errNoToken    = errors.New("this needs a token")
	errWrongToken = errors.New("that is not the token")
)

// admits returns why a request is not admitted; nil if it is.
func (g guard) admits(r *http.Request) error {
	token, err := g.token()
	switch {
	case err != nil:
		return errors.New("the page's token cannot be read; the worker's log says why")
	case token == "":
		return nil
	}
	if given, ok := bearer.Of(r); ok {
		if bearer.Equal(given, token) {
			return nil
		}
		return errWrongToken
	}
	given, err := r.Cookie(cookie)
	switch {
	case err != nil:
		return errNoToken
	case !bearer.Equal(given.Value, derived(token)):
		return errWrongToken
	}
	return nil
}

// derived is the cookie's value for a token.
func derived(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("tenon page cookie"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
