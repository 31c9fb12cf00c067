package world

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/tenon-sh/tenon/internal/codec"
)

// Codec is the key with which what Temporal keeps is encrypted. The zero Codec encrypts nothing.
type Codec struct {
	// Key is the key in base64, as it is in its file.
	Key     string
	options codec.Options
}

// newCodec makes a key in a directory of the laboratory.
func newCodec(t testing.TB, dir string) Codec {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	c := Codec{base64.StdEncoding.EncodeToString(key), codec.Options{Directory: filepath.Join(dir, "codec-keys"), KeyID: "of-the-test"}}
	err := os.Mkdir(c.options.Directory, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.options.Directory, c.options.KeyID), []byte(c.Key), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// env has a worker and the commands use the key.
func (c Codec) env() []string {
	if c.Key == "" {
		return nil
	}
	return []string{"TENON_CODEC_KEYS=" + c.options.Directory, "TENON_CODEC_KEY_ID=" + c.options.KeyID}
}

// dial has a client use the key.
func (c Codec) dial(t testing.TB) []grpc.DialOption {
	t.Helper()
	read, err := codec.New(c.options)
	if err != nil {
		t.Fatal(err)
	}
	interceptor, err := codec.Interceptor(read, read.Encrypts())
	if err != nil {
		t.Fatal(err)
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(interceptor)}
}
