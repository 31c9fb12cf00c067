package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// keyLength is the length of a key in bytes: AES-256.
	keyLength = 32
	// readAgain is how old what is known of the directory may be when a key is used, and missedAgain when one is missing. Reading it
	// takes microseconds; the kubelet takes a minute to show a changed Secret.
	readAgain, missedAgain = 10 * time.Second, 500 * time.Millisecond
)

// aead is AES-256-GCM that puts a random nonce in front of the ciphertext. 2^32 payloads may have one key (NIST SP 800-38D,
// section 8.3).
type aead = cipher.AEAD

// keys are the keys of a directory. It is read again as it changes, so a key that is added is known without a restart.
type keys struct {
	directory string
	now       func() time.Time

	mu    sync.Mutex
	read  time.Time
	byID  map[string]aead
	wrong error
}

// readKeys reads a directory. All of its files have to be keys. Without a directory there are no keys.
func readKeys(directory string) (*keys, error) {
	k := &keys{directory: directory, now: time.Now}
	if directory != "" {
		k.load()
	}
	return k, k.wrong
}

// find returns a key by its id. If there is none, known says what there is instead, and what to do.
func (k *keys) find(id string) (key aead, known string) {
	if k.directory == "" {
		return nil, "this process has no keys. Give it those of the cluster's workers with --codec-keys and --codec-key-id (in the chart: temporal.codec)"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key = k.byID[id]
	if age := k.now().Sub(k.read); age >= readAgain || key == nil && age >= missedAgain {
		k.load()
		key = k.byID[id]
	}
	if key != nil {
		return key, ""
	}
	known = fmt.Sprintf("the key is not in %s, which has %s. Add it to the Secret that is mounted there", k.directory, strings.Join(slices.Sorted(maps.Keys(k.byID)), ", "))
	if len(k.byID) == 0 {
		known = fmt.Sprintf("%s has no key. Add it to the Secret that is mounted there", k.directory)
	}
	if k.wrong != nil {
		known += "; " + k.wrong.Error()
	}
	return nil, known
}

// load reads the directory. What cannot be read is noted; if that is the directory itself, the keys stay as they were.
func (k *keys) load() {
	k.read = k.now()
	files, err := os.ReadDir(k.directory)
	if err != nil {
		k.wrong = fmt.Errorf("read the keys: %w", err)
		return
	}
	byID, wrong := map[string]aead{}, []error(nil)
	for _, file := range files {
		// A mounted Secret has hidden directories, to which its files are links.
		if strings.HasPrefix(file.Name(), ".") {
			continue
		}
		key, err := readKey(filepath.Join(k.directory, file.Name()))
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		byID[file.Name()] = key
	}
	k.byID, k.wrong = byID, errors.Join(wrong...)
}

func readKey(path string) (aead, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", filepath.Base(path), err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(key) != keyLength {
		return nil, fmt.Errorf("%s is no key: it has to be %d bytes in base64, as openssl rand -base64 %[2]d makes them", path, keyLength)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", filepath.Base(path), err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
