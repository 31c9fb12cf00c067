package postgres_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issuer issues tokens as an identity provider does: JSON web tokens, signed with a key whose public half it publishes.
type issuer struct {
	t   testing.TB
	key *rsa.PrivateKey
}

// keyID is the name of the issuer's key.
const keyID = "lab"

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t: t, key: key}
}

// publish writes the public key as a JSON web key set, and returns the URI of the file.
func (i *issuer) publish() string {
	i.t.Helper()
	set := map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "kid": keyID, "alg": "RS256", "use": "sig", "n": encoded(i.key.N.Bytes()), "e": encoded(big.NewInt(int64(i.key.E)).Bytes()),
	}}}
	file := filepath.Join(i.t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, i.json(set), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return "file://" + file
}

// token issues a token with permissions such as tenon:write, which is good for that long.
func (i *issuer) token(good time.Duration, permissions ...string) string {
	i.t.Helper()
	header := map[string]any{"alg": "RS256", "typ": "JWT", "kid": keyID}
	claims := map[string]any{"sub": "somebody", "exp": time.Now().Add(good).Unix(), "permissions": permissions}
	text := encoded(i.json(header)) + "." + encoded(i.json(claims))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return text + "." + encoded(signature)
}

func (i *issuer) json(value any) []byte {
	i.t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		i.t.Fatal(err)
	}
	return data
}

func encoded(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
