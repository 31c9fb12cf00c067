package aws

import (
	"bytes"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// wholeRequests reads the body of each request into memory before it hands the request to an HTTP client. The SDK
// closes a request's body as soon as the reply begins. A transport that is still looking for the end of a streamed body
// then drops the connection in the middle of the reply, which is rare on a real network and common on a local one. A
// body in memory is written in one piece with its headers and has ended by then. All bodies this package sends are
// small.
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
