package scale_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// meter stands between workers and the API server and counts the bytes that go through, as they are on the wire.
type meter struct {
	to       string
	listener net.Listener
	bytes    atomic.Int64
	mu       sync.Mutex
	open     map[net.Conn]bool
}

// newMeter starts a meter that passes everything on to an address.
func newMeter(t testing.TB, to string) *meter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{to: to, listener: listener, open: map[net.Conn]bool{}}
	t.Cleanup(m.close)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go m.pass(from)
		}
	}()
	return m
}

func (m *meter) address() string { return m.listener.Addr().String() }

// pass connects both sides until one hangs up.
func (m *meter) pass(from net.Conn) {
	to, err := net.Dial("tcp", m.to)
	if err != nil {
		_ = from.Close()
		return
	}
	m.keep(from, to)
	hangUp := func() { _ = errors.Join(from.Close(), to.Close()) }
	go func() {
		defer hangUp()
		_, _ = io.Copy(to, counted{from, &m.bytes})
	}()
	defer hangUp()
	_, _ = io.Copy(from, counted{to, &m.bytes})
}

func (m *meter) keep(connections ...net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range connections {
		m.open[c] = true
	}
}

func (m *meter) close() {
	_ = m.listener.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.open {
		_ = c.Close()
	}
}

// counted counts what is read.
type counted struct {
	io.Reader
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
