package temporal

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.temporal.io/sdk/client"
)

// KeyFileVariable is the environment variable that names the file of the API key or token for the Temporal server. The file is
// read for every request, so that a key that is replaced there counts at once; TEMPORAL_API_KEY, which it precedes, is read
// once.
const KeyFileVariable = "TENON_TEMPORAL_API_KEY_FILE"

// keyFromFile has the client send the key in the file that KeyFileVariable names, if it names one: as "authorization: Bearer
// KEY", over TLS unless TEMPORAL_TLS says otherwise. It fails if the file cannot be read now.
func keyFromFile(options *client.Options) error {
	path := os.Getenv(KeyFileVariable)
	if path == "" {
		return nil
	}
	read := func(context.Context) (string, error) {
		key, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the key for Temporal (%s): %w", KeyFileVariable, err)
		}
		return strings.TrimSpace(string(key)), nil
	}
	if _, err := read(context.Background()); err != nil {
		return err
	}
	options.Credentials = client.NewAPIKeyDynamicCredentials(read)
	return nil
}
