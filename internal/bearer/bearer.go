// Package bearer reads and compares tokens that callers present as a bearer (RFC 6750). A token is in a file, such as a mounted
// Secret, which is read whenever it is needed, so that it may be rotated.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// least is the least length of a token in bytes.
const least = 16

// Read reads a token. Errors call it by a name, such as "the page's token".
func Read(file, name string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	token := strings.TrimSpace(string(content))
	if len(token) < least {
		return "", fmt.Errorf("%s in %s has %d characters; it must have at least %d", name, file, len(token), least)
	}
	return token, nil
}

// Of returns the token that a request presents, and whether it presents one.
func Of(r *http.Request) (string, bool) {
	return strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// Equal compares in a time that tells neither content nor length.
func Equal(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
