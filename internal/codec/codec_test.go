package codec

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// newKey returns the content of a key file.
func newKey() []byte {
	key := make([]byte, keyLength)
	_, _ = rand.Read(key) // it never fails
	return []byte(base64.StdEncoding.EncodeToString(key) + "\n")
}

// directory makes a directory with a new key of each name.
func directory(t testing.TB, ids ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, id := range ids {
		put(t, dir, id, newKey())
	}
	return dir
}

// put writes a file as a mounted Secret would show it.
func put(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func newCodec(t testing.TB, dir, id string) *Codec {
	t.Helper()
	c, err := New(Options{Directory: dir, KeyID: id})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// payloads draws payloads of all kinds.
func payloads(t *rapid.T) []*commonpb.Payload {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *commonpb.Payload {
		return &commonpb.Payload{Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			Metadata: rapid.MapOf(rapid.SampledFrom([]string{"encoding", "messageType", "other"}), rapid.SliceOf(rapid.ByteRange('a', 'z'))).Draw(t, "metadata")}
	}), 0, 4).Draw(t, "payloads")
}

func equal(a, b []*commonpb.Payload) bool {
	return slices.EqualFunc(a, b, func(a, b *commonpb.Payload) bool { return proto.Equal(a, b) })
}

// TestRoundTrip shows that what is encrypted comes back as it was, that encrypting twice is encrypting once, that the same
// payload never looks the same, and that nothing of it is to be seen.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	c := newCodec(t, directory(t, "a"), "a")
	rapid.Check(t, func(t *rapid.T) {
		plain := payloads(t)
		encoded, err := c.Encode(plain)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Encode(encoded)
		if err != nil || !equal(again, encoded) {
			t.Fatalf("encrypted twice: %v, %v", again, err)
		}
		other, err := c.Encode(plain)
		if err != nil || len(plain) > 0 && equal(other, encoded) {
			t.Fatalf("the same ciphertext twice: %v, %v", other, err)
		}
		for i, p := range encoded {
			if string(p.GetMetadata()["encoding"]) != "binary/encrypted" || string(p.GetMetadata()["encryption-key-id"]) != "a" || len(p.GetMetadata()) != 2 {
				t.Fatalf("metadata %v", p.GetMetadata())
			}
			if data := plain[i].GetData(); len(data) > 4 && bytes.Contains(p.GetData(), data) {
				t.Fatalf("%q is to be seen in %q", data, p.GetData())
			}
		}
		decoded, err := c.Decode(encoded)
		if err != nil || !equal(decoded, plain) {
			t.Fatalf("%v became %v, %v", plain, decoded, err)
		}
	})
}

