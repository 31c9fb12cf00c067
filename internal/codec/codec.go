// Package codec encrypts what Tenon gives Temporal to keep: inputs, results, signals, memos, summaries and the texts of
// failures. Temporal's servers, its database and its backups then hold ciphertext, which their operators cannot read.
//
// A payload is encrypted as a whole, its own encoding included, with AES-256-GCM and a random nonce. It says in its metadata
// that it is binary/encrypted and with which key, by the names that Temporal's own samples use
// (https://docs.temporal.io/production-deployment/data-encryption), and its bytes are laid out as theirs: nonce, ciphertext, tag.
// One key encrypts, every key that is there decrypts, and payloads in clear are read as they are: so the codec can be
// switched on, and its key changed, while workflows run.
//
// The codec works on the connection to Temporal (Interceptor) and not in the SDK's data converter. What reads histories,
// memos or answers by hand therefore needs to know nothing of it. And a payload that cannot be decrypted never reaches a
// workflow's code, which the SDK would let fail: the worker gives the task back and says which key it lacks.
//
// Reading order: keys, codec, refuse, wire, server, remote.
package codec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

const (
	// Encoding is the encoding of an encrypted payload.
	Encoding = "binary/encrypted"
	// MetadataKeyID is the metadata that names the key of an encrypted payload.
	MetadataKeyID = "encryption-key-id"
)

// Options say with which keys to encrypt and decrypt. Without any, nothing is encrypted.
type Options struct {
	// Directory has one file for each key, named by the key's id, such as a mounted Secret: 32 bytes in base64.
	Directory string
	// KeyID names the key that encrypts.
	KeyID string
}

// Flags adds a flag for each option. FromEnvironment reads TENON_CODEC_KEYS and TENON_CODEC_KEY_ID.
func (o *Options) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Directory, "codec-keys", o.Directory, "directory of the keys that decrypt what Temporal keeps, such as a mounted Secret: one file for each key, 32 bytes in base64 (default: nothing is encrypted)")
	flags.StringVar(&o.KeyID, "codec-key-id", o.KeyID, "name of the key in --codec-keys that encrypts")
}

// check returns an error about options that do not go together.
func (o Options) check() error {
	switch {
	case o.Directory == "" && o.KeyID != "":
		return errors.New("--codec-key-id (TENON_CODEC_KEY_ID) names a key: --codec-keys (TENON_CODEC_KEYS) has to say where the keys are")
	case o.Directory != "" && o.KeyID == "":
		return errors.New("--codec-keys (TENON_CODEC_KEYS) names a directory of keys: --codec-key-id (TENON_CODEC_KEY_ID) has to say which of them encrypts")
	}
	return nil
}

// Codec encrypts and decrypts payloads. It implements converter.PayloadCodec and is safe for concurrent use.
type Codec struct {
	keys  *keys
	keyID string
}

var _ converter.PayloadCodec = (*Codec)(nil)

// New reads the keys. Every file has to be a key, and the key that encrypts has to be there. Without options, the codec
// encrypts nothing, and says of an encrypted payload which key it would need.
func New(o Options) (*Codec, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	read, err := readKeys(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("--codec-keys (TENON_CODEC_KEYS): %w", err)
	}
	c := &Codec{keys: read, keyID: o.KeyID}
	return c, c.Check()
}

// Encrypts reports whether the codec has a key to encrypt with.
func (c *Codec) Encrypts() bool { return c.keyID != "" }

// Check returns an error if the key that encrypts is missing. It reads keys again that have changed.
func (c *Codec) Check() error {
	if !c.Encrypts() {
		return nil
	}
	_, err := c.encrypting()
	return err
}

func (c *Codec) encrypting() (aead, error) {
	key, known := c.keys.find(c.keyID)
	if key == nil {
		return nil, fmt.Errorf("--codec-key-id (TENON_CODEC_KEY_ID) is %q, and %s", c.keyID, known)
	}
	return key, nil
}

// Encode encrypts payloads. One that is encrypted already is left as it is.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if !c.Encrypts() {
		return payloads, nil
	}
	key, err := c.encrypting()
	if err != nil {
		return nil, err
	}
	encoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		if encrypted(payload) {
			encoded[i] = payload
			continue
		}
		text, err := proto.Marshal(payload)
		if err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		encoded[i] = &commonpb.Payload{Data: key.Seal(nil, nil, text, nil),
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), MetadataKeyID: []byte(c.keyID)}}
	}
	return encoded, nil
}

// Decode decrypts payloads, and leaves those that are not encrypted as they are. Its error is an UnreadableError.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		if !encrypted(payload) {
			decoded[i] = payload
			continue
		}
		var err error
		if decoded[i], err = c.decrypt(payload); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

func (c *Codec) decrypt(payload *commonpb.Payload) (*commonpb.Payload, error) {
	id := string(payload.GetMetadata()[MetadataKeyID])
	key, known := c.keys.find(id)
	if key == nil {
		return nil, &UnreadableError{KeyID: id, Why: known}
	}
	text, err := key.Open(nil, nil, payload.GetData(), nil)
	if err != nil {
		return nil, &UnreadableError{KeyID: id, Why: "it was changed, or encrypted with another key of that name"}
	}
	decrypted := &commonpb.Payload{}
	if err := proto.Unmarshal(text, decrypted); err != nil {
		return nil, &UnreadableError{KeyID: id, Why: "what it contains is no payload"}
	}
	return decrypted, nil
}

func encrypted(payload *commonpb.Payload) bool {
	return string(payload.GetMetadata()[converter.MetadataEncoding]) == Encoding
}

// UnreadableError says that a payload cannot be decrypted.
type UnreadableError struct {
	// KeyID is the key that the payload names.
	KeyID string
	// Why says what is wrong, and what to do about it.
	Why string
}

// Error names the key and what to do.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("a payload is encrypted with the key %q: %s", e.KeyID, strings.TrimSuffix(e.Why, "."))
}
