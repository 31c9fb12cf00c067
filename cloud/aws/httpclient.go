package aws

import (
	"bytes"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// wholeRequests hands requests to an HTTP client with their bodies in memory. The SDK closes a request's body as soon as
// the reply begins; a transport that is still looking for the end of a body it streams then gives up the connection in
// the middle of the reply. That is rare on a real network and common on a local one. A body in memory is written in one
// piece with its headers, and is over by then. All bodies this package sends are small.
type wholeRequests struct{ client aws.HTTPClient }

// Do implements aws.HTTPClient.
func (w wholeRequests) Do(request *http.Request) (*http.Response, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return w.client.Do(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	whole := request.Clone(request.Context())
	whole.Body = io.NopCloser(bytes.NewReader(body))
	whole.ContentLength = int64(len(body))
	return w.client.Do(whole)
}