// TestLayoutIsTheSamples decrypts with the standard library alone, as Temporal's samples do: nonce, ciphertext, tag.
func TestLayoutIsTheSamples(t *testing.T) {
	t.Parallel()
	dir := directory(t, "a")
	plain := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"secret"`)}
	encoded, err := newCodec(t, dir, "a").Encode([]*commonpb.Payload{plain})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	data := encoded[0].GetData()
	text, err := gcm.Open(nil, data[:gcm.NonceSize()], data[gcm.NonceSize():], nil)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &commonpb.Payload{}
	if err := proto.Unmarshal(text, decoded); err != nil || !proto.Equal(decoded, plain) {
		t.Errorf("%v, %v", decoded, err)
	}
}

// TestTamperingIsRefused changes one byte of a ciphertext, cuts it, or gives it the name of another key.
func TestTamperingIsRefused(t *testing.T) {
	t.Parallel()
	c := newCodec(t, directory(t, "a", "b"), "a")
	rapid.Check(t, func(t *rapid.T) {
		encoded, err := c.Encode([]*commonpb.Payload{{Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")}})
		if err != nil {
			t.Fatal(err)
		}
		changed := encoded[0]
		switch at := rapid.IntRange(0, len(changed.GetData())-1).Draw(t, "at"); rapid.SampledFrom([]string{"flip", "cut", "key"}).Draw(t, "how") {
		case "flip":
			changed.Data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "cut":
			changed.Data = changed.Data[:at]
		case "key":
			changed.Metadata[MetadataKeyID] = []byte("b")
		}
		decoded, err := c.Decode(encoded)
		if unreadable, is := errors.AsType[*UnreadableError](err); !is || decoded != nil || !strings.Contains(unreadable.Error(), "it was changed") {
			t.Fatalf("decoded to %v, %v", decoded, err)
		}
	})
}

// TestKeysRotateInAnyOrder adds keys to the workers' Secrets, takes them away and names others, in any order. A worker reads
// whatever is encrypted with a key that it has at that moment, and says of everything else which key it lacks.
func TestKeysRotateInAnyOrder(t *testing.T) {
	t.Parallel()
	const workers = 2
	all := map[string][]byte{}
	for _, id := range []string{"2026-01", "2026-06", "2026-11"} {
		all[id] = newKey()
	}
	ids := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(rt *rapid.T) {
		var codecs [workers]*Codec
		var dirs [workers]string
		var has [workers]map[string]bool
		for i := range workers {
			dir := t.TempDir()
			put(t, dir, ids[0], all[ids[0]])
			dirs[i], codecs[i], has[i] = dir, newCodec(t, dir, ids[0]), map[string]bool{ids[0]: true}
			codecs[i].keys.now = nowAndThen(codecs[i].keys)
		}
		plain := []*commonpb.Payload{{Data: []byte("kept")}, {Data: []byte("too")}}
		kept := map[string][]*commonpb.Payload{}
		worker, id := rapid.IntRange(0, workers-1), rapid.SampledFrom(ids)
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				i, id := worker.Draw(rt, "worker"), id.Draw(rt, "key")
				put(t, dirs[i], id, all[id])
				has[i][id] = true
			},
			"remove": func(rt *rapid.T) {
				i, id := worker.Draw(rt, "worker"), id.Draw(rt, "key")
				if id == codecs[i].keyID {
					rt.Skip("nobody removes what encrypts")
				}
				_ = os.Remove(filepath.Join(dirs[i], id))
				delete(has[i], id)
			},
			"name": func(rt *rapid.T) { // a worker restarts to encrypt with another key
				i, id := worker.Draw(rt, "worker"), id.Draw(rt, "key")
				renamed, err := New(Options{Directory: dirs[i], KeyID: id})
				if (err == nil) != has[i][id] {
					rt.Fatalf("started with %s, having %v: %v", id, has[i], err)
				}
				if err == nil {
					renamed.keys.now = nowAndThen(renamed.keys)
					codecs[i] = renamed
				}
			},
			"encrypt": func(rt *rapid.T) {
				i := worker.Draw(rt, "worker")
				encoded, err := codecs[i].Encode(plain)
				if err != nil {
					rt.Fatal(err)
				}
				kept[codecs[i].keyID] = encoded
			},
			"": func(rt *rapid.T) {
				for i := range workers {
					for id, encoded := range kept {
						decoded, err := codecs[i].Decode(append(slices.Clone(plain), encoded...))
						unreadable, _ := errors.AsType[*UnreadableError](err)
						switch {
						case has[i][id] && (err != nil || !equal(decoded, append(slices.Clone(plain), plain...))):
							rt.Fatalf("worker %d has %s and reads %v, %v", i, id, decoded, err)
						case !has[i][id] && (unreadable == nil || unreadable.KeyID != id):
							rt.Fatalf("worker %d lacks %s, and says %v", i, id, err)
						}
					}
				}
			},
		})
	})
}

// nowAndThen is a clock by which keys are always old enough to be read again.
func nowAndThen(k *keys) func() time.Time {
	at := k.now()
	return func() time.Time { at = at.Add(readAgain); return at }
}

// TestMistakes names the setting, the file and what to do.
func TestMistakes(t *testing.T) {
	t.Parallel()
	short := directory(t, "a")
	put(t, short, "b", []byte("c2hvcnQ="))
	for name, row := range map[string]struct {
		reason  string
		options Options
		says    []string
	}{
		"NoDirectory": {"a key cannot be named without a place", Options{KeyID: "a"}, []string{"--codec-keys (TENON_CODEC_KEYS)"}},
		"NoKey":       {"which key encrypts is never guessed", Options{Directory: short}, []string{"--codec-key-id (TENON_CODEC_KEY_ID)"}},
		"Missing":     {"the key that encrypts has to be there", Options{Directory: directory(t, "a", "b"), KeyID: "c"}, []string{`"c"`, "which has a, b", "Add it to the Secret"}},
		"Empty":       {"a Secret without keys", Options{Directory: t.TempDir(), KeyID: "a"}, []string{`"a"`, "has no key", "Add it to the Secret"}},
		"Short":       {"a key of another length is a mistake", Options{Directory: short, KeyID: "a"}, []string{"b is no key", "openssl rand -base64 32"}},
		"NowhereDir":  {"a directory that is not there", Options{Directory: filepath.Join(short, "nowhere"), KeyID: "a"}, []string{"--codec-keys", "nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(row.options)
			for _, want := range row.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v does not say %q", row.reason, err, want)
				}
			}
		})
	}
}

// TestWithoutKeys shows that a process without keys changes nothing, and says what it would need.
func TestWithoutKeys(t *testing.T) {
	t.Parallel()
	none, err := New(Options{})
	if err != nil || none.Encrypts() || none.Check() != nil {
		t.Fatal(err, none.Check())
	}
	plain := []*commonpb.Payload{{Data: []byte("plain"), Metadata: map[string][]byte{converter.MetadataEncoding: []byte("json/plain")}}}
	if encoded, err := none.Encode(plain); err != nil || !equal(encoded, plain) {
		t.Errorf("%v, %v", encoded, err)
	}
	if decoded, err := none.Decode(plain); err != nil || !equal(decoded, plain) {
		t.Errorf("%v, %v", decoded, err)
	}
	encoded, err := newCodec(t, directory(t, "a"), "a").Encode(plain)
	if err != nil {
		t.Fatal(err)
	}
	_, err = none.Decode(encoded)
	if want := `a payload is encrypted with the key "a": this process has no keys. Give it those of the cluster's workers with --codec-keys`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestSecretIsReadAgain changes keys as the kubelet changes a mounted Secret: files are links into a directory that is
// exchanged at once. A key that is added is known to whoever meets it; one that is changed, within ten seconds.
func TestSecretIsReadAgain(t *testing.T) {
	t.Parallel()
	dir, old, added := t.TempDir(), newKey(), newKey()
	mount := func(version int, secret map[string][]byte) {
		data := filepath.Join(dir, fmt.Sprintf("..version-%d", version))
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		for id, key := range secret {
			put(t, data, id, key)
			if err := os.Symlink(filepath.Join("..data", id), filepath.Join(dir, id)); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
		next := filepath.Join(dir, "..data_tmp")
		if err := errors.Join(os.Symlink(filepath.Base(data), next), os.Rename(next, filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	mount(1, map[string][]byte{"old": old})
	reader := newCodec(t, dir, "old")
	now := reader.keys.now()
	reader.keys.now = func() time.Time { return now }

	mount(2, map[string][]byte{"old": old, "new": added})
	encoded, err := newCodec(t, dir, "new").Encode([]*commonpb.Payload{{Data: []byte("kept")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Decode(encoded); err == nil {
		t.Error("the Secret is read for every payload with an unknown key")
	}
	now = now.Add(missedAgain)
	if _, err := reader.Decode(encoded); err != nil {
		t.Errorf("half a second later: %v", err)
	}

	mount(3, map[string][]byte{"old": old, "new": newKey()})
	if _, err := reader.Decode(encoded); err != nil {
		t.Errorf("the Secret is read for every payload: %v", err)
	}
	now = now.Add(readAgain)
	if _, err := reader.Decode(encoded); err == nil || !strings.Contains(err.Error(), "another key of that name") {
		t.Errorf("the key is another one, and the error is %v", err)
	}

	mount(4, map[string][]byte{"old": []byte("nonsense"), "new": added})
	now = now.Add(readAgain)
	if err := reader.Check(); err == nil || !strings.Contains(err.Error(), "old is no key") {
		t.Errorf("the key that encrypts was spoilt, and the error is %v", err)
	}
}
