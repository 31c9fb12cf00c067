package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkTimeout bounds one health check; a check that fails is repeated.
const checkTimeout = 2 * time.Second

// httpOK checks that url answers with status 200.
func httpOK(url string) func(context.Context) error {
	return httpCheck(http.DefaultTransport, url, func(status int) bool { return status == http.StatusOK })
}

// httpAnswers checks that url answers with any status below 500.
func httpAnswers(url string) func(context.Context) error {
	return httpCheck(http.DefaultTransport, url, func(status int) bool { return status < 500 })
}

// httpsOK checks that url answers with status 200 and a certificate of the lab.
func httpsOK(l layout, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		pem, err := os.ReadFile(l.pki(caCert))
		if err != nil {
			return fmt.Errorf("reading the lab's certificate authority: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return errors.New("the lab's certificate authority is not a certificate")
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		defer transport.CloseIdleConnections()
		return httpCheck(transport, url, func(status int) bool { return status == http.StatusOK })(ctx)
	}
}

func httpCheck(transport http.RoundTripper, url string, good func(status int) bool) func(context.Context) error {
	client := &http.Client{Transport: transport, Timeout: checkTimeout}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("health check of %s: %w", url, err)
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("health check: %w", err)
		}
		defer response.Body.Close()
		if !good(response.StatusCode) {
			return fmt.Errorf("health check of %s: %s", url, response.Status)
		}
		return nil
	}
}

// defaultServiceAccountExists checks for the default service account, without which no pod can be created in the default
// namespace.
func (s site) defaultServiceAccountExists(ctx context.Context) error {
	clients, err := s.clientset()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if _, err := clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("reading the default service account: %w", err)
	}
	return nil
}

// deleteNodeLeases deletes the leases of all nodes.
func (s site) deleteNodeLeases(ctx context.Context) error {
	clients, err := s.clientset()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	err = clients.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("deleting node leases: %w", err)
	}
	return nil
}

// temporalServes checks that Temporal serves its default namespace.
func (s site) temporalServes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	namespaces, err := client.NewNamespaceClient(client.Options{HostPort: s.TemporalAddress(), Logger: discardLogger{}})
	if err != nil {
		return fmt.Errorf("connecting to Temporal: %w", err)
	}
	defer namespaces.Close()
	if _, err := namespaces.Describe(ctx, client.DefaultNamespace); err != nil && !refused(err) {
		return fmt.Errorf("describing Temporal's namespace %s: %w", client.DefaultNamespace, err)
	}
	return nil
}

// discardLogger suppresses the SDK's messages that Temporal is not up yet.
type discardLogger struct{}

func (discardLogger) Debug(string, ...any) {}
func (discardLogger) Info(string, ...any)  {}
func (discardLogger) Warn(string, ...any)  {}
func (discardLogger) Error(string, ...any) {}
