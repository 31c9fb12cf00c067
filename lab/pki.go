package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"strings"
	"time"
)

// The files of a lab's keys. All are created once: a cluster's tokens and certificates must outlive its processes.
const (
	caCert             = "ca.crt"
	caKey              = "ca.key"
	serverCert         = "server.crt"
	serverKey          = "server.key"
	serviceAccountsKey = "service-accounts.key"
	tokensFile         = "tokens.csv"
)

// pkiLifetime is longer than the lifetime of any lab.
const pkiLifetime = 10 * 365 * 24 * time.Hour

// writePKI creates the certificate authority, the serving certificate of the control plane, the key of service account
// tokens and the users' tokens, unless the directory has them.
func writePKI(l layout) error {
	_, err := os.Stat(l.pki(tokensFile)) // written last
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the lab's keys: %w", err)
	}
	files, err := newPKI()
	if err != nil {
		return fmt.Errorf("making the lab's keys: %w", err)
	}
	for _, file := range []string{caCert, caKey, serverCert, serverKey, serviceAccountsKey, tokensFile} {
		if err := writeAtomically(l.pki(file), files[file]); err != nil {
			return fmt.Errorf("writing the lab's keys: %w", err)
		}
	}
	return nil
}

func newPKI() (map[string][]byte, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tenon lab"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(pkiLifetime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "tenon lab control plane"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return nil, err
	}
	serviceAccounts, err := rsa.GenerateKey(rand.Reader, 2048) // the API server signs tokens with RSA
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		caCert:     encode("CERTIFICATE", authorityDER),
		serverCert: encode("CERTIFICATE", serverDER),
		serviceAccountsKey: encode("RSA PRIVATE KEY",
			x509.MarshalPKCS1PrivateKey(serviceAccounts)),
		tokensFile: newTokens(),
	}
	for name, private := range map[string]*ecdsa.PrivateKey{caKey: authorityKey, serverKey: key} {
		der, err := x509.MarshalECPrivateKey(private)
		if err != nil {
			return nil, err
		}
		files[name] = encode("EC PRIVATE KEY", der)
	}
	return files, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// newTokens returns a random token per user in the API server's format: token, user, uid, groups.
func newTokens() []byte {
	var b strings.Builder
	for _, u := range users() {
		token := make([]byte, 16)
		_, _ = rand.Read(token) // never fails, see crypto/rand
		fmt.Fprintf(&b, "%s,%s,%s,%s\n", hex.EncodeToString(token), u, u, groupOf(u))
	}
	return []byte(b.String())
}

// readTokens returns each user's token.
func readTokens(l layout) (map[user]string, error) {
	data, err := os.ReadFile(l.pki(tokensFile))
	if err != nil {
		return nil, fmt.Errorf("reading the lab's tokens: %w", err)
	}
	tokens := map[user]string{}
	for line := range strings.Lines(string(data)) {
		token, rest, _ := strings.Cut(line, ",")
		name, _, _ := strings.Cut(rest, ",")
		tokens[user(name)] = token
	}
	return tokens, nil
}
