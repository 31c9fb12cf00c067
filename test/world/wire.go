package world

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Wire forwards traffic between processes and the address of a server. It counts the bytes, and can be cut like a network
// that loses every packet: no connection is closed, and nothing arrives.
type Wire struct {
	to       string
	listener net.Listener
	bytes    atomic.Int64

	mu   sync.Mutex
	open map[net.Conn]bool
	// mended is open while the wire is cut, and closed while it is whole.
	mended chan struct{}
}

// NewWire starts a wire to an address. It ends with the test.
func NewWire(t testing.TB, to string) *Wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{to: to, listener: listener, open: map[net.Conn]bool{}, mended: make(chan struct{})}
	close(w.mended)
	t.Cleanup(w.end)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go w.pass(from)
		}
	}()
	return w
}

// Address returns the address at which the wire listens.
func (w *Wire) Address() string { return w.listener.Addr().String() }

// Bytes returns the number of bytes on the wire so far, in both directions.
func (w *Wire) Bytes() int64 { return w.bytes.Load() }

// Cut stops all traffic until Mend.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.mended:
		w.mended = make(chan struct{})
	default:
	}
}

// Mend resumes the traffic. What was sent over existing connections arrives late, as with TCP.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.mended:
	default:
		close(w.mended)
	}
}

// pass connects both sides until one closes its connection.
func (w *Wire) pass(from net.Conn) {
	defer w.hangUp(from)
	w.keep(from)
	w.await()
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer w.hangUp(to)
	w.keep(to)
	go func() {
		_, _ = io.Copy(to, carried{from, w})
		w.hangUp(from)
		w.hangUp(to)
	}()
	_, _ = io.Copy(from, carried{to, w})
}

// await returns when the wire is not cut.
func (w *Wire) await() {
	w.mu.Lock()
	mended := w.mended
	w.mu.Unlock()
	<-mended
}

func (w *Wire) keep(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[c] = true
}

func (w *Wire) hangUp(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
	_ = c.Close()
}

func (w *Wire) end() {
	_ = w.listener.Close()
	w.Mend()
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		_ = c.Close()
	}
}

// carried is one side's data on its way to the other.
type carried struct {
	io.Reader
	wire *Wire
}

func (c carried) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.wire.await()
	c.wire.bytes.Add(int64(n))
	return n, err
}
