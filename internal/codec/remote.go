package codec

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// Remote has a codec server encrypt and decrypt, as the temporal command does. It is for people, who then need no keys; it asks for
// the payloads of every answer anew.
type Remote struct {
	endpoint string
	asked    converter.PayloadCodec
}

var _ converter.PayloadCodec = Remote{}

// NewRemote returns the codec of a server. The endpoint may contain {namespace}; authorization is the header of that name, empty
// if there is none.
func NewRemote(endpoint, authorization, namespace string) Remote {
	endpoint = strings.TrimSuffix(strings.ReplaceAll(endpoint, "{namespace}", namespace), "/")
	return Remote{endpoint: endpoint, asked: converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: endpoint,
		ModifyRequest: func(r *http.Request) error {
			r.Header.Set(namespaceHeader, namespace)
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			return nil
		},
	})}
}

// Encode has the server encrypt payloads.
func (r Remote) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	encoded, err := r.asked.Encode(payloads)
	if err != nil {
		return nil, fmt.Errorf("encrypt by the codec server %s (TEMPORAL_CODEC_ENDPOINT): %w", r.endpoint, err)
	}
	return encoded, nil
}

// Decode has the server decrypt payloads, unless none of them is encrypted. Its error is an UnreadableError.
func (r Remote) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	first := slices.IndexFunc(payloads, encrypted)
	if first < 0 {
		return payloads, nil
	}
	decoded, err := r.asked.Decode(payloads)
	if err != nil {
		return nil, &UnreadableError{KeyID: string(payloads[first].GetMetadata()[MetadataKeyID]),
			Why: fmt.Sprintf("the codec server %s (TEMPORAL_CODEC_ENDPOINT) does not decrypt it: %v", r.endpoint, err)}
	}
	return decoded, nil
}
